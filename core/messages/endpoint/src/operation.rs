//! Requests of one process to another and their encoding.

use std::fmt;

use crate::access_pattern::AccessPattern;
use crate::bytes::{read_array, read_u32, read_u64};
use crate::message::Failure;

/// The number of an operation at the process that requests it.
pub type OperationId = u64;

/// The status of an operation: the completion flag of paper 003.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Not complete.
    Pending,
    /// Executed by the other process.
    Done,
    /// The other process has registered no area of that number.
    NoArea,
    /// It ends beyond the area; nothing was done.
    OutOfBounds,
    /// The area may not be read, or not be written.
    NotAllowed,
    /// It is inconsistent; nothing was done.
    Malformed,
    /// This process already holds the lock.
    AlreadyHeld,
    /// This process does not hold the lock.
    NotHolder,
    /// The other process has too many requests.
    Busy,
    /// The other process does not answer; it is unknown whether it executed the operation.
    PeerLost,
    /// Another process has taken the port; it is unknown whether the operation was executed.
    PeerRestarted,
}

const STATUSES: [(Status, &str); 11] = [
    (Status::Pending, "pending"),
    (Status::Done, "done"),
    (Status::NoArea, "no area of that number is registered there"),
    (Status::OutOfBounds, "it reaches beyond the area"),
    (Status::NotAllowed, "the area is not registered for that"),
    (Status::Malformed, "the request contradicts itself"),
    (Status::AlreadyHeld, "the lock is held by this process already"),
    (Status::NotHolder, "the lock is not held by this process"),
    (Status::Busy, "the other process has too much to do"),
    (Status::PeerLost, "the other process does not answer"),
    (Status::PeerRestarted, "the other process has been replaced"),
];

impl Status {
    /// Its number, the same in C.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The status of that number.
    pub fn from_code(code: u8) -> Option<Status> {
        STATUSES.get(usize::from(code)).map(|(status, _)| *status)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(STATUSES[usize::from(self.code())].1)
    }
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Status {
        match failure {
            Failure::PeerLost => Status::PeerLost,
            Failure::PeerRestarted => Status::PeerRestarted,
        }
    }
}

/// A request or an answer. `id` is the number of the operation at the process that requests it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names of the fields are sufficient
pub enum Request<'bytes> {
    /// Write `data` to these bytes of an area. `once`: it may arrive twice, via the group and
    /// individually.
    Write { id: OperationId, area: u32, pattern: AccessPattern, data: &'bytes [u8], once: bool },
    /// Answer with these bytes of an area.
    Read { id: OperationId, area: u32, pattern: AccessPattern },
    /// Answer when the asker holds the lock.
    Lock { id: OperationId, lock: u32 },
    /// Release the lock.
    Unlock { id: OperationId, lock: u32 },
    /// The answer to any of these.
    Reply { id: OperationId, status: Status, data: &'bytes [u8] },
    /// Check that the process runs: the acknowledgement is the answer.
    Ping,
}

impl<'bytes> Request<'bytes> {
    /// Encode as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        let begin = |out: &mut Vec<u8>, code: u8, id: &OperationId| {
            out.push(code);
            out.extend_from_slice(&id.to_be_bytes());
        };
        match self {
            Request::Write { id, area, pattern, data, once } => {
                begin(&mut out, if *once { 1 } else { 0 }, id);
                out.extend_from_slice(&area.to_be_bytes());
                pattern.write(&mut out);
                out.extend_from_slice(data);
            }
            Request::Read { id, area, pattern } => {
                begin(&mut out, 2, id);
                out.extend_from_slice(&area.to_be_bytes());
                pattern.write(&mut out);
            }
            Request::Lock { id, lock } => {
                begin(&mut out, 3, id);
                out.extend_from_slice(&lock.to_be_bytes());
            }
            Request::Unlock { id, lock } => {
                begin(&mut out, 4, id);
                out.extend_from_slice(&lock.to_be_bytes());
            }
            Request::Reply { id, status, data } => {
                begin(&mut out, 5, id);
                out.push(status.code());
                out.extend_from_slice(data);
            }
            Request::Ping => begin(&mut out, 6, &0),
        }
        out
    }

    /// Decode any bytes; None if they are not a request.
    pub fn decode(mut bytes: &'bytes [u8]) -> Option<Request<'bytes>> {
        let bytes = &mut bytes;
        let [code] = read_array(bytes)?;
        let id = read_u64(bytes)?;
        Some(match code {
            0 | 1 => {
                let (area, pattern) = (read_u32(bytes)?, AccessPattern::read(bytes)?);
                Request::Write { id, area, pattern, data: bytes, once: code == 1 }
            }
            2 => Request::Read { id, area: read_u32(bytes)?, pattern: AccessPattern::read(bytes)? },
            3 => Request::Lock { id, lock: read_u32(bytes)? },
            4 => Request::Unlock { id, lock: read_u32(bytes)? },
            5 => {
                let [status] = read_array(bytes)?;
                let status =
                    Status::from_code(status).filter(|status| *status != Status::Pending)?;
                Request::Reply { id, status, data: bytes }
            }
            6 => Request::Ping,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_status_has_a_code_and_a_text() {
        for (code, (status, words)) in STATUSES.iter().enumerate() {
            assert_eq!(usize::from(status.code()), code);
            assert_eq!(status.to_string(), *words);
        }
    }

    #[test]
    fn reads_what_it_writes() {
        let pattern = AccessPattern::Stride { offset: 1, block: 2, stride: 3, count: 4 };
        for request in [
            Request::Write { id: 1, area: 2, pattern: pattern.clone(), data: b"abc", once: false },
            Request::Write { id: 1, area: 2, pattern: pattern.clone(), data: b"", once: true },
            Request::Read { id: 9, area: 2, pattern },
            Request::Lock { id: 3, lock: 7 },
            Request::Unlock { id: u64::MAX, lock: 7 },
            Request::Reply { id: 4, status: Status::OutOfBounds, data: b"x" },
            Request::Ping,
        ] {
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = Request::decode(&bytes);
        }
    }
}
