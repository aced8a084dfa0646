//! Settings of hosts.

use pyo3::prelude::*;
use simulator::{Dcqcn, Nscc, Recovery, RecoveryKind, Transport};

/// See the `.pyi`.
#[derive(FromPyObject)]
pub struct TransportSettings {
    dcqcn: Option<DcqcnSettings>,
    nscc: Option<NsccSettings>,
    recovery: Option<RecoverySettings>,
}

#[derive(FromPyObject)]
struct RecoverySettings {
    selective: bool,
    timeout_ps: Option<u64>,
    window: Option<u32>,
    retries: u32,
}

#[derive(FromPyObject)]
struct DcqcnSettings {
    g: f64,
    cnp_ps: u64,
    alpha_ps: u64,
    timer_ps: u64,
    counter_bytes: Option<f64>,
    steps: u32,
    rai_bps: Option<f64>,
    rhai_bps: Option<f64>,
    min_bps: Option<f64>,
}

#[derive(FromPyObject)]
struct NsccSettings {
    rtt_ps: Option<u64>,
    target_ps: Option<u64>,
    fair: f64,
    proportional: f64,
    constant: f64,
    gamma: f64,
    delay_gain: f64,
    low_share: f64,
    largest: f64,
}

impl From<TransportSettings> for Transport {
    fn from(given: TransportSettings) -> Transport {
        let dcqcn = |dcqcn: DcqcnSettings| Dcqcn {
            g: dcqcn.g,
            cnp_interval: dcqcn.cnp_ps,
            alpha_interval: dcqcn.alpha_ps,
            increase_interval: dcqcn.timer_ps,
            increase_bytes: dcqcn.counter_bytes,
            fast_recovery: dcqcn.steps,
            additive_bps: dcqcn.rai_bps,
            hyper_bps: dcqcn.rhai_bps,
            least_bps: dcqcn.min_bps,
        };
        let nscc = |nscc: NsccSettings| Nscc {
            round_trip: nscc.rtt_ps,
            target: nscc.target_ps,
            fair: nscc.fair,
            proportional: nscc.proportional,
            constant: nscc.constant,
            gamma: nscc.gamma,
            delay_gain: nscc.delay_gain,
            low_share: nscc.low_share,
            largest: nscc.largest,
        };
        let recovery = |recovery: RecoverySettings| Recovery {
            kind: match recovery.selective {
                true => RecoveryKind::Selective,
                false => RecoveryKind::GoBackN,
            },
            timeout: recovery.timeout_ps,
            window: recovery.window,
            retries: recovery.retries,
        };
        Transport {
            rate_control: given.dcqcn.map(dcqcn),
            window_control: given.nscc.map(nscc),
            recovery: given.recovery.map(recovery),
        }
    }
}
