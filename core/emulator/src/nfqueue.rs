//! Messages of nfnetlink_queue (Linux uapi: linux/netfilter/nfnetlink_queue.h).

const SUBSYSTEM: u16 = 3 << 8;
const PACKET: u16 = SUBSYSTEM;
const CONFIG: u16 = SUBSYSTEM | 2;
const VERDICT_BATCH: u16 = SUBSYSTEM | 3;
const ERROR: u16 = 2;

const FLAG_REQUEST: u16 = 1;
const FLAG_ACK: u16 = 4;

const ATTRIBUTE_PACKET_HEADER: u16 = 1;
const ATTRIBUTE_VERDICT: u16 = 2;
const ATTRIBUTE_PAYLOAD: u16 = 10;
const ATTRIBUTE_WHOLE_LENGTH: u16 = 13;
const CONFIG_COMMAND: u16 = 1;
const CONFIG_COPY: u16 = 2;
const CONFIG_LIMIT: u16 = 3;

const HEADER_BYTES: usize = 20;
const COPY_PACKET: u8 = 2;
const ACCEPT: u32 = 1;
/// Packets that the kernel may hold; a host's sockets block long before that.
const LIMIT: u32 = 65536;

/// A packet that waits for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its number; numbers ascend.
    pub id: u32,
    /// Its length from the IP header on, in bytes.
    pub bytes: u32,
    /// Length of the IP header that each of its fragments has.
    pub header: u32,
}

/// Headers of IPv4 without options, and of IPv6 with that of a fragment.
const IPV4_HEADER: u32 = 20;
const IPV6_HEADER: u32 = 48;

impl Held {
    /// A packet, by the first byte of its IP header, which has the version and the length of an
    /// IPv4 header.
    pub fn new(id: u32, bytes: u32, first: Option<u8>) -> Held {
        let header = match first.map_or((4, 5), |first| (first >> 4, first & 0xf)) {
            (6, _) => IPV6_HEADER,
            (4, words @ 5..) => 4 * u32::from(words),
            _ => IPV4_HEADER,
        };
        Held { id, bytes, header }
    }

    /// The lengths of the packets that the kernel sends for it through an interface of this MTU:
    /// its own, or those of its fragments (RFC 791, RFC 8200).
    pub fn sent(&self, mtu: u32) -> impl Iterator<Item = u32> {
        let Held { bytes, header, .. } = *self;
        // The payload of all fragments but the last is a multiple of eight bytes.
        let most = (mtu.saturating_sub(header) & !7).max(8);
        let whole = bytes <= mtu;
        // NFQUEUE sees an IPv6 packet without the header of a fragment.
        let mut left = bytes.saturating_sub(if header == IPV6_HEADER { 40 } else { header });
        let mut done = false;
        std::iter::from_fn(move || {
            if done {
                return None;
            }
            if whole {
                done = true;
                return Some(bytes);
            }
            let payload = left.min(most);
            left -= payload;
            done = left == 0;
            Some(header + payload)
        })
    }
}

/// Bind this socket to queue `number`.
pub fn bind(number: u16) -> Vec<u8> {
    message(CONFIG, FLAG_REQUEST | FLAG_ACK, number, &[(CONFIG_COMMAND, &[1, 0, 0, 0])])
}

/// Ask for a single byte of each packet; the kernel then reports the packet's length as well.
pub fn configure(number: u16) -> Vec<u8> {
    let copy = [0, 0, 0, 1, COPY_PACKET];
    let attributes: [(u16, &[u8]); 2] =
        [(CONFIG_COPY, &copy), (CONFIG_LIMIT, &LIMIT.to_be_bytes())];
    message(CONFIG, FLAG_REQUEST | FLAG_ACK, number, &attributes)
}

/// Accept all packets up to `id`.
pub fn accept_up_to(number: u16, id: u32) -> Vec<u8> {
    let mut verdict = [0; 8];
    verdict[..4].copy_from_slice(&ACCEPT.to_be_bytes());
    verdict[4..].copy_from_slice(&id.to_be_bytes());
    message(VERDICT_BATCH, FLAG_REQUEST, number, &[(ATTRIBUTE_VERDICT, &verdict)])
}

