//! Host-tagged frames: the network interface of a host chooses a VLAN by destination.

use std::collections::{BTreeMap, HashMap};

use packet_io::ethernet::Mac;
use switch_model::limits::LAST_VLAN;

use crate::frame::Frame;

const TPID: u16 = 0x8100;
/// The key of the VLAN of all frames whose destination is not listed.
const DEFAULT: &str = "default";

/// The table of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagging {
    default: u16,
    by_destination: HashMap<Mac, u16>,
}

impl Tagging {
    /// Read `{"default": 2, "02:00:00:00:01:01": 3}`.
    ///
    /// # Errors
    /// One line that names the wrong entry.
    pub fn new(vlans: &BTreeMap<String, u16>) -> Result<Tagging, String> {
        let mut by_destination = HashMap::new();
        let mut default = None;
        for (key, &vlan) in vlans {
            if !(1..=LAST_VLAN).contains(&vlan) {
                return Err(format!("vlans: {vlan} is not in 1..{LAST_VLAN}"));
            }
            if key == DEFAULT {
                default = Some(vlan);
            } else {
                let mac =
                    key.parse::<Mac>().map_err(|error| format!("vlans: {key:?} is {error}"))?;
                by_destination.insert(mac, vlan);
            }
        }
        let default = default.ok_or_else(|| format!("vlans: {DEFAULT:?} is missing"))?;
        Ok(Tagging { default, by_destination })
    }

    /// Tag a frame with a complete header, unless the host has tagged it itself.
    pub fn tag(&self, frame: &mut Vec<u8>) {
        let Some(header) = Frame::new_checked(frame) else { return };
        if header.is_tagged() {
            return;
        }
        let vlan = *self.by_destination.get(&header.destination()).unwrap_or(&self.default);
        let ([a, b], [c, d]) = (TPID.to_be_bytes(), vlan.to_be_bytes());
        frame.splice(12..12, [a, b, c, d]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(entries: &[(&str, u16)]) -> Result<Tagging, String> {
        let owned = entries.iter().map(|(key, vlan)| (key.to_string(), *vlan));
        Tagging::new(&owned.collect())
    }

    #[test]
    fn the_destination_chooses() {
        let tagging = table(&[("default", 2), ("02:00:00:00:0a:01", 4094)]).unwrap();
        let mut frame = vec![2, 0, 0, 0, 10, 1, 2, 0, 0, 0, 1, 1, 8, 0, 9];
        tagging.tag(&mut frame);
        assert_eq!(frame, [2, 0, 0, 0, 10, 1, 2, 0, 0, 0, 1, 1, 0x81, 0, 0x0f, 0xfe, 8, 0, 9]);
        let mut broadcast = vec![0xff; 14];
        tagging.tag(&mut broadcast);
        assert_eq!(broadcast[12..16], [0x81, 0, 0, 2]);
    }

    #[test]
    fn a_frame_that_has_a_tag_keeps_it() {
        let tagging = table(&[("default", 2)]).unwrap();
        for tpid in [[0x81, 0x00], [0x88, 0xa8]] {
            let mut frame = vec![2; 18];
            frame[12..14].copy_from_slice(&tpid);
            let before = frame.clone();
            tagging.tag(&mut frame);
            assert_eq!(frame, before);
        }
    }

    #[test]
    fn invalid_tables_are_refused() {
        for (entries, says) in [
            (&[("02:00:00:00:00:01", 2)][..], "\"default\" is missing"),
            (&[("default", 0)], "0 is not in"),
            (&[("default", 4095)], "4095 is not in"),
            (&[("default", 2), ("02:00:00:00:00", 2)], "is not a MAC address"),
            (&[("default", 2), ("02:00:00:00:00:01:01", 2)], "is not a MAC address"),
            (&[("default", 2), ("02:00:00:00:00:+1", 2)], "is not a MAC address"),
        ] {
            assert!(table(entries).unwrap_err().contains(says), "{entries:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_else_changes(mut frame in proptest::collection::vec(any::<u8>(), 0..80)) {
            let before = frame.clone();
            table(&[("default", 7)]).unwrap().tag(&mut frame);
            if frame.len() != before.len() {
                prop_assert_eq!(frame.splice(12..16, []).collect::<Vec<_>>(), [0x81, 0, 0, 7]);
            }
            prop_assert_eq!(frame, before);
        }
    }
}
