//! Sums of distances, without a matrix of them.

use crate::channels::Channels;
use crate::error::{long, Malformed};

/// The hops of all shortest paths from `senders` to `receivers` (hosts of each switch) together.
///
/// Searches breadth first from 64 switches at a time, one bit each.
pub fn total(channels: &Channels, senders: &[i32], receivers: &[i32]) -> Result<i64, Malformed> {
    let switches = channels.switches();
    long("senders", senders.len(), switches)?;
    long("receivers", receivers.len(), switches)?;
    let sources: Vec<usize> = (0..switches).filter(|&switch| senders[switch] > 0).collect();
    let mut sum = 0;
    for batch in sources.chunks(u64::BITS as usize) {
        let mut seen = vec![0_u64; switches];
        for (bit, &source) in batch.iter().enumerate() {
            seen[source] |= 1 << bit;
        }
        let mut frontier = seen.clone();
        let mut hops = 0;
        while frontier.iter().any(|&bits| bits != 0) {
            hops += 1;
            let mut next = vec![0; switches];
            for (switch, &bits) in frontier.iter().enumerate().filter(|(_, &bits)| bits != 0) {
                for channel in channels.of(switch) {
                    next[channels.head[channel] as usize] |= bits;
                }
            }
            for (switch, bits) in next.iter_mut().enumerate() {
                *bits &= !seen[switch];
                seen[switch] |= *bits;
                let mut left = if receivers[switch] > 0 { *bits } else { 0 };
                while left != 0 {
                    let sends = i64::from(senders[batch[left.trailing_zeros() as usize]]);
                    sum += hops * sends * i64::from(receivers[switch]);
                    left &= left - 1;
                }
            }
            frontier = next;
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::triangle;

    #[test]
    fn hops_are_weighted_by_the_hosts_at_both_ends() {
        assert_eq!(total(&triangle(), &[1, 2, 0], &[3, 0, 5]), Ok(5 + 2 * 8));
    }
}