fn message(kind: u16, flags: u16, number: u16, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    bytes[18..20].copy_from_slice(&number.to_be_bytes());
    for (kind, value) in attributes {
        bytes.extend((value.len() as u16 + 4).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(*value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    let length = bytes.len() as u32;
    bytes[..4].copy_from_slice(&length.to_ne_bytes());
    bytes
}

/// The packets that a datagram from the kernel announces.
pub fn packets(datagram: &[u8]) -> impl Iterator<Item = Held> + '_ {
    messages(datagram).filter(|(kind, _)| *kind == PACKET).filter_map(|(_, body)| packet(body))
}

/// The packets that the kernel has dropped since queue `number` exists, by
/// `/proc/net/netfilter/nfnetlink_queue`: for want of room in the queue, or in the socket's buffer.
/// None if the queue is not there.
pub fn dropped(table: &str, number: u16) -> Option<u64> {
    table.lines().find_map(|line| {
        // Queue, port, waiting, mode and range of copies, dropped, dropped for the reader, last id.
        let mut fields = line.split_ascii_whitespace();
        if fields.next()?.parse() != Ok(number) {
            return None;
        }
        let mut counts = fields.skip(4).map(|field| field.parse::<u32>());
        Some(u64::from(counts.next()?.ok()?) + u64::from(counts.next()?.ok()?))
    })
}

/// The error number in the acknowledgement of a request, 0 for success.
pub fn acknowledgement(datagram: &[u8]) -> Option<i32> {
    let (_, body) = messages(datagram).find(|(kind, _)| *kind == ERROR)?;
    Some(-i32::from_ne_bytes(*body.first_chunk()?)).filter(|code| *code >= 0)
}

/// Each netlink message as its type and what follows the 16-byte header.
fn messages(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(rest.get(4..6)?.try_into().ok()?);
        let body = rest.get(16..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

fn packet(body: &[u8]) -> Option<Held> {
    let mut rest = body.get(4..)?;
    let (mut id, mut copied, mut whole, mut first) = (None, None, None, None);
    while let Some(head) = rest.first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let kind = u16::from_ne_bytes([head[2], head[3]]) & 0x3fff;
        let value = rest.get(4..length)?;
        match kind {
            ATTRIBUTE_PACKET_HEADER => id = Some(u32::from_be_bytes(*value.first_chunk()?)),
            ATTRIBUTE_PAYLOAD => {
                copied = Some(value.len() as u32);
                first = value.first().copied();
            }
            ATTRIBUTE_WHOLE_LENGTH => whole = Some(u32::from_be_bytes(*value.first_chunk()?)),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(Held::new(id?, whole.or(copied)?, first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn announcement(id: u32, bytes: u32) -> Vec<u8> {
        let mut header = [0; 7];
        header[..4].copy_from_slice(&id.to_be_bytes());
        let whole = bytes.to_be_bytes();
        let attributes: [(u16, &[u8]); 3] = [
            (ATTRIBUTE_PACKET_HEADER, &header),
            (ATTRIBUTE_PAYLOAD, &[0x45]),
            (ATTRIBUTE_WHOLE_LENGTH, &whole),
        ];
        message(PACKET, 0, 1, &attributes)
    }

    #[test]
    fn reads_packets_of_one_datagram() {
        let datagram = [announcement(7, 1500), announcement(8, 60)].concat();
        let held: Vec<Held> = packets(&datagram).collect();
        assert_eq!(held, [Held::new(7, 1500, Some(0x45)), Held::new(8, 60, Some(0x45))]);
    }

    #[test]
    fn a_packet_without_its_whole_length_was_copied_whole() {
        let attributes: [(u16, &[u8]); 2] =
            [(ATTRIBUTE_PACKET_HEADER, &[0, 0, 0, 9, 8, 0, 3]), (ATTRIBUTE_PAYLOAD, &[0; 1])];
        let held: Vec<Held> = packets(&message(PACKET, 0, 1, &attributes)).collect();
        assert_eq!(held, [Held::new(9, 1, Some(0))]);
    }

    #[test]
    fn a_long_packet_is_sent_as_fragments() {
        let sent = |bytes, first| Held::new(1, bytes, Some(first)).sent(1500).collect::<Vec<_>>();
        assert_eq!(sent(1500, 0x45), [1500]);
        assert_eq!(sent(4028, 0x45), [1500, 1500, 1068]);
        assert_eq!(sent(1501, 0x45), [1500, 21]);
        // With 4 bytes of options, only 1472 bytes of payload are a multiple of eight.
        assert_eq!(sent(3000, 0x46), [1496, 1496, 56]);
        assert_eq!(sent(4048, 0x60), [1496, 1496, 1160]);
    }

    #[test]
    fn counts_what_the_kernel_has_dropped() {
        let table = "    0   1234     0 2 65531     9     9        1  1\n\
                     \x20   1  27881 65536 2     1   117     4    66000  1\n";
        assert_eq!(dropped(table, 1), Some(121));
        assert_eq!(dropped(table, 0), Some(18));
        assert_eq!(dropped(table, 2), None);
        assert_eq!(dropped("1 2 3", 1), None);
        assert_eq!(dropped("1 1 1 1 1 x 1 1", 1), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = packets(&bytes).count();
            let _ = acknowledgement(&bytes);
        }

        #[test]
        fn damaged_messages_are_parsed_without_panic(id: u32, at in 0usize..48, value: u8) {
            let mut bytes = announcement(id, 100);
            let at = at % bytes.len();
            bytes[at] = value;
            prop_assert!(packets(&bytes).count() <= 3);
        }
    }
}
