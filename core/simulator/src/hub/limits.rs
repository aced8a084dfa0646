//! Which fabrics can be fabrics of hubs.

use switch_model::{transmission_time, Time};

use super::station::SLOT_BITS;
use crate::error::Error;
use crate::fabric::Fabric;

const FASTEST_BPS: u64 = 100_000_000;

impl Fabric {
    /// The same fabric with repeater hubs in place of its switches: half duplex, with collisions.
    /// Flow control, buffers and tables of the switches have no effect then.
    ///
    /// # Errors
    /// A link between switches; lines of one hub with different rates, or over 100 Mbit/s; lines so
    /// long that a station could miss a collision.
    pub fn with_hubs(self) -> Result<Fabric, Error> {
        if self.configs.len() != 2 * self.hosts() {
            return Err(Error::new("a hub joins hosts only, no switches"));
        }
        for hub in 0..self.switches {
            check_lines(&self, hub).map_err(|error| Error::new(format!("hub {hub}: {error}")))?;
        }
        Ok(Fabric { hubs: true, ..self })
    }
}

fn check_lines(fabric: &Fabric, hub: usize) -> Result<(), Error> {
    let hosts = || (0..fabric.hosts()).filter(|&host| fabric.at[host] as usize == hub);
    let lines = || hosts().map(|host| &fabric.configs[fabric.up[host].index()]);
    let Some(rate_bps) = lines().map(|line| line.rate_bps).next() else { return Ok(()) };
    if lines().any(|line| line.rate_bps != rate_bps) || rate_bps > FASTEST_BPS {
        return Err(Error::new("all lines must have one rate, at most 100 Mbit/s"));
    }
    if lines().any(|line| line.faults.any() || line.jitter > 0) {
        return Err(Error::new("its lines have neither loss nor jitter"));
    }
    let mut delays: Vec<Time> = lines().map(|line| line.delay).collect();
    delays.sort_unstable_by(|a, b| b.cmp(a));
    let slot = transmission_time(SLOT_BITS, rate_bps) / 8;
    let round_trip = 2 * delays.iter().take(2).sum::<Time>();
    if round_trip > slot {
        let [round_trip_us, slot_us] = [round_trip, slot].map(|time| time as f64 / 1e6);
        return Err(Error::new(format!(
            "signals take {round_trip_us} us there and back; stations sense a collision within \
             {slot_us} us"
        )));
    }
    Ok(())
}
