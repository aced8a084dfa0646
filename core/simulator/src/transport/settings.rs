//! Settings of transports.

use switch_model::{transmission_time, Time, MICROSECOND};

use crate::error::Error;

/// How hosts send.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transport {
    /// The control of sending rates, if there is one.
    pub rate_control: Option<Dcqcn>,
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
    /// arrived. It doubles with each timeout in a row, up to 64 times that. None: 320 us, or twice the time of a window on the line of the host if that is
    /// longer.
    pub timeout: Option<Time>,
    /// Packets of a queue pair that may be unacknowledged, 1 to 65,000.
    pub window: u32,
    /// After more timeouts than this in a row, the queue pair stops.
    pub retries: u32,
}

/// RTO_high of IRN (Mittal et al.: Revisiting Network Support for RDMA, SIGCOMM 2018).
const LEAST_DEFAULT_TIMEOUT: Time = 320 * MICROSECOND;
/// The most packets of a window: the numbers of two of them differ by less than 2^16.
const MOST_WINDOW: u32 = 65_000;

impl Recovery {
    /// The timeout of a host on a line of that rate, with packets that take so much of it.
    pub(crate) fn timeout_on(&self, line_bps: u64, wire_bytes: u32) -> Time {
        let window = transmission_time(wire_bytes, line_bps).saturating_mul(self.window.into());
        self.timeout.unwrap_or(LEAST_DEFAULT_TIMEOUT.max(window.saturating_mul(2)))
    }

    fn check(&self) -> Result<(), Error> {
        if self.timeout == Some(0) || !(1..=MOST_WINDOW).contains(&self.window) {
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

impl Transport {
    /// Refuse settings that are not possible.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.rate_control.map_or(Ok(()), |dcqcn| dcqcn.check())?;
        self.recovery.map_or(Ok(()), |recovery| recovery.check())
    }
}
