//! Input as a sequence of steps: a byte that says what to do, the length of what follows (2 bytes,
//! big endian), and that many bytes, or as many as there are.

/// The steps of an input.
pub struct Steps<'input>(pub &'input [u8]);

impl<'input> Iterator for Steps<'input> {
    type Item = (u8, &'input [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[action, high, low], rest) = self.0.split_first_chunk()?;
        let length = usize::from(u16::from_be_bytes([high, low])).min(rest.len());
        let (bytes, rest) = rest.split_at(length);
        self.0 = rest;
        Some((action, bytes))
    }
}
