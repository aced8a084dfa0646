//! Which bytes of an area an operation reads or writes: the variants of paper 003's primitives.

use std::ops::Range;

use crate::bytes::{read_array, read_u32, read_u64};

/// Bytes of a remote area, relative to its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessPattern {
    /// One range.
    Contiguous {
        /// Where it begins.
        offset: u64,
        /// Its length.
        bytes: u64,
    },
    /// Ranges of equal length at equal distances.
    Stride {
        /// Where the first begins.
        offset: u64,
        /// Length of each.
        block: u32,
        /// From the beginning of one to that of the next; at least `block`.
        stride: u32,
        /// How many.
        count: u32,
    },
    /// Those elements of an array whose bit is set.
    Bitmap {
        /// Where the array begins.
        offset: u64,
        /// Length of an element in bytes.
        element: u32,
        /// Number of elements.
        elements: u32,
        /// Element i is bit `i % 8` of byte `i / 8`.
        bits: Vec<u8>,
    },
    /// Any ranges (offset, bytes), ascending and disjoint: the changes since a twin was made.
    Runs(Vec<(u64, u32)>),
}

impl AccessPattern {
    /// The number of bytes it names and the end of the last one; None if it is inconsistent.
    pub fn extent(&self) -> Option<(u64, u64)> {
        match self {
            AccessPattern::Contiguous { offset, bytes } => {
                Some((*bytes, offset.checked_add(*bytes)?))
            }
            &AccessPattern::Stride { offset, block, stride, count } => {
                if block == 0 || stride < block || count == 0 {
                    return None;
                }
                let last = u64::from(stride) * u64::from(count - 1) + u64::from(block);
                Some((u64::from(block) * u64::from(count), offset.checked_add(last)?))
            }
            AccessPattern::Bitmap { offset, element, elements, bits } => {
                let whole = bits.len() == elements.div_ceil(8) as usize;
                let spare = 8 * bits.len() as u64 - u64::from(*elements).min(8 * bits.len() as u64);
                let padded =
                    bits.last().is_some_and(|last| u64::from(last.leading_zeros()) < spare);
                if !whole || padded || *element == 0 {
                    return None;
                }
                let set: u64 = bits.iter().map(|byte| u64::from(byte.count_ones())).sum();
                let end = offset.checked_add(u64::from(*element) * u64::from(*elements))?;
                Some((set * u64::from(*element), end))
            }
            AccessPattern::Runs(runs) => {
                let (mut total, mut end) = (0, 0);
                for &(offset, bytes) in runs {
                    if bytes == 0 || offset < end {
                        return None;
                    }
                    total += u64::from(bytes);
                    end = offset.checked_add(bytes.into())?;
                }
                Some((total, end))
            }
        }
    }

    /// Visit its ranges in ascending order. The caller has checked [`AccessPattern::extent`] against the
    /// area.
    pub fn each(&self, mut visit: impl FnMut(Range<usize>)) {
        let mut range = |offset: u64, bytes: u64| visit(offset as usize..(offset + bytes) as usize);
        match self {
            AccessPattern::Contiguous { offset, bytes } => range(*offset, *bytes),
            &AccessPattern::Stride { offset, block, stride, count } => {
                for index in 0..u64::from(count) {
                    range(offset + index * u64::from(stride), block.into());
                }
            }
            AccessPattern::Bitmap { offset, element, elements, bits } => {
                let is_set = |index: &u32| bits[*index as usize / 8] >> (index % 8) & 1 == 1;
                for index in (0..*elements).filter(is_set) {
                    range(offset + u64::from(index) * u64::from(*element), (*element).into());
                }
            }
            AccessPattern::Runs(runs) => {
                runs.iter().for_each(|&(at, bytes)| range(at, bytes.into()))
            }
        }
    }

    /// Append its encoding.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            AccessPattern::Contiguous { offset, bytes } => {
                out.push(0);
                out.extend_from_slice(&offset.to_be_bytes());
                out.extend_from_slice(&bytes.to_be_bytes());
            }
            AccessPattern::Stride { offset, block, stride, count } => {
                out.push(1);
                out.extend_from_slice(&offset.to_be_bytes());
                for word in [block, stride, count] {
                    out.extend_from_slice(&word.to_be_bytes());
                }
            }
            AccessPattern::Bitmap { offset, element, elements, bits } => {
                out.push(2);
                out.extend_from_slice(&offset.to_be_bytes());
                out.extend_from_slice(&element.to_be_bytes());
                out.extend_from_slice(&elements.to_be_bytes());
                out.extend_from_slice(bits);
            }
            AccessPattern::Runs(runs) => {
                out.push(3);
                out.extend_from_slice(&(runs.len() as u32).to_be_bytes());
                for (offset, bytes) in runs {
                    out.extend_from_slice(&offset.to_be_bytes());
                    out.extend_from_slice(&bytes.to_be_bytes());
                }
            }
        }
    }

    /// Remove an encoding from the front of `bytes`; None if it is invalid.
    pub fn read(bytes: &mut &[u8]) -> Option<AccessPattern> {
        let [kind] = read_array(bytes)?;
        Some(match kind {
            0 => AccessPattern::Contiguous { offset: read_u64(bytes)?, bytes: read_u64(bytes)? },
            1 => AccessPattern::Stride {
                offset: read_u64(bytes)?,
                block: read_u32(bytes)?,
                stride: read_u32(bytes)?,
                count: read_u32(bytes)?,
            },
            2 => {
                let (offset, element, elements) =
                    (read_u64(bytes)?, read_u32(bytes)?, read_u32(bytes)?);
                let (bits, rest) = bytes.split_at_checked(elements.div_ceil(8) as usize)?;
                *bytes = rest;
                AccessPattern::Bitmap { offset, element, elements, bits: bits.to_vec() }
            }
            3 => {
                let count = read_u32(bytes)? as usize;
                // Allocate no more than the bytes can hold: the count is not trusted.
                let mut runs = Vec::with_capacity(count.min(bytes.len() / 12));
                for _ in 0..count {
                    runs.push((read_u64(bytes)?, read_u32(bytes)?));
                }
                AccessPattern::Runs(runs)
            }
            _ => return None,
        })
    }
}

