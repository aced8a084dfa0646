//! The addresses of hosts, in blocks, and which block each unused address belongs to.
//!
//! Packets to an address that no host has must not loop. So each such address belongs to the block
//! of some host: all switches forward it to that host's switch, which drops it. The block is the
//! one on whose branch the address lies in the binary trie of all hosts' addresses.

use rustc_hash::FxHashSet;

use super::bits::BitOrder;
use crate::state::State;

/// The most addresses that are listed; see [`Space::listed`].
const MOST_LISTED: usize = 1 << 20;

/// Hosts that all switches except their own treat alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Their switch.
    pub switch: u32,
    /// One of them.
    pub host: u32,
    /// Its address.
    pub address: u64,
}

/// The addresses of the hosts.
#[derive(Debug)]
pub struct Space {
    /// Ascending by address.
    pub blocks: Vec<Block>,
    /// By host: its block.
    pub block_of: Vec<u32>,
    /// Hosts, one of each block, row of classes and switch with another class than the row's, with
    /// this switch: see [`Self::representatives`].
    kinds: Vec<(Option<u32>, u32)>,
    /// By switch: the hosts that have another class there than their row.
    own_at: Vec<Vec<u32>>,
    /// The bits in which all addresses are equal.
    pub constant: u64,
    /// The values of those bits.
    pub prefix: u64,
    /// The bits that distinguish blocks.
    pub key_bits: u64,
    /// All values of the key bits, ascending, with the block that each belongs to. None if they are
    /// too many: then only the natural order of bits can be used.
    pub listed: Option<Vec<(u64, u32)>>,
}

const ADDRESS: u64 = (1 << 48) - 1;

impl Space {
    /// Puts hosts into blocks: by switch, if their addresses allow it and `by_switch`, else each
    /// by itself.
    pub fn new(state: &State, macs: &[u64], by_switch: bool) -> Self {
        let mut hosts: Vec<u32> = (0..macs.len() as u32).collect();
        hosts.sort_unstable_by_key(|&host| macs[host as usize]);
        let switch = |host: u32| state.fabric.enters(state.fabric.host_channel(host)).0;
        let all = macs.iter().fold(0, |all, mac| all | mac);
        let constant = ADDRESS & !(all ^ macs.iter().fold(ADDRESS, |common, mac| common & mac));
        let single = |host: u32| Block { switch: switch(host), host, address: macs[host as usize] };
        let mut blocks: Vec<Block> = hosts.iter().map(|&host| single(host)).collect();
        if by_switch {
            let runs = hosts.chunk_by(|&a, &b| switch(a) == switch(b));
            let together: Vec<Block> = runs.map(|run| single(run[0])).collect();
            let mut switches: Vec<u32> = together.iter().map(|block| block.switch).collect();
            switches.sort_unstable();
            let once = switches.windows(2).all(|pair| pair[0] != pair[1]);
            if once && runs_are_branches(&hosts, macs, switch) {
                blocks = together;
            }
        }
        let lowest =
            blocks.windows(2).map(|pair| (pair[0].address ^ pair[1].address).ilog2()).min();
        let key_bits = lowest.map_or(0, |bit| (ADDRESS & !constant) >> bit << bit);
        let per_host = blocks.len() == hosts.len();
        let mut block_of = vec![0; macs.len()];
        let mut block = 0;
        for (i, &host) in hosts.iter().enumerate() {
            if i > 0 && (per_host || switch(hosts[i - 1]) != switch(host)) {
                block += 1;
            }
            block_of[host as usize] = block;
        }
        let prefix = macs.first().map_or(0, |mac| mac & constant);
        let listed = owners(&blocks, key_bits);
        let mut own_at = vec![Vec::new(); state.fabric.switches()];
        let (mut seen, mut kinds) = (FxHashSet::default(), Vec::new());
        for (host, &block) in (0..).zip(&block_of) {
            let (row, own) = state.classes().kind(host);
            if let Some(own) = own {
                own_at[own as usize].push(host);
            }
            if seen.insert((block, row, own)) {
                kinds.push((own, host));
            }
        }
        Self { blocks, block_of, kinds, own_at, constant, prefix, key_bits, listed }
    }

    /// Hosts that have all classes at a switch that the hosts of each block have.
    pub fn representatives(&self, switch: u32) -> impl Iterator<Item = u32> + '_ {
        let others = self.kinds.iter().filter(move |(own, _)| *own != Some(switch));
        others.map(|&(_, host)| host).chain(self.own_at[switch as usize].iter().copied())
    }
}

/// Whether the hosts of each switch have a branch of the trie of addresses to themselves.
fn runs_are_branches(hosts: &[u32], macs: &[u64], switch: impl Fn(u32) -> u32) -> bool {
    let part = |i: usize| (macs[hosts[i] as usize] ^ macs[hosts[i + 1] as usize]).ilog2();
    let mut inside: Option<u32> = None; // the highest bit that parts hosts of the current run
    let mut before = u32::MAX; // the bit that parted it from the last run
    for i in 0..hosts.len().saturating_sub(1) {
        let bit = part(i);
        if switch(hosts[i]) == switch(hosts[i + 1]) {
            inside = inside.max(Some(bit));
            if bit > before {
                return false;
            }
        } else {
            if inside.is_some_and(|inside| inside > bit) {
                return false;
            }
            (inside, before) = (None, bit);
        }
    }
    true
}

/// Lists all values of the key bits, ascending, each with its block.
fn owners(blocks: &[Block], key_bits: u64) -> Option<Vec<(u64, u32)>> {
    let bits = key_bits.count_ones();
    let most = MOST_LISTED.min((8 * blocks.len()).max(4096));
    if bits >= usize::BITS || 1_usize << bits > most {
        return None;
    }
    let order = BitOrder::natural(key_bits);
    let keys: Vec<u64> = blocks.iter().map(|block| order.key(block.address)).collect();
    let listed = (0..).zip(owned(&keys, 0, bits));
    Some(listed.map(|(key, block)| (order.address(key), block)).collect())
}

/// The block of each value of the lowest `bits` bits. `keys` are those of the blocks from `first`
/// on.
fn owned(keys: &[u64], first: u32, bits: u32) -> Vec<u32> {
    if let [_] = keys {
        return vec![first; 1 << bits];
    }
    let Some(bit) = bits.checked_sub(1) else { return Vec::new() };
    let split = keys.partition_point(|key| key >> bit & 1 == 0);
    let mut all = owned(&keys[..split], first, bit);
    all.extend(owned(&keys[split..], first + split as u32, bit));
    // Where there is nothing on one side, it belongs to what is on the other.
    if split == 0 || split == keys.len() {
        all.extend_from_within(..);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_addresses_belong_to_the_nearest_branch() {
        assert_eq!(owned(&[0b000, 0b001, 0b110], 0, 3), [0, 1, 0, 1, 2, 2, 2, 2]);
        assert_eq!(owned(&[0b01, 0b10, 0b11], 4, 2), [4, 4, 5, 6]);
    }
}
