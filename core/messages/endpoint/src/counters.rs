//! Counters of an endpoint.

/// What an endpoint has sent, received and refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames given to the interface.
    pub tx_frames: u64,
    /// Frames received from it.
    pub rx_frames: u64,
    /// Frames of streams that were sent again.
    pub resent_frames: u64,
    /// Frames of streams that had been received before.
    pub duplicate_frames: u64,
    /// Frames that are too short, of another kind, or inconsistent.
    pub malformed_frames: u64,
    /// Frames whose CRC is wrong.
    pub damaged_frames: u64,
    /// Frames for other addresses, and answers to what this process has not sent.
    pub stray_frames: u64,
    /// Frames for which there was no room or no buffer.
    pub refused_frames: u64,
    /// Datagrams of which a part was lost.
    pub incomplete_messages: u64,
    /// How often the interface had no credit or no room for the sender.
    pub held_back: u64,
}
