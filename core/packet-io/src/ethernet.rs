//! MAC addresses and the constants of Ethernet frames. Lengths exclude the FCS.

use std::fmt;
use std::str::FromStr;

/// Destination address, source address and EtherType.
pub const HEADER_BYTES: usize = 14;
/// Shorter frames are padded to this length.
pub const MIN_FRAME_BYTES: usize = 60;
/// EtherType of messages between endpoints: IEEE Std 802, local experimental EtherType 1.
pub const MESSAGE_ETHER_TYPE: u16 = 0x88b5;

/// A MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Whether this is a group address (multicast or broadcast).
    pub fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

/// The text is not a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidMac;

impl fmt::Display for InvalidMac {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("not a MAC address like 02:00:00:00:00:01")
    }
}

impl std::error::Error for InvalidMac {}

impl FromStr for Mac {
    type Err = InvalidMac;

    /// Parse six pairs of hexadecimal digits, separated by colons.
    fn from_str(text: &str) -> Result<Mac, InvalidMac> {
        let mut bytes = [0; 6];
        let mut pairs = text.split(':');
        for byte in &mut bytes {
            let pair = pairs.next().filter(|pair| pair.len() == 2).ok_or(InvalidMac)?;
            // from_str_radix() also accepts a sign.
            if !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(InvalidMac);
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| InvalidMac)?;
        }
        if pairs.next().is_some() {
            return Err(InvalidMac);
        }
        Ok(Mac(bytes))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_address_is_parsed_from_its_text(bytes: [u8; 6]) {
            prop_assert_eq!(Mac(bytes).to_string().parse(), Ok(Mac(bytes)));
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:00:00",
            "2:0:0:0:0:0",
            "+2:00:00:00:00:00",
            "02:00:00:00:00:+1",
            "02:00:00:00:00:0g",
        ] {
            assert_eq!(text.parse::<Mac>(), Err(InvalidMac), "{text:?}");
        }
    }
}
