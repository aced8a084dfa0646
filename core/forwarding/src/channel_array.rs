//! Arrays of channels. Those of large fabrics have an entry for each pair of switches, so each takes
//! two bytes where that is enough.

/// In an array of channels: no channel.
pub(crate) const NONE: i32 = -1;

/// Channels by place; -1 means none.
#[derive(Debug)]
pub enum ChannelArray {
    /// Channels below 65,535, which stands for none.
    Narrow(Vec<u16>),
    /// Any channels.
    Wide(Vec<i32>),
}

impl ChannelArray {
    /// The channel at a place, or -1.
    #[inline]
    pub fn get(&self, place: usize) -> i32 {
        match self {
            Self::Narrow(channels) => match channels[place] {
                u16::MAX => NONE,
                channel => i32::from(channel),
            },
            Self::Wide(channels) => channels[place],
        }
    }
}

impl Default for ChannelArray {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

impl From<&[i32]> for ChannelArray {
    fn from(channels: &[i32]) -> Self {
        let is_narrow = |channel: &i32| (NONE..i32::from(u16::MAX)).contains(channel);
        if channels.iter().all(is_narrow) {
            // -1 becomes 65,535.
            Self::Narrow(channels.iter().map(|&channel| channel as u16).collect())
        } else {
            Self::Wide(channels.to_vec())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_the_same_in_two_bytes_and_in_four() {
        for (highest, narrow) in [(3, true), (65_534, true), (65_535, false), (1 << 20, false)] {
            let channels = vec![NONE, 0, 1, highest, NONE];
            let array = ChannelArray::from(&channels[..]);
            assert_eq!(matches!(array, ChannelArray::Narrow(_)), narrow, "{highest}");
            let found: Vec<i32> = (0..5).map(|place| array.get(place)).collect();
            assert_eq!(found, channels);
        }
    }
}
