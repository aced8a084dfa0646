//! Requests that may come twice, by a group and by themselves, and are to be carried out once.

use std::collections::BTreeMap;

use crate::operation::{OperationId, Status};

/// Statuses kept of one sender. It has fewer operations under way, so an older one is a late copy.
const KEPT: usize = 1024;

/// What one sender has asked for lately.
#[derive(Debug, Default)]
pub struct Seen {
    statuses: BTreeMap<OperationId, Option<Status>>,
    oldest: OperationId,
}

impl Seen {
    /// Where the status of this request is kept: none in it yet when the request is new. None when it is so
    /// old that it has been answered long ago.
    pub fn first(&mut self, id: OperationId) -> Option<&mut Option<Status>> {
        if id < self.oldest {
            return None;
        }
        if self.statuses.len() == KEPT && !self.statuses.contains_key(&id) {
            let (first, _) = self.statuses.pop_first()?;
            self.oldest = first + 1;
            if id < self.oldest {
                return None;
            }
        }
        Some(self.statuses.entry(id).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_what_it_has_seen_and_refuses_what_it_has_forgotten() {
        let mut seen = Seen::default();
        for id in 0..2 * KEPT as u64 {
            assert_eq!(seen.first(id), Some(&mut None));
            *seen.first(id).unwrap() = Some(Status::Done);
        }
        assert_eq!(seen.first(2 * KEPT as u64 - 1), Some(&mut Some(Status::Done)));
        assert_eq!(seen.first(KEPT as u64), Some(&mut Some(Status::Done)));
        assert_eq!(seen.first(KEPT as u64 - 1), None);
    }
}
