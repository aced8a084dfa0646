//! Of hosts whose frames coincide again and again, none gains by its number.

mod common;

use common::{channels, config, run, settings, MICROSECOND};
use simulator::{
    Arrivals, Fabric, Flow, FlowControl, Sending, Settings, Simulation, Tables, Target, Traffic,
};

const SENDERS: u32 = 16;

/// A switch with the senders and the host that receives, the last one.
fn star() -> Fabric {
    let hosts = [0; SENDERS as usize + 1];
    let hosts_up = channels(1, &[], &hosts, config(MICROSECOND));
    Fabric::new(1, hosts.len(), hosts_up).expect("a fabric")
}

#[test]
fn each_sender_of_an_incast_is_as_often_among_the_first() {
    let rounds = 1000;
    let fabric = star();
    let tables = Tables::without_routes(&fabric);
    let sending =
        |round, from| Sending { at: round * 25_000 * MICROSECOND, from, to: SENDERS, bytes: 1000 };
    let all = (0..rounds).flat_map(|round| (0..SENDERS).map(move |from| sending(round, from)));
    let traffic = Traffic::Trace(all.collect());
    let mut simulation = Simulation::new(fabric, tables, traffic, settings(1)).expect("it fits");
    simulation.record_completions(usize::MAX);
    while simulation.run(1 << 16) {}
    let (completions, _) = simulation.completions();
    assert_eq!(completions.len(), (rounds * u64::from(SENDERS)) as usize);
    let mut early = [0u32; SENDERS as usize];
    for round in completions.chunks(SENDERS as usize) {
        assert!(round.iter().all(|one| one.born == round[0].born));
        round[..SENDERS as usize / 2].iter().for_each(|one| early[one.from as usize] += 1);
    }
    // Standard deviation: sqrt(1000) / 2 = 16.
    assert!(early.iter().all(|&count| count.abs_diff(500) < 80), "{early:?}");
}

#[test]
fn senders_share_a_line_whatever_their_numbers() {
    let flows = (0..SENDERS).map(|from| Flow { from, to: Target::Host(SENDERS) }).collect();
    let fabric = star();
    assert_eq!(config(0).flow_control, FlowControl::Pause);
    let tables = Tables::without_routes(&fabric);
    let traffic = Traffic::Flows { flows, arrivals: Arrivals::Saturate, message_bytes: 1500 };
    let end = 5_000_000 * MICROSECOND;
    let report = run(fabric, tables, traffic, Settings { end, ..settings(1) });
    let packets: Vec<u64> = report.flows.iter().map(|flow| flow.packets).collect();
    let mean = packets.iter().sum::<u64>() / u64::from(SENDERS);
    assert!(packets.iter().all(|&count| count.abs_diff(mean) * 20 < mean), "{packets:?}");
}
