//! Settings of transports.

use switch_model::{transmission_time, Time, MICROSECOND};

use crate::error::Error;

/// How hosts send.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transport {
    /// The control of sending rates, if there is one.
    pub rate_control: Option<Dcqcn>,
    /// The control of what is under way, if there is one; it needs a recovery, which acknowledges
    /// packets.
    pub window_control: Option<Nscc>,
    /// The recovery of lost packets, if there is one.
    pub recovery: Option<Recovery>,
}

/// What is sent again when packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryKind {
    /// The lost packet and all after it.
    GoBackN,
    /// The lost packet.
    Selective,
}

/// The recovery of lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// What is sent again.
    pub kind: RecoveryKind,
    /// After so long without a new acknowledgement, all is sent again that is not known to have
    /// arrived. It doubles with each timeout in a row, up to 64 times that. None: 320 us, or twice
    /// the time of a window on the line of the host if that is longer.
    pub timeout: Option<Time>,
    /// Packets of a queue pair that may be unacknowledged, 1 to 65,000. None: 128, or with a control
    /// of what is under way as many as that permits.
    pub window: Option<u32>,
    /// After more timeouts than this in a row, the queue pair stops.
    pub retries: u32,
}

/// RTO_high of IRN (Mittal et al.: Revisiting Network Support for RDMA, SIGCOMM 2018).
const LEAST_DEFAULT_TIMEOUT: Time = 320 * MICROSECOND;
/// The most packets of a window: the numbers of two of them differ by less than 2^16.
const MOST_WINDOW: u32 = 65_000;
/// The packets of a window without a control of what is under way.
const DEFAULT_WINDOW: u32 = 128;

impl Recovery {
    /// The timeout of a host on a line of that rate, with packets that take so much of it, of which
    /// so many may be under way.
    pub(crate) fn timeout_on(&self, line_bps: u64, wire_bytes: u32, window: u32) -> Time {
        let window = transmission_time(wire_bytes, line_bps).saturating_mul(window.into());
        self.timeout.unwrap_or(LEAST_DEFAULT_TIMEOUT.max(window.saturating_mul(2)))
    }

    /// The packets of a window, if its control permits so many.
    pub(crate) fn window_within(&self, permitted: Option<u32>) -> u32 {
        self.window.unwrap_or(permitted.unwrap_or(DEFAULT_WINDOW).clamp(1, MOST_WINDOW))
    }

    fn check(&self) -> Result<(), Error> {
        let is_possible = |window: u32| (1..=MOST_WINDOW).contains(&window);
        if self.timeout == Some(0) || !self.window.is_none_or(is_possible) {
            return Err(Error::new("recovery: the timeout and the window must be over 0"));
        }
        Ok(())
    }
}

/// DCQCN (Zhu et al.: Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015). What is
/// None is the published value for a line of 40 Gbit/s, scaled to the line of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dcqcn {
    /// The gain of the estimate of congestion, over 0 to 1.
    pub g: f64,
    /// A receiver sends at most one notification for a queue pair in this time.
    pub cnp_interval: Time,
    /// Without notifications, the estimate of congestion decays after each such time.
    pub alpha_interval: Time,
    /// The sender increases its rate after each such time,
    pub increase_interval: Time,
    /// and after each so many bytes on the line; published: 10 MB.
    pub increase_bytes: Option<f64>,
    /// Increases of fast recovery, before the target rate increases.
    pub fast_recovery: u32,
    /// Additive increase of the target rate; published: 40 Mbit/s.
    pub additive_bps: Option<f64>,
    /// Hyper increase of the target rate; of the authors' simulator: 200 Mbit/s.
    pub hyper_bps: Option<f64>,
    /// The lowest rate; of the authors' simulator: 100 Mbit/s.
    pub least_bps: Option<f64>,
}

impl Dcqcn {
    fn check(&self) -> Result<(), Error> {
        let intervals = [self.cnp_interval, self.alpha_interval, self.increase_interval];
        let amounts = [self.increase_bytes, self.additive_bps, self.hyper_bps, self.least_bps];
        let is_positive = |amount: &f64| amount.is_finite() && *amount > 0.0;
        match () {
            () if !(self.g > 0.0 && self.g <= 1.0) => {
                Err(Error::new("dcqcn: g must be over 0 and at most 1"))
            }
            () if intervals.contains(&0) || self.fast_recovery == 0 => {
                Err(Error::new("dcqcn: intervals and steps of fast recovery must be over 0"))
            }
            () if !amounts.iter().flatten().all(is_positive) => {
                Err(Error::new("dcqcn: rates and bytes must be over 0"))
            }
            () => Ok(()),
        }
    }
}

/// NSCC, the network-signalled congestion control of Ultra Ethernet: see `nscc.rs`. Increases are in
/// packets for each round trip, for 100 Gbit/s and a round trip of 12 us; they are scaled to the
/// line of the host and the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nscc {
    /// The time of a round trip without queues; None: that of a full packet and its answer on the
    /// path on which the queue pair begins.
    pub round_trip: Option<Time>,
    /// The target of the queueing delay; None: a round trip.
    pub target: Option<Time>,
    /// Fair increase; published: 5.
    pub fair: f64,
    /// Proportional increase; published: 4.
    pub proportional: f64,
    /// What is added in any case; published: 0.15.
    pub constant: f64,
    /// How strong a decrease is, over 0 to 1; published: 0.8.
    pub gamma: f64,
    /// The gain of the mean delay, over 0 to 1; published: 0.0125.
    pub delay_gain: f64,
    /// Quick adapt acts if less of the largest window has arrived, 0 to 1; published: 1/8.
    pub low_share: f64,
    /// The largest window, of what is on the line in a round trip; published: 1.5.
    pub largest: f64,
}

impl Nscc {
    fn check(&self) -> Result<(), Error> {
        let amounts = [self.fair, self.proportional, self.constant, self.low_share];
        let is_amount = |amount: &f64| amount.is_finite() && *amount >= 0.0;
        let is_gain = |gain: f64| gain > 0.0 && gain <= 1.0;
        let times = [self.round_trip, self.target];
        match () {
            () if times.contains(&Some(0)) => Err(Error::new("nscc: times must be over 0")),
            () if !amounts.iter().all(is_amount) || self.low_share > 1.0 => {
                Err(Error::new("nscc: increases must be 0 or more, and the low share at most 1"))
            }
            () if !is_gain(self.gamma) || !is_gain(self.delay_gain) => {
                Err(Error::new("nscc: gamma and the gain must be over 0 and at most 1"))
            }
            () if !(self.largest.is_finite() && self.largest > 0.0) => {
                Err(Error::new("nscc: the largest window must be over 0"))
            }
            () => Ok(()),
        }
    }
}

impl Transport {
    /// Refuse settings that are not possible.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.window_control.is_some() && (self.rate_control.is_some() || self.recovery.is_none())
        {
            return Err(Error::new("nscc needs a recovery of lost packets, and no dcqcn"));
        }
        self.rate_control.map_or(Ok(()), |dcqcn| dcqcn.check())?;
        self.window_control.map_or(Ok(()), |nscc| nscc.check())?;
        self.recovery.map_or(Ok(()), |recovery| recovery.check())
    }
}
