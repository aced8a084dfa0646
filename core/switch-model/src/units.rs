//! Time, and the bytes that a frame occupies on the wire.

/// A point in time or a duration in picoseconds; 2^64 of them are 213 days.
pub type Time = u64;

/// One microsecond.
pub const MICROSECOND: Time = 1_000_000;
/// One second.
pub const SECOND: Time = 1_000_000_000_000;
/// Preamble, start delimiter and interframe gap: wire time that each frame takes in addition to its
/// bytes.
pub const GAP_BYTES: u32 = 20;
/// The shortest frame, FCS included; shorter frames are padded on the wire.
pub const MIN_FRAME_BYTES: u32 = 64;
/// A PAUSE or PFC frame, FCS included.
pub const PAUSE_FRAME_BYTES: u32 = MIN_FRAME_BYTES;
/// Bit times of a quantum, the unit of pauses in PAUSE and PFC frames.
pub const QUANTUM_BITS: u32 = 512;
/// The longest tagged frame of 1,500 bytes of payload, FCS included.
pub const LONGEST_FRAME_BYTES: u32 = 1522;
/// Ethernet header, 802.1Q tag and FCS.
const TAGGED_HEADER_BYTES: u32 = 22;

/// Bytes of wire time that a frame takes, gap included, from its length with FCS.
pub fn wire_bytes(frame_bytes: u32) -> u32 {
    frame_bytes.max(MIN_FRAME_BYTES) + GAP_BYTES
}

/// Time that `bytes` bytes take at `rate_bps` bits a second.
pub fn transmission_time(bytes: u32, rate_bps: u64) -> Time {
    u64::from(bytes) * (8 * SECOND) / rate_bps
}

/// The longest frame, FCS included, that buffers must have room for if packets have at most
/// `packet_bytes` bytes of payload; never less than [`LONGEST_FRAME_BYTES`].
pub fn longest_frame_bytes(packet_bytes: u32) -> u32 {
    LONGEST_FRAME_BYTES.max(packet_bytes.saturating_add(TAGGED_HEADER_BYTES))
}
