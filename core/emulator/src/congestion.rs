//! Explicit congestion notification in IP headers (RFC 3168).

use packet_io::ethernet::HEADER_BYTES;

use crate::frame::TAG_BYTES;

/// Mark a frame as one that has experienced congestion. Only packets of IPv4 and IPv6 whose senders
/// take part (ECT) can be; returns whether it is marked now.
pub fn mark(frame: &mut [u8]) -> bool {
    let mut at = HEADER_BYTES;
    let mut ether_type = word(frame, at - 2);
    while let Some(0x8100 | 0x88a8) = ether_type {
        at += TAG_BYTES;
        ether_type = word(frame, at - 2);
    }
    match ether_type {
        Some(0x0800) => mark_ipv4(&mut frame[at..]),
        Some(0x86dd) => mark_ipv6(&mut frame[at..]),
        _ => false,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.first_chunk().copied().map(u16::from_be_bytes)
}

fn mark_ipv4(packet: &mut [u8]) -> bool {
    let Some(header) = packet.first_chunk_mut::<20>() else { return false };
    if header[0] >> 4 != 4 || header[1] & 0b11 == 0 {
        return false;
    }
    let before = u16::from_be_bytes([header[0], header[1]]);
    header[1] |= 0b11;
    let after = u16::from_be_bytes([header[0], header[1]]);
    // RFC 1624, equation 3.
    let checksum = u16::from_be_bytes([header[10], header[11]]);
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    true
}

fn mark_ipv6(packet: &mut [u8]) -> bool {
    let Some(header) = packet.first_chunk_mut::<40>() else { return false };
    // The traffic class begins in the middle of the first byte; its last two bits are ECN.
    if header[0] >> 4 != 6 || header[1] & 0b0011_0000 == 0 {
        return false;
    }
    header[1] |= 0b0011_0000;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame with these tags and a packet of 20 bytes and more.
    fn frame(tags: &[u16], ether_type: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for tag in tags {
            frame.extend_from_slice(&0x8100_u16.to_be_bytes());
            frame.extend_from_slice(&tag.to_be_bytes());
        }
        frame.extend_from_slice(&ether_type.to_be_bytes());
        frame.extend_from_slice(packet);
        frame
    }

    fn checksum(header: &[u8]) -> u16 {
        let sum: u32 =
            header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        !(((sum & 0xffff) + (sum >> 16)) as u16)
    }

    proptest! {
        #[test]
        fn packets_of_ipv4_are_marked_and_their_checksums_hold(
            bytes: [u8; 19], dscp in 0u8..64, ecn in 0u8..4, tags in 0usize..3,
        ) {
            let mut packet = vec![0x45];
            packet.extend_from_slice(&bytes);
            packet[1] = dscp << 2 | ecn;
            packet[10..12].fill(0);
            let sum = checksum(&packet);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            let mut sent = frame(&vec![5; tags], 0x0800, &packet);
            let before = sent.clone();
            prop_assert_eq!(mark(&mut sent), ecn != 0);
            let header = &sent[14 + 4 * tags..];
            prop_assert_eq!(header[1], if ecn == 0 { dscp << 2 } else { dscp << 2 | 3 });
            // A header that sums up to all ones is correct.
            prop_assert_eq!(checksum(header), 0);
            if ecn == 0 {
                prop_assert_eq!(sent, before);
            }
        }

        #[test]
        fn packets_of_ipv6_are_marked(class: u8, label in 0u32..1 << 20) {
            let mut packet = [0; 40];
            let first = 6 << 28 | u32::from(class) << 20 | label;
            packet[..4].copy_from_slice(&first.to_be_bytes());
            let mut sent = frame(&[9], 0x86dd, &packet);
            prop_assert_eq!(mark(&mut sent), class & 3 != 0);
            let marked = if class & 3 == 0 { class } else { class | 3 };
            let expected = 6 << 28 | u32::from(marked) << 20 | label;
            prop_assert_eq!(&sent[18..22], expected.to_be_bytes());
        }

        #[test]
        fn any_bytes_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            mark(&mut bytes);
        }
    }

    #[test]
    fn other_frames_stay_as_they_are() {
        for mut sent in [
            frame(&[], 0x0806, &[0x45, 1, 2, 3]),
            frame(&[], 0x0800, &[0x45, 1]),
            frame(&[1], 0x86dd, &[0x60, 0x10]),
            vec![1, 2, 3],
        ] {
            let before = sent.clone();
            assert!(!mark(&mut sent));
            assert_eq!(sent, before);
        }
    }
}
