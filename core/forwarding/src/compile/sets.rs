//! Small sets of classes, each distinct one kept once.

use rustc_hash::FxHashMap;

/// The number of a set; that of a single class is the class itself.
pub type SetId = u32;

/// Sets of the classes 0, 1 .. of one function.
#[derive(Debug)]
pub struct Sets {
    members: Vec<Box<[u32]>>,
    ids: FxHashMap<Box<[u32]>, SetId>,
    combined: FxHashMap<(SetId, SetId), (SetId, bool)>,
}

impl Sets {
    /// Sets of `classes` classes, the single ones among them.
    pub fn new(classes: u32) -> Self {
        let members: Vec<Box<[u32]>> = (0..classes).map(|class| [class].into()).collect();
        let ids = members.iter().cloned().zip(0..).collect();
        Self { members, ids, combined: FxHashMap::default() }
    }

    /// The number of the set of these classes, which are not empty.
    pub fn id(&mut self, mut classes: Vec<u32>) -> SetId {
        classes.sort_unstable();
        classes.dedup();
        let classes: Box<[u32]> = classes.into();
        if let Some(&id) = self.ids.get(&classes) {
            return id;
        }
        let id = self.members.len() as SetId;
        self.members.push(classes.clone());
        self.ids.insert(classes, id);
        id
    }

    /// The classes in both sets, or if there are none, those in either; and whether there are none.
    #[inline]
    pub fn combine(&mut self, a: SetId, b: SetId) -> (SetId, bool) {
        if a == b {
            return (a, false);
        }
        let key = (a.min(b), a.max(b));
        if let Some(&known) = self.combined.get(&key) {
            return known;
        }
        let (of_a, of_b) = (&self.members[a as usize], &self.members[b as usize]);
        let mut both: Vec<u32> =
            of_a.iter().filter(|class| of_b.contains(class)).copied().collect();
        let apart = both.is_empty();
        if apart {
            both = of_a.iter().chain(of_b.iter()).copied().collect();
        }
        let id = self.id(both);
        self.combined.insert(key, (id, apart));
        (id, apart)
    }

    /// Whether a class is in a set.
    #[inline]
    pub fn has(&self, id: SetId, class: u32) -> bool {
        id == class || self.members[id as usize].contains(&class)
    }

    /// The lowest class of a set.
    pub fn lowest(&self, id: SetId) -> u32 {
        self.members[id as usize][0]
    }
}
