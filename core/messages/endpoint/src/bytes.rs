//! Reading big-endian numbers from the front of a byte slice.

/// Remove and return the first `N` bytes; None if there are fewer.
pub fn read_array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*front)
}

/// Remove and return the first two bytes as a number; None if there are fewer.
pub fn read_u16(bytes: &mut &[u8]) -> Option<u16> {
    read_array(bytes).map(u16::from_be_bytes)
}

/// Remove and return the first four bytes as a number; None if there are fewer.
pub fn read_u32(bytes: &mut &[u8]) -> Option<u32> {
    read_array(bytes).map(u32::from_be_bytes)
}

/// Remove and return the first eight bytes as a number; None if there are fewer.
pub fn read_u64(bytes: &mut &[u8]) -> Option<u64> {
    read_array(bytes).map(u64::from_be_bytes)
}
