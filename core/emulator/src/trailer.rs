//! The trailer behind a frame's payload while the frame is inside an Open vSwitch.
//!
//! Open vSwitch does not change it. At the egress it tells the emulator by which channel, and in
//! which transmission, the frame entered the switch.

/// Length of a trailer: magic 4, channel 4, sequence number 8, big endian.
pub const TRAILER_BYTES: usize = 16;
const MAGIC: [u8; 4] = *b"\xc1knt";

/// The content of a trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// The channel by which the frame entered the switch.
    pub channel: u32,
    /// The number of that transmission, counted over all channels.
    pub sequence: u64,
}

impl Trailer {
    /// Append the trailer to a frame.
    pub fn append(self, frame: &mut Vec<u8>) {
        frame.extend_from_slice(&MAGIC);
        frame.extend_from_slice(&self.channel.to_be_bytes());
        frame.extend_from_slice(&self.sequence.to_be_bytes());
    }

    /// Remove the trailer of a frame. Returns None, and changes nothing, if there is none.
    pub fn take(frame: &mut Vec<u8>) -> Option<Trailer> {
        let bytes = frame.last_chunk::<TRAILER_BYTES>()?;
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let (channel, sequence) = rest.split_first_chunk::<4>()?;
        if *magic != MAGIC {
            return None;
        }
        let trailer = Trailer {
            channel: u32::from_be_bytes(*channel),
            sequence: u64::from_be_bytes(*sequence.first_chunk()?),
        };
        frame.truncate(frame.len() - TRAILER_BYTES);
        Some(trailer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn take_returns_what_append_added(
            frame in proptest::collection::vec(any::<u8>(), 0..100), channel: u32, sequence: u64,
        ) {
            let trailer = Trailer { channel, sequence };
            let mut bytes = frame.clone();
            trailer.append(&mut bytes);
            prop_assert_eq!(bytes.len(), frame.len() + TRAILER_BYTES);
            prop_assert_eq!(Trailer::take(&mut bytes), Some(trailer));
            prop_assert_eq!(bytes, frame);
        }

        #[test]
        fn any_bytes_are_parsed_without_panic(frame in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut bytes = frame.clone();
            if Trailer::take(&mut bytes).is_none() {
                prop_assert_eq!(bytes, frame);
            }
        }
    }

    #[test]
    fn the_last_trailer_is_taken() {
        let mut bytes = vec![0; 60];
        Trailer { channel: 1, sequence: 1 }.append(&mut bytes);
        Trailer { channel: 2, sequence: 2 }.append(&mut bytes);
        assert_eq!(Trailer::take(&mut bytes), Some(Trailer { channel: 2, sequence: 2 }));
    }
}
