//! The 802.1Q tags of a frame.

use super::problem::Problem;

/// The 802.1Q tags of a frame, the outermost first; two at most are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tags {
    depth: u8,
    tags: [u16; 2],
}

impl Tags {
    /// One tag.
    pub fn one(tag: u16) -> Self {
        Self { depth: 1, tags: [tag, 0] }
    }

    /// Tags from the outermost on; None where there are more than two.
    pub fn new(tags: &[u16]) -> Option<Self> {
        let mut made = Self { depth: tags.len() as u8, tags: [0; 2] };
        made.tags.get_mut(..tags.len())?.copy_from_slice(tags);
        Some(made)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.depth == 0
    }

    /// The priority that flow control sees: that of the outer tag, or 0.
    pub fn priority(self) -> u8 {
        (self.tags[0] >> 13) as u8
    }

    /// How many there are.
    pub fn depth(self) -> u8 {
        self.depth
    }

    /// The outer tag, and the inner one; 0 where there is none.
    pub fn both(self) -> [u16; 2] {
        self.tags
    }

    /// The same with another priority in the outer tag.
    #[must_use]
    pub fn with_priority(mut self, priority: u8) -> Self {
        self.tags[0] = self.tags[0] & 0x1FFF | u16::from(priority) << 13;
        self
    }

    pub(super) fn outer(&mut self) -> Option<&mut u16> {
        (self.depth > 0).then_some(&mut self.tags[0])
    }

    pub(super) fn push(&mut self) -> Result<(), Problem> {
        match self.depth {
            0 => self.tags = [0, 0],
            1 => self.tags = [self.tags[0], self.tags[0]],
            _ => return Err(Problem::ThreeTags),
        }
        self.depth += 1;
        Ok(())
    }

    pub(super) fn pop(&mut self) {
        self.tags = [self.tags[1], 0];
        self.depth = self.depth.saturating_sub(1);
    }
}
