//! The spanning tree along which the broadcasts of all sources travel, if there is one.

use crate::repair::dependencies::Dependencies;
use crate::repair::Task;

/// Links that are tried to connect two fragments.
const LINKS_TRIED: usize = 16;

/// A tree of links, which all sources use with one priority.
#[derive(Debug, Clone)]
pub struct SpanningTree {
    /// By channel: whether its link is in the tree.
    has: Vec<bool>,
    /// The priority of all frames on it.
    pub priority: u8,
}

impl SpanningTree {
    /// The tree that the broadcasts of all sources have in common.
    pub fn of(task: &Task<'_>) -> Option<Self> {
        let (channels, switches) = (task.channels, task.part.len());
        let mut common: Option<Self> = None;
        for source in (0..switches).filter(|&source| task.receives[source]) {
            let range = source * switches..(source + 1) * switches;
            let mut has = vec![false; channels.count()];
            let mut priority = None;
            let trees = task.trees.channels[range.clone()].iter();
            for (&channel, &of_channel) in trees.zip(&task.trees.priorities[range]) {
                let Ok(channel) = usize::try_from(channel) else { continue };
                has[channel] = true;
                has[channels.reverse[channel] as usize] = true;
                if priority.replace(of_channel).is_some_and(|other| other != of_channel) {
                    return None;
                }
            }
            let tree = Self { has, priority: priority? };
            match &common {
                None => common = Some(tree),
                Some(known) if known.has == tree.has && known.priority == tree.priority => {}
                Some(_) => return None,
            }
        }
        common
    }

    /// The tree with other links instead of those that failed, if all its turns fit together.
    ///
    /// Each failed link is replaced by the link between the two fragments that is nearest to its
    /// ends, by the distance along the tree, then by number.
    pub fn rejoined(
        mut self,
        task: &Task<'_>,
        dependencies: &mut Dependencies<'_>,
    ) -> Option<Self> {
        let pairs = self.separated(task);
        self.has.iter_mut().zip(task.failed).for_each(|(has, failed)| *has &= !failed);
        let mark = dependencies.mark();
        for (a, b) in pairs {
            let (from_a, from_b) = (self.distances(task, a), self.distances(task, b));
            if from_a[b].is_some() || !task.connects(a, b) {
                continue;
            }
            let mut links: Vec<(u32, i32, usize)> = (0..self.has.len())
                .filter(|&channel| !task.failed[channel])
                .filter_map(|channel| {
                    let (x, y) = (task.channels.tail[channel], task.channels.head[channel]);
                    let distance = from_a[x as usize]? + from_b[y as usize]?;
                    let link = task.channels.reverse[channel].min(channel as i32);
                    Some((distance, link, channel))
                })
                .collect();
            links.sort_unstable();
            links.truncate(LINKS_TRIED);
            let fits = links.iter().any(|&(_, _, link)| self.add(task, link, dependencies));
            if !fits {
                dependencies.undo(mark);
                return None;
            }
        }
        let is_whole = self.connects_all(task) && self.fits(task, dependencies);
        if !is_whole {
            dependencies.undo(mark);
        }
        is_whole.then_some(self)
    }

    /// Pairs of switches that the failures separate: the ends of failed links of the tree, and its
    /// neighbours of failed switches.
    fn separated(&self, task: &Task<'_>) -> Vec<(usize, usize)> {
        let channels = task.channels;
        let mut pairs = Vec::new();
        for switch in 0..task.part.len() {
            let failed = channels.of(switch).filter(|&c| self.has[c] && task.failed[c]);
            let far: Vec<usize> = failed.map(|c| channels.head[c] as usize).collect();
            if task.part[switch] < 0 {
                pairs.extend(far.windows(2).map(|two| (two[0], two[1])));
            } else {
                pairs.extend(far.iter().map(|&far| (switch.min(far), switch.max(far))));
            }
        }
        pairs
    }

    /// Adds a link and all turns of the tree; returns false if they do not fit.
    fn add(&mut self, task: &Task<'_>, link: usize, dependencies: &mut Dependencies<'_>) -> bool {
        let ends = [link, task.channels.reverse[link] as usize];
        ends.iter().for_each(|&channel| self.has[channel] = true);
        let mark = dependencies.mark();
        let fits = self.fits(task, dependencies);
        if !fits {
            dependencies.undo(mark);
            ends.iter().for_each(|&channel| self.has[channel] = false);
        }
        fits
    }

    /// Adds all turns of the tree until one does not fit; returns whether all do.
    fn fits(&self, task: &Task<'_>, dependencies: &mut Dependencies<'_>) -> bool {
        let channels = task.channels;
        (0..self.has.len()).filter(|&before| self.has[before]).all(|before| {
            let leaving = channels.of(channels.head[before] as usize);
            leaving
                .filter(|&after| self.has[after] && after as i32 != channels.reverse[before])
                .all(|after| {
                    let (before, after) = (before as u32, after as u32);
                    dependencies.add((before, self.priority), (after, self.priority))
                })
        })
    }

    /// The distance of each switch from one of them along the tree.
    fn distances(&self, task: &Task<'_>, from: usize) -> Vec<Option<u32>> {
        let mut found = vec![None; task.part.len()];
        found[from] = Some(0);
        let mut queue = vec![from];
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            for channel in task.channels.of(at).filter(|&channel| self.has[channel]) {
                let head = task.channels.head[channel] as usize;
                if found[head].is_none() {
                    found[head] = found[at].map(|hops| hops + 1);
                    queue.push(head);
                }
            }
        }
        found
    }

    /// Whether the tree leads from each switch with hosts to all others that it can reach.
    fn connects_all(&self, task: &Task<'_>) -> bool {
        let mut checked = vec![false; task.part.len()];
        (0..task.part.len()).filter(|&at| task.receives[at] && task.part[at] >= 0).all(|at| {
            let part = task.part[at] as usize;
            if std::mem::replace(&mut checked[part], true) {
                return true;
            }
            let reached = self.distances(task, at);
            let mut others = (0..task.part.len()).filter(|&to| task.receives[to]);
            others.all(|to| reached[to].is_some() || !task.connects(at, to))
        })
    }

    /// By switch: the channel with which what a source floods enters it, or -1.
    pub fn from(&self, task: &Task<'_>, source: usize) -> Vec<i32> {
        let mut enters = vec![-1; task.part.len()];
        let mut waiting = vec![source];
        while let Some(at) = waiting.pop() {
            for channel in task.channels.of(at).filter(|&channel| self.has[channel]) {
                let head = task.channels.head[channel] as usize;
                if head != source && enters[head] < 0 {
                    enters[head] = channel as i32;
                    waiting.push(head);
                }
            }
        }
        enters
    }
}