/// A copy of memory, to find out later which bytes have changed.
///
/// Only changed bytes are sent, so several writers may change different bytes of an area at the
/// same time (multiple writer protocol).
#[derive(Clone, Debug)]
pub struct Twin {
    offset: u64,
    copy: Vec<u8>,
}

impl Twin {
    /// A copy of bytes that begin at `offset` of their area.
    pub fn new(offset: u64, bytes: Vec<u8>) -> Twin {
        Twin { offset, copy: bytes }
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.copy.len()
    }

    /// Return the ranges in which `now`, as long as the twin, differs, and their bytes. The twin
    /// becomes `now`.
    pub fn diff(&mut self, now: &[u8]) -> (AccessPattern, Vec<u8>) {
        let (mut runs, mut data) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < now.len() {
            if now[at] == self.copy[at] {
                at += 1;
                continue;
            }
            let same = now[at..].iter().zip(&self.copy[at..]).position(|(a, b)| a == b);
            let end = same.map_or(now.len(), |length| at + length).min(at + u32::MAX as usize);
            runs.push((self.offset + at as u64, (end - at) as u32));
            data.extend_from_slice(&now[at..end]);
            at = end;
        }
        self.copy.copy_from_slice(now);
        (AccessPattern::Runs(runs), data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn patterns() -> impl Strategy<Value = AccessPattern> {
        prop_oneof![
            (any::<u64>(), any::<u64>())
                .prop_map(|(offset, bytes)| AccessPattern::Contiguous { offset, bytes }),
            (0u64..300, 0u32..9, 0u32..20, 0u32..20).prop_map(|(offset, block, stride, count)| {
                AccessPattern::Stride { offset, block, stride, count }
            }),
            (any::<u64>(), any::<[u32; 3]>()).prop_map(|(offset, [block, stride, count])| {
                AccessPattern::Stride { offset, block, stride, count }
            }),
            (0u64..300, 0u32..9, proptest::collection::vec(any::<u8>(), 0..9), 0u32..9).prop_map(
                |(offset, element, bits, less)| AccessPattern::Bitmap {
                    offset,
                    element,
                    elements: (8 * bits.len() as u32).saturating_sub(less),
                    bits,
                }
            ),
            proptest::collection::vec((0u64..500, 0u32..9), 0..5).prop_map(AccessPattern::Runs),
            proptest::collection::vec(any::<(u64, u32)>(), 0..5).prop_map(AccessPattern::Runs),
        ]
    }

    proptest! {
        #[test]
        fn each_visits_what_extent_reports(pattern in patterns()) {
            if let Some((bytes, end)) = pattern.extent().filter(|&(_, end)| end <= 100_000) {
                let (mut total, mut last) = (0, 0);
                pattern.each(|range| {
                    assert!(range.start >= last && range.end as u64 <= end);
                    total += range.len() as u64;
                    last = range.end;
                });
                prop_assert_eq!(total, bytes);
            }
        }

        #[test]
        fn reads_what_it_writes(pattern in patterns(), more in proptest::collection::vec(any::<u8>(), 0..9)) {
            let whole = match &pattern {
                AccessPattern::Bitmap { elements, bits, .. } => bits.len() == elements.div_ceil(8) as usize,
                _ => true,
            };
            if !whole {
                return Ok(()); // invalid, so it is never written
            }
            let mut bytes = Vec::new();
            pattern.write(&mut bytes);
            bytes.extend_from_slice(&more);
            let mut rest = &bytes[..];
            prop_assert_eq!(AccessPattern::read(&mut rest), Some(pattern));
            prop_assert_eq!(rest, &more[..]);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Some(pattern) = AccessPattern::read(&mut &bytes[..]) {
                let _ = pattern.extent();
            }
        }

        #[test]
        fn a_diff_changes_exactly_the_bytes_that_differ(
            old in proptest::collection::vec(0u8..3, 1..99), seed in proptest::collection::vec(0u8..3, 99),
        ) {
            let new = &seed[..old.len()];
            let mut twin = Twin::new(7, old.clone());
            let (pattern, data) = twin.diff(new);
            let mut area = [vec![9; 7], old.clone()].concat();
            let mut at = 0;
            pattern.each(|range| {
                for place in range {
                    assert_ne!(area[place], data[at]);
                    area[place] = data[at];
                    at += 1;
                }
            });
            prop_assert_eq!(&area[7..], new);
            prop_assert!(twin.diff(new).1.is_empty());
        }
    }
}
