//! Programs that choose which frames a packet socket receives (classic BPF).

use libc::sock_filter;

const ACCEPT: u32 = u32::MAX;
const REFUSE: u32 = 0;

fn step(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

fn result(k: u32) -> sock_filter {
    step(libc::BPF_RET | libc::BPF_K, 0, 0, k)
}

/// Accept frames whose byte at `offset` is `value`.
pub(crate) fn by_byte(offset: usize, value: u8) -> Vec<sock_filter> {
    vec![
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, offset as u32),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, value.into()),
        result(ACCEPT),
        result(REFUSE),
    ]
}

/// Accept frames that arrive on one of these interfaces, found by binary search over their indices.
pub(crate) fn by_interface(indices: &[i32]) -> Vec<sock_filter> {
    let mut sorted: Vec<u32> = indices.iter().map(|&index| index as u32).collect();
    sorted.sort_unstable();
    // Where a run of accepted or refused indices begins.
    let mut runs = vec![(0, REFUSE)];
    for index in sorted {
        match runs.last() {
            Some(&(next, REFUSE)) if next == index && next > 0 => {
                runs.pop();
            }
            _ => runs.push((index, ACCEPT)),
        }
        runs.push((index + 1, REFUSE));
    }
    let at = (libc::SKF_AD_OFF + libc::SKF_AD_IFINDEX) as u32;
    let mut program = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at)];
    program.extend(search(&runs));
    program
}

fn search(runs: &[(u32, u32)]) -> Vec<sock_filter> {
    if let [(_, found)] = runs {
        return vec![result(*found)];
    }
    let (low, high) = runs.split_at(runs.len() / 2);
    let below = search(low);
    // A conditional jump reaches 255 steps only, an unconditional one all.
    let mut program = vec![
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, high[0].0),
        step(libc::BPF_JMP | libc::BPF_JA, 0, 0, below.len() as u32),
    ];
    program.extend(below);
    program.extend(search(high));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program of [`by_interface`] returns for a frame of this interface.
    fn run(program: &[sock_filter], interface: u32) -> u32 {
        let mut at = 1;
        loop {
            let step = program[at];
            at += 1;
            match u32::from(step.code) & 0x07 {
                libc::BPF_RET => return step.k,
                _ if u32::from(step.code) & 0xf0 == libc::BPF_JA => at += step.k as usize,
                _ => at += usize::from(if interface >= step.k { step.jt } else { step.jf }),
            }
        }
    }

    #[test]
    fn only_the_named_interfaces_are_accepted() {
        let every_other: Vec<i32> = (0..600).map(|index| 70_001 + 2 * index).collect();
        for accepted in [vec![], vec![1], vec![9, 3, 4, 5], (5..500).collect(), every_other] {
            let program = by_interface(&accepted);
            assert!(program.len() < 4096, "the kernel's limit");
            for index in (0..520).chain(70_000..71_300) {
                let expected = if accepted.contains(&index) { ACCEPT } else { REFUSE };
                assert_eq!(run(&program, index as u32), expected, "{index}");
            }
        }
        assert_eq!(by_interface(&(65_536..70_000).collect::<Vec<_>>()).len(), 1 + 2 * 2 + 3);
    }
}
