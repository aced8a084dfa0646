//! Who a message is for: a port of a host's interface, or of every interface in a group.

use std::fmt;

/// A MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Whether it names a group of interfaces (multicast or broadcast) and not one.
    pub fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// The MAC written as six hexadecimal pairs; None for any other text.
    pub fn parse(text: &str) -> Option<Mac> {
        let mut bytes = [0; 6];
        let mut pairs = text.split(':');
        for byte in &mut bytes {
            let pair = pairs.next().filter(|pair| pair.len() == 2)?;
            // from_str_radix() would take a sign, too.
            pair.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        pairs.next().is_none().then_some(Mac(bytes))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

/// One of the 256 ports of an interface, or of a group of interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The interface, or the group.
    pub mac: Mac,
    /// The port that a process has claimed there.
    pub port: u8,
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.mac, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_nothing_else() {
        let mac = Mac([2, 0, 0, 0x1f, 5, 0xff]);
        assert_eq!(Mac::parse(&mac.to_string()), Some(mac));
        for wrong in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:00:00",
            "2:0:0:0:0:0",
            "+2:00:00:00:00:00",
            "02:00:00:00:00:0g",
        ] {
            assert_eq!(Mac::parse(wrong), None, "{wrong:?}");
        }
    }
}
