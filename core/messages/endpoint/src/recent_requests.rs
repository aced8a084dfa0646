//! Requests that may arrive twice, via a group and individually, but must be executed once.

use std::collections::BTreeMap;

use crate::address::Address;
use crate::operation::{OperationId, Status};

/// Statuses kept for one process. It has fewer pending operations, so an older request is a late
/// copy.
const KEPT: usize = 1024;
/// Processes whose requests are remembered; the one that was silent for longest is forgotten.
const MAX_PROCESSES: usize = 4096;

/// The recent requests of one process.
#[derive(Debug, Default)]
struct Requests {
    statuses: BTreeMap<OperationId, Option<Status>>,
    oldest: OperationId,
    last_use: u64,
}

/// The recent requests of all processes. The upper half of a request's number identifies the
/// process among those that have had its address.
#[derive(Debug, Default)]
pub struct RecentRequests {
    processes: BTreeMap<(Address, OperationId), Requests>,
    uses: u64,
}

impl RecentRequests {
    /// The status of this request, which is None if the request is new. Returns None if the request
    /// is too old to be remembered; it was answered long ago.
    pub fn status(&mut self, from: Address, id: OperationId) -> Option<&mut Option<Status>> {
        let process = (from, id >> 32);
        if self.processes.len() >= MAX_PROCESSES && !self.processes.contains_key(&process) {
            let oldest = self.processes.iter().min_by_key(|(_, requests)| requests.last_use);
            let (&oldest, _) = oldest?;
            self.processes.remove(&oldest);
        }
        let requests = self.processes.entry(process).or_default();
        self.uses += 1;
        requests.last_use = self.uses;
        requests.status(id)
    }
}

impl Requests {
    fn status(&mut self, id: OperationId) -> Option<&mut Option<Status>> {
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
    use crate::address::Mac;

    fn address(number: usize) -> Address {
        Address { mac: Mac([2, 0, 0, 0, (number >> 8) as u8, number as u8]), port: 7 }
    }

    #[test]
    fn recent_requests_are_remembered_and_older_ones_refused() {
        let mut recent = RecentRequests::default();
        for id in 0..2 * KEPT as u64 {
            assert_eq!(recent.status(address(1), id), Some(&mut None));
            *recent.status(address(1), id).unwrap() = Some(Status::Done);
        }
        let mut status = |id: usize| recent.status(address(1), id as u64).copied();
        assert_eq!(status(2 * KEPT - 1), Some(Some(Status::Done)));
        assert_eq!(status(KEPT), Some(Some(Status::Done)));
        assert_eq!(status(KEPT - 1), None);
    }

    #[test]
    fn a_restarted_process_is_told_from_its_predecessor() {
        let mut recent = RecentRequests::default();
        *recent.status(address(1), 9 << 32).unwrap() = Some(Status::Done);
        assert_eq!(recent.status(address(1), 8 << 32), Some(&mut None));
        assert_eq!(recent.status(address(1), 9 << 32), Some(&mut Some(Status::Done)));
    }

    #[test]
    fn the_process_that_was_silent_for_longest_is_forgotten() {
        let mut recent = RecentRequests::default();
        for sender in 0..=MAX_PROCESSES {
            *recent.status(address(sender), 5).unwrap() = Some(Status::Done);
        }
        assert_eq!(recent.processes.len(), MAX_PROCESSES);
        assert_eq!(recent.status(address(1), 5), Some(&mut Some(Status::Done)));
        assert_eq!(recent.status(address(0), 5), Some(&mut None));
    }
}
