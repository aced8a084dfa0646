//! The order in which traffic to one destination passes the switches.

use crate::channels::Channels;
use crate::error::Malformed;

/// The switches by their distance to one destination along the next hops.
#[derive(Debug)]
pub struct Order {
    /// Channels to the destination; below 0 where the next hops end elsewhere.
    pub hops: Vec<i32>,
    /// The switches from which the next hops lead to the destination, farthest first.
    pub farthest_first: Vec<u32>,
    first: Vec<u32>,
    chain: Vec<u32>,
}

impl Order {
    const UNKNOWN: i32 = -1;
    const NO_WAY: i32 = -2;
    const ON_CHAIN: i32 = -3;

    /// Room for fabrics of so many switches.
    pub fn new(switches: usize) -> Self {
        Self {
            hops: vec![0; switches],
            farthest_first: vec![0; switches],
            first: Vec::new(),
            chain: Vec::new(),
        }
    }

    /// Orders all switches; refuses next hops that loop.
    pub fn towards(
        &mut self,
        channels: &Channels,
        destination: usize,
        next: &[i32],
    ) -> Result<(), Malformed> {
        self.hops.fill(Self::UNKNOWN);
        self.hops[destination] = 0;
        let mut most = 0;
        for switch in 0..next.len() {
            let mut here = switch;
            while self.hops[here] == Self::UNKNOWN && next[here] >= 0 {
                self.hops[here] = Self::ON_CHAIN;
                self.chain.push(here as u32);
                here = channels.head[next[here] as usize] as usize;
            }
            let mut hops = match self.hops[here] {
                Self::ON_CHAIN => {
                    return Err(Malformed(format!("next hops to {destination} lead round")));
                }
                Self::UNKNOWN => {
                    self.hops[here] = Self::NO_WAY;
                    Self::NO_WAY
                }
                hops => hops,
            };
            while let Some(before) = self.chain.pop() {
                hops = if hops == Self::NO_WAY { hops } else { hops + 1 };
                self.hops[before as usize] = hops;
            }
            most = most.max(hops);
        }
        self.sort(most as usize);
        Ok(())
    }

    fn sort(&mut self, most: usize) {
        self.first.clear();
        self.first.resize(most + 2, 0);
        for &hops in self.hops.iter().filter(|&&hops| hops >= 0) {
            self.first[most - hops as usize + 1] += 1;
        }
        for place in 0..=most {
            self.first[place + 1] += self.first[place];
        }
        self.farthest_first.resize(self.first[most + 1] as usize, 0);
        for (switch, &hops) in self.hops.iter().enumerate() {
            if hops >= 0 {
                let place = &mut self.first[most - hops as usize];
                self.farthest_first[*place as usize] = switch as u32;
                *place += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::triangle;

    #[test]
    fn the_farthest_come_first_and_dead_ends_not_at_all() {
        let (channels, mut order) = (triangle(), Order::new(3));
        order.towards(&channels, 2, &[0, 3, -1]).expect("sound");
        assert_eq!((&order.hops[..], &order.farthest_first[..]), (&[2, 1, 0][..], &[0, 1, 2][..]));
        order.towards(&channels, 2, &[0, -1, -1]).expect("sound");
        assert_eq!((order.hops[0] < 0, &order.farthest_first[..]), (true, &[2][..]));
        assert!(order.towards(&channels, 2, &[0, 2, -1]).is_err(), "round");
    }
}
