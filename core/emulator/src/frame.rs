//! Ethernet frames behind checked wrappers: the fields that the emulator reads and writes.

use packet_io::ethernet::{Mac, HEADER_BYTES, MIN_FRAME_BYTES};
use switch_model::FlowControl;

/// An 802.1Q tag.
pub const TAG_BYTES: usize = 4;
const FCS_BYTES: u32 = 4;
const TYPE_MAC_CONTROL: u16 = 0x8808;
const OPCODE_PAUSE: u16 = 0x0001;
const OPCODE_PFC: u16 = 0x0101;
/// Destinations that a switch never forwards: 01-80-C2-00-00-00 to -0F (IEEE 802.1Q, 8.6.3).
const LINK_LOCAL: [u8; 5] = [0x01, 0x80, 0xc2, 0x00, 0x00];
const CONTROL_ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
/// Bit times in one quantum of a PAUSE frame.
pub const QUANTUM_BITS: u64 = 512;

/// Length with FCS of a frame of `bytes` bytes without FCS; short frames are padded.
pub fn length_with_fcs(bytes: usize) -> u32 {
    (bytes as u32).max(MIN_FRAME_BYTES as u32) + FCS_BYTES
}

/// A frame that is long enough for an Ethernet header.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'bytes>(&'bytes [u8]);

impl<'bytes> Frame<'bytes> {
    /// None if it is too short.
    pub fn new_checked(bytes: &'bytes [u8]) -> Option<Self> {
        (bytes.len() >= HEADER_BYTES).then_some(Frame(bytes))
    }

    /// The EtherType behind the addresses: 0x8100 for a tagged frame.
    pub fn ether_type(&self) -> u16 {
        u16::from_be_bytes([self.0[12], self.0[13]])
    }

    /// The destination address.
    pub fn destination(&self) -> Mac {
        let mut address = [0; 6];
        address.copy_from_slice(&self.0[..6]);
        Mac(address)
    }

    /// The source address.
    pub fn source(&self) -> Mac {
        let mut address = [0; 6];
        address.copy_from_slice(&self.0[6..12]);
        Mac(address)
    }

    /// Whether the frame is for the next switch itself, such as LLDP, and not to be forwarded.
    pub fn is_link_local(&self) -> bool {
        self.0[..5] == LINK_LOCAL && self.0[5] < 0x10
    }

    /// Whether a VLAN tag follows the addresses.
    pub fn is_tagged(&self) -> bool {
        matches!(self.ether_type(), 0x8100 | 0x88a8)
    }

    /// The content of the outer tag, if there is one.
    pub fn tag(&self) -> Option<u16> {
        let is_tagged = self.is_tagged() && self.0.len() >= HEADER_BYTES + TAG_BYTES;
        is_tagged.then(|| u16::from_be_bytes([self.0[14], self.0[15]]))
    }

    /// Priority (PCP) of the outer tag, if there is one.
    pub fn priority(&self) -> Option<u8> {
        self.tag().map(|tag| (tag >> 13) as u8)
    }

    /// Both addresses and the content of the outer tag, or 0, of a broadcast or multicast.
    pub fn group(&self) -> Option<([u8; 12], u16)> {
        if self.0[0] & 1 == 0 {
            return None;
        }
        Some((*self.0.first_chunk()?, self.tag().unwrap_or(0)))
    }

    /// Whether the frame is for the MAC alone (IEEE 802.3 clause 31) and never forwarded.
    pub fn is_mac_control(&self) -> bool {
        self.ether_type() == TYPE_MAC_CONTROL
    }

    /// The content of a PAUSE or PFC frame; None for every other frame.
    pub fn pause(&self) -> Option<PauseRequest> {
        if !self.is_mac_control() || self.0[..6] != CONTROL_ADDRESS {
            return None;
        }
        let word = |at: usize| -> Option<u16> {
            let bytes = self.0.get(at..at + 2)?;
            Some(u16::from_be_bytes([bytes[0], bytes[1]]))
        };
        match word(14)? {
            OPCODE_PAUSE => Some(PauseRequest::All(word(16)?)),
            OPCODE_PFC => {
                let enabled = word(16)?;
                let mut quanta = [None; 8];
                for (class, quanta) in quanta.iter_mut().enumerate() {
                    let asked = word(18 + 2 * class)?;
                    *quanta = (enabled & (1 << class) != 0).then_some(asked);
                }
                Some(PauseRequest::Classes(quanta))
            }
            _ => None,
        }
    }
}

/// The content of a PAUSE or PFC frame. Times are in quanta of 512 bit times; 0 resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseRequest {
    /// IEEE 802.3x: all priorities.
    All(u16),
    /// IEEE 802.1Qbb: the priorities whose time is given.
    Classes([Option<u16>; 8]),
}

