//! Requests that may arrive twice, via a group and individually, but must be executed once.

use std::collections::BTreeMap;

use crate::operation::{OperationId, Status};

/// Statuses kept for one sender. It has fewer pending operations, so an older request is a late
/// copy.
const KEPT: usize = 1024;

/// The recent requests of one sender.
#[derive(Debug, Default)]
pub struct RecentRequests {
    statuses: BTreeMap<OperationId, Option<Status>>,
    oldest: OperationId,
}

impl RecentRequests {
    /// The status of this request, which is None if the request is new. Returns None if the request
    /// is too old to be remembered; it was answered long ago.
    pub fn status(&mut self, id: OperationId) -> Option<&mut Option<Status>> {
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
    fn recent_requests_are_remembered_and_older_ones_refused() {
        let mut recent = RecentRequests::default();
        for id in 0..2 * KEPT as u64 {
            assert_eq!(recent.status(id), Some(&mut None));
            *recent.status(id).unwrap() = Some(Status::Done);
        }
        assert_eq!(recent.status(2 * KEPT as u64 - 1), Some(&mut Some(Status::Done)));
        assert_eq!(recent.status(KEPT as u64), Some(&mut Some(Status::Done)));
        assert_eq!(recent.status(KEPT as u64 - 1), None);
    }
}
