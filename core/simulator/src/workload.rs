//! Messages of random sizes at random times, and incasts: traces that are drawn from a seed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use switch_model::limits::MAX_BYTES;
use switch_model::Time;

use crate::error::Error;
use crate::random::Stream;
use crate::traffic::{Arrivals, Flow, Sending, Target};

/// Sets the streams of sizes and of incasts apart from those of a simulation's sources.
const POISSON_SEED: u64 = 0x0070_6f69_7373_6f6e;
const INCAST_SEED: u64 = 0x0000_696e_6361_7374;

/// A distribution of sizes: points (bytes, share of messages that are not longer), linear between
/// two points. Sizes are whole: a share between two points falls equally on each size above the
/// first, up to the second.
#[derive(Clone, Debug)]
pub struct Sizes(Vec<(u64, f64)>);

impl Sizes {
    /// The distribution with these points.
    ///
    /// # Errors
    /// Neither bytes nor shares may decrease, the last share must be 1, and bytes at most 2^40.
    pub fn new(points: Vec<(u64, f64)>) -> Result<Sizes, Error> {
        let ordered =
            points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1);
        let possible = |&(bytes, share): &(u64, f64)| bytes <= MAX_BYTES && share >= 0.0;
        if !ordered || !points.iter().all(possible) {
            return Err(Error::new("bytes and shares of sizes must not decrease"));
        }
        match points.last() {
            Some(&(bytes, share)) if bytes > 0 && share == 1.0 => Ok(Sizes(points)),
            _ => Err(Error::new("the last share of sizes must be 1")),
        }
    }

    fn draw(&self, stream: &mut Stream) -> u64 {
        let drawn = stream.unit();
        let place = self.0.partition_point(|point| point.1 < drawn).min(self.0.len() - 1);
        let (bytes, share) = self.0[place];
        let Some(&(least, below)) = place.checked_sub(1).and_then(|before| self.0.get(before))
        else {
            return bytes.max(1);
        };
        let part = libm::ceil((drawn - below) / (share - below) * (bytes - least) as f64) as u64;
        (least + part.max(1)).min(bytes).max(1)
    }
}

/// Messages of `flows`, each after independent, exponentially distributed times of its `mean`: the
/// first `most` of them, and none at or after `until`. Each flow has random numbers of its own.
pub fn poisson(
    flows: &[(Flow, f64)],
    sizes: &Sizes,
    hosts: u32,
    seed: u64,
    (most, until): (usize, Time),
) -> Vec<Sending> {
    let streams = |index| Stream::new(seed ^ POISSON_SEED, index);
    let mut streams: Vec<Stream> = (0..flows.len() as u64).map(streams).collect();
    let mut due = BinaryHeap::new();
    for (flow, &(_, mean)) in flows.iter().enumerate() {
        due.push(Reverse((streams[flow].exponential(mean), flow)));
    }
    let mut sendings = Vec::new();
    while let Some(Reverse((at, number))) = due.pop() {
        if at >= until || sendings.len() >= most {
            break;
        }
        let (stream, (flow, mean)) = (&mut streams[number], flows[number]);
        let to = match flow.to {
            Target::Host(to) => to,
            Target::Anyone | Target::Tree(_) => other(stream, flow.from, hosts),
        };
        let bytes = sizes.draw(stream);
        sendings.push(Sending { at, from: flow.from, to, bytes });
        due.push(Reverse((at.saturating_add(stream.exponential(mean).max(1)), number)));
    }
    sendings
}

/// A host other than `from`; there must be one.
fn other(stream: &mut Stream, from: u32, hosts: u32) -> u32 {
    let drawn = stream.below(hosts - 1);
    drawn + u32::from(drawn >= from)
}

/// Who sends in an incast.
#[derive(Clone, Debug)]
pub enum Senders {
    /// This many hosts, drawn for each incast. There must be as many besides the receiver.
    Random(u32),
    /// These.
    Hosts(Vec<u32>),
}

/// Incasts: several hosts send a message to one at the same time.
#[derive(Clone, Debug)]
pub struct Incasts {
    /// Who sends.
    pub senders: Senders,
    /// Who receives; None for a host that is drawn for each incast.
    pub receiver: Option<u32>,
    /// Length of each message.
    pub bytes: u64,
    /// When: [`Arrivals::Poisson`], or [`Arrivals::Constant`], of which the first is at time 0.
    pub arrivals: Arrivals,
}