impl PauseRequest {
    /// The request of a receiver that pauses one class of a channel for a time.
    pub fn of_class(flow_control: FlowControl, class: u8, quanta: u16) -> PauseRequest {
        if flow_control.classes() == 1 {
            return PauseRequest::All(quanta);
        }
        let stopped = flow_control.mask(class);
        let of_priority = |priority: usize| (stopped >> priority & 1 == 1).then_some(quanta);
        PauseRequest::Classes(std::array::from_fn(of_priority))
    }

    /// The classes that a channel pauses at this request, with times; None if it ignores requests
    /// of this kind.
    pub fn classes(self, flow_control: FlowControl) -> Option<Vec<(u8, u16)>> {
        match (self, flow_control.classes()) {
            (PauseRequest::All(quanta), 1) => Some(vec![(0, quanta)]),
            (PauseRequest::Classes(quanta), 2..) if !flow_control.uses_credits() => {
                let times = (0..8).zip(quanta);
                let times = times
                    .filter_map(|(priority, quanta)| Some((flow_control.class(priority), quanta?)));
                Some(times.collect())
            }
            _ => None,
        }
    }
}

/// The MAC control frame of this content, without FCS.
pub fn pause_frame(source: [u8; 6], request: PauseRequest) -> [u8; MIN_FRAME_BYTES] {
    let mut frame = [0; MIN_FRAME_BYTES];
    frame[..6].copy_from_slice(&CONTROL_ADDRESS);
    frame[6..12].copy_from_slice(&source);
    frame[12..14].copy_from_slice(&TYPE_MAC_CONTROL.to_be_bytes());
    let mut put = |at: usize, value: u16| frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
    match request {
        PauseRequest::All(quanta) => {
            put(14, OPCODE_PAUSE);
            put(16, quanta);
        }
        PauseRequest::Classes(classes) => {
            put(14, OPCODE_PFC);
            let named =
                |(class, quanta): (usize, &Option<u16>)| u16::from(quanta.is_some()) << class;
            put(16, classes.iter().enumerate().map(named).sum());
            for (class, quanta) in classes.iter().enumerate() {
                put(18 + 2 * class, quanta.unwrap_or(0));
            }
        }
    }
    frame
}

/// Copy a received frame to `buffer` and insert its VLAN tag, which the kernel passes separately.
pub fn restore_tag(buffer: &mut Vec<u8>, bytes: &[u8], tag: Option<(u16, u16)>) {
    buffer.clear();
    match (tag, bytes.split_at_checked(12)) {
        (Some((tpid, tci)), Some((addresses, rest))) => {
            buffer.extend_from_slice(addresses);
            buffer.extend_from_slice(&tpid.to_be_bytes());
            buffer.extend_from_slice(&tci.to_be_bytes());
            buffer.extend_from_slice(rest);
        }
        _ => buffer.extend_from_slice(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn requests() -> impl Strategy<Value = PauseRequest> {
        prop_oneof![
            any::<u16>().prop_map(PauseRequest::All),
            any::<[Option<u16>; 8]>().prop_map(PauseRequest::Classes),
        ]
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            match Frame::new_checked(&bytes) {
                Some(frame) => {
                    let _ = (frame.priority(), frame.pause(), frame.is_mac_control());
                }
                None => prop_assert!(bytes.len() < HEADER_BYTES),
            }
        }

        #[test]
        fn pause_frames_are_parsed_to_what_they_were_built_from(request in requests(), source: [u8; 6]) {
            let frame = pause_frame(source, request);
            prop_assert_eq!(Frame::new_checked(&frame).unwrap().pause(), Some(request));
        }

        #[test]
        fn truncated_pause_frames_are_parsed_without_panic(request in requests(), length in 0usize..60) {
            let frame = pause_frame([2; 6], request);
            let _ = Frame::new_checked(&frame[..length]).and_then(|frame| frame.pause());
        }

        #[test]
        fn a_tag_goes_back_behind_the_addresses(
            bytes in proptest::collection::vec(any::<u8>(), 14..80), vid in 0u16..4096, pcp in 0u8..8,
        ) {
            let mut buffer = vec![1, 2, 3];
            let tci = u16::from(pcp) << 13 | vid;
            restore_tag(&mut buffer, &bytes, Some((0x8100, tci)));
            prop_assert_eq!(Frame::new_checked(&buffer).unwrap().priority(), Some(pcp));
            prop_assert_eq!(&buffer[16..], &bytes[12..]);
            restore_tag(&mut buffer, &bytes, None);
            prop_assert_eq!(&buffer, &bytes);
        }
    }

    #[test]
    fn a_pause_frame_to_a_station_is_not_a_request() {
        let mut frame = pause_frame([2; 6], PauseRequest::All(9));
        frame[0] = 2;
        let frame = Frame::new_checked(&frame).unwrap();
        assert!(frame.is_mac_control());
        assert_eq!(frame.pause(), None);
    }
}
