//! Limits of fabrics and of what they carry, for all crates. Python reads them in
//! `knotless/base/model_limits.py`.

/// Priorities of 802.1Q.
pub const PRIORITIES: usize = 8;
/// The highest VLAN of 802.1Q.
pub const LAST_VLAN: u16 = 4094;
/// The highest number of a port of Open vSwitch.
pub const MAX_PORT: u32 = 0xFEFF;
/// Messages and buffers have fewer bytes.
pub const MAX_BYTES: u64 = 1 << 40;
/// The most bytes of a message in one packet.
pub const MAX_PACKET_BYTES: u32 = 65_000;
/// The longest delay of a link.
pub const MAX_DELAY_US: f64 = 10_000_000.0;