/// The messages of the first `most` incasts, and none at or after `until`.
///
/// # Errors
/// Too few hosts, or a sender that would receive.
pub fn incasts(
    incasts: &Incasts,
    hosts: u32,
    seed: u64,
    (most, until): (usize, Time),
) -> Result<Vec<Sending>, Error> {
    let count = match &incasts.senders {
        Senders::Random(count) => *count,
        Senders::Hosts(senders) => senders.len() as u32,
    };
    if count == 0 || count >= hosts {
        return Err(Error::new(format!("an incast of {count} of {hosts} hosts has no receiver")));
    }
    if let (Senders::Hosts(senders), Some(receiver)) = (&incasts.senders, incasts.receiver) {
        if senders.contains(&receiver) {
            return Err(Error::new(format!("host {receiver} would send to itself")));
        }
    }
    let mut stream = Stream::new(seed ^ INCAST_SEED, 0);
    let next = |stream: &mut Stream, at: Time| match incasts.arrivals {
        Arrivals::Poisson { mean } => at.saturating_add(stream.exponential(mean).max(1)),
        Arrivals::Constant { interval } => at.saturating_add(interval.max(1)),
        Arrivals::Saturate | Arrivals::Acknowledged { .. } => Time::MAX,
    };
    let mut at = match incasts.arrivals {
        Arrivals::Poisson { .. } => next(&mut stream, 0),
        _ => 0,
    };
    let mut sendings = Vec::new();
    for _ in 0..most {
        if at >= until {
            break;
        }
        let (to, senders) = drawn(incasts, hosts, &mut stream);
        let bytes = incasts.bytes;
        sendings.extend(senders.into_iter().map(|from| Sending { at, from, to, bytes }));
        at = next(&mut stream, at);
    }
    Ok(sendings)
}

/// The receiver and the senders of one incast.
fn drawn(incasts: &Incasts, hosts: u32, stream: &mut Stream) -> (u32, Vec<u32>) {
    match &incasts.senders {
        Senders::Random(count) => {
            let to = incasts.receiver.unwrap_or_else(|| stream.below(hosts));
            // Without replacement: a shuffle that stops early, of which only what moved is kept.
            let mut moved: HashMap<u32, u32> = HashMap::new();
            let senders = (0..*count).map(|place| {
                let chosen = place + stream.below(hosts - 1 - place);
                let host = moved.get(&chosen).copied().unwrap_or(chosen);
                let last = moved.get(&place).copied().unwrap_or(place);
                moved.insert(chosen, last);
                host + u32::from(host >= to)
            });
            (to, senders.collect())
        }
        Senders::Hosts(senders) => {
            let to = incasts.receiver.unwrap_or_else(|| loop {
                let host = stream.below(hosts);
                if !senders.contains(&host) {
                    break host;
                }
            });
            (to, senders.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_drawn_as_their_points_say() {
        let sizes = Sizes::new(vec![(10, 0.25), (10, 0.5), (20, 0.75), (20, 0.75), (30, 1.0)]);
        let (sizes, mut stream) = (sizes.unwrap(), Stream::new(1, 1));
        let drawn: Vec<u64> = (0..40_000).map(|_| sizes.draw(&mut stream)).collect();
        let share = |from: u64, to: u64| {
            drawn.iter().filter(|&&size| from <= size && size <= to).count() as f64 / 40_000.0
        };
        // Standard deviation of a share of 40,000: at most 0.0025.
        for (from, to, expected) in [(10, 10, 0.5), (11, 20, 0.25), (11, 15, 0.125), (21, 30, 0.25)]
        {
            assert!((share(from, to) - expected).abs() < 0.01, "{from}-{to}: {}", share(from, to));
        }
        assert_eq!(share(10, 30), 1.0);
    }

    #[test]
    fn sizes_that_make_no_sense_are_refused() {
        for points in
            [vec![], vec![(1, 0.5)], vec![(2, 0.5), (1, 1.0)], vec![(1, f64::NAN), (2, 1.0)]]
        {
            assert!(Sizes::new(points.clone()).is_err(), "{points:?}");
        }
    }

    #[test]
    fn incasts_have_different_senders_and_repeat() {
        let given = |senders, receiver| Incasts {
            senders,
            receiver,
            bytes: 5,
            arrivals: Arrivals::Constant { interval: 100 },
        };
        let random = given(Senders::Random(5), None);
        let sendings = incasts(&random, 6, 1, (4, Time::MAX)).unwrap();
        assert_eq!(sendings, incasts(&random, 6, 1, (4, Time::MAX)).unwrap());
        for (number, one) in sendings.chunks(5).enumerate() {
            let mut ends: Vec<u32> = one.iter().map(|sending| sending.from).collect();
            ends.push(one[0].to);
            ends.sort_unstable();
            assert_eq!(ends, [0, 1, 2, 3, 4, 5]);
            assert!(one.iter().all(|s| s.at == 100 * number as u64 && s.to == one[0].to));
        }
        assert!(incasts(&given(Senders::Random(6), None), 6, 1, (1, 1)).is_err());
        assert!(incasts(&given(Senders::Hosts(vec![1]), Some(1)), 6, 1, (1, 1)).is_err());
        let fixed = incasts(&given(Senders::Hosts(vec![1, 2]), None), 4, 1, (9, 150)).unwrap();
        assert_eq!(fixed.len(), 4);
        assert!(fixed.iter().all(|sending| sending.to == 0 || sending.to == 3));
    }
}
