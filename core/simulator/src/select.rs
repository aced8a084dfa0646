//! The next hop that Open vSwitch chooses by the action `bundle_load`, with the algorithm `hrw` over
//! `eth_src`.
//!
//! Compiled rules put the low 24 bits of the destination and of the source address there while the
//! action runs. It is computed as Open vSwitch 3.1 does: `bundle_execute` in `lib/bundle.c`,
//! `flow_hash_fields` in `lib/flow.c`, whose hash is that of `lib/jhash.h` (Jenkins, lookup3), and
//! `hash_2words` in `lib/hash.h`, which is MurmurHash3 (Appleby) unless it was built for processors
//! with CRC instructions only. All members are up.

fn add(hash: u32, data: u32) -> u32 {
    let mixed = data.wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593);
    (hash ^ mixed).rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64)
}

fn finish(hash: u32, length: u32) -> u32 {
    let hash = hash ^ length;
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85EB_CA6B);
    let hash = (hash ^ hash >> 13).wrapping_mul(0xC2B2_AE35);
    hash ^ hash >> 16
}

/// The basis of a switch, numbered from 0, in fabrics whose hashes begin with `seed`.
///
/// The action has 16 bits for it. Switches with equal ones would choose alike: those of a fabric
/// differ, unless it has more than 65,536.
pub fn hash_basis(seed: u32, switch: u32) -> u16 {
    (finish(add(0, seed), 4).wrapping_add(switch).wrapping_add(1) & 0xFFFF) as u16
}

/// The hash of an Ethernet address, in network byte order: `jhash_bytes` of six bytes.
fn hash_address(address: u64, basis: u16) -> u32 {
    let [_, _, key @ ..] = address.to_be_bytes();
    let first = 0xDEAD_BEEF_u32.wrapping_add(key.len() as u32).wrapping_add(basis.into());
    let mut a = first.wrapping_add(u32::from_le_bytes([key[0], key[1], key[2], key[3]]));
    let mut b = first.wrapping_add(u32::from_le_bytes([key[4], key[5], 0, 0]));
    let mut c = first;
    let mix = |to: &mut u32, from: u32, bits: u32| {
        *to = (*to ^ from).wrapping_sub(from.rotate_left(bits));
    };
    mix(&mut c, b, 14);
    mix(&mut a, c, 11);
    mix(&mut b, a, 25);
    mix(&mut c, b, 16);
    mix(&mut a, c, 4);
    mix(&mut b, a, 14);
    mix(&mut c, b, 24);
    c
}

/// The score of member `number` for frames from an address to another; the highest one wins.
fn score(basis: u16, source: u64, destination: u64, number: u16) -> u32 {
    let low = |address: u64| address & 0xFF_FFFF;
    let hash = hash_address(low(destination) << 24 | low(source), basis);
    finish(add(add(number.into(), 0), hash), 8)
}

/// The number of the member, of `count`, for frames from an address to another, at a switch with
/// this [`hash_basis`].
pub fn select_member(basis: u16, source: u64, destination: u64, count: u16) -> u16 {
    let score = |&number: &u16| score(basis, source, destination, number);
    // Of equal scores, the first one counts; max_by_key returns the last.
    (0..count).rev().max_by_key(score).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_those_of_open_vswitch() {
        // As ofproto/trace of Open vSwitch 3.1 chooses among five ports that are up.
        for (switch, source, destination, expected) in [
            (0, 0x0200_0000_0101, 0x0200_0000_0201, 1),
            (0, 0x0200_0000_0101, 0x0200_0000_0202, 0),
            (0, 0x0200_0000_0102, 0x0200_0000_0201, 0),
            (1, 0x0200_0000_0203, 0x0200_0000_0505, 0),
            (2, 0x0200_0000_0303, 0x0200_0000_0104, 3),
            (4, 0x0200_0000_0501, 0x0200_0000_0102, 3),
        ] {
            assert_eq!(select_member(hash_basis(7, switch), source, destination, 5), expected);
        }
    }

    #[test]
    fn switches_of_a_fabric_begin_with_different_numbers() {
        let bases: std::collections::HashSet<u16> =
            (0..0x1_0000).map(|switch| hash_basis(1, switch)).collect();
        assert_eq!(bases.len(), 0x1_0000);
        assert_ne!(hash_basis(0, 0), hash_basis(1, 0));
    }
}
