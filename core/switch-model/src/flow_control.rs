//! Flow control: what the receiver of a channel does when its buffer fills.
//!
//! A new scheme is a type that implements [`Scheme`] and a row of `schemes!`; one that users can
//! choose for a fabric is a row of [`FabricFlowControl`] too, and of `FlowControl` in Python. No
//! other code compares schemes. The type is selected by a `match` on one byte in the cache line of
//! the channel or ingress buffer, and calls are static: where all schemes do the same, the `match`
//! disappears.

use std::str::FromStr;

use serde::de::{value, IntoDeserializer};
use serde::Deserialize;

use crate::ids::PRIORITIES;

/// What one scheme does on a channel. Its *classes* are the groups of priorities that have an
/// ingress buffer in common and are paused together.
trait Scheme {
    /// Number of classes, counting from 0; 0: the receiver has no ingress buffers and never pauses.
    ///
    /// Pause frames on a link are those of IEEE 802.3x if there is one class, else those of IEEE
    /// 802.1Qbb.
    const CLASSES: u8;

    /// The class in which `priority` is counted and paused: below `CLASSES`, or 0.
    fn class(priority: u8) -> u8;

    /// The priorities, as bits, that pausing `class` stops; `class` is below `CLASSES`.
    fn mask(class: u8) -> u8;

    /// Whether a sender begins only what its receiver has advertised room for.
    const CREDITS: bool = false;

    /// Whether the receiver pauses a channel that is not paused at this ingress occupancy.
    #[inline]
    fn stops(bytes: u64, xoff_bytes: u64) -> bool {
        bytes > xoff_bytes
    }

    /// Whether the receiver resumes a paused channel at this ingress occupancy.
    #[inline]
    fn resumes(bytes: u64, xon_bytes: u64) -> bool {
        bytes <= xon_bytes
    }
}

struct Off;

impl Scheme for Off {
    const CLASSES: u8 = 0;

    #[inline]
    fn class(_priority: u8) -> u8 {
        0
    }

    #[inline]
    fn mask(_class: u8) -> u8 {
        0
    }
}

struct Pause;

impl Scheme for Pause {
    const CLASSES: u8 = 1;

    #[inline]
    fn class(_priority: u8) -> u8 {
        0
    }

    #[inline]
    fn mask(_class: u8) -> u8 {
        0xff
    }
}

struct Pfc;

impl Scheme for Pfc {
    const CLASSES: u8 = PRIORITIES as u8;

    #[inline]
    fn class(priority: u8) -> u8 {
        priority
    }

    #[inline]
    fn mask(class: u8) -> u8 {
        1 << class
    }
}

struct Credits;

impl Scheme for Credits {
    const CLASSES: u8 = PRIORITIES as u8;
    const CREDITS: bool = true;

    #[inline]
    fn class(priority: u8) -> u8 {
        priority
    }

    #[inline]
    fn mask(class: u8) -> u8 {
        1 << class
    }

    #[inline]
    fn stops(_bytes: u64, _xoff_bytes: u64) -> bool {
        false
    }

    /// All that leaves is signalled.
    #[inline]
    fn resumes(_bytes: u64, _xon_bytes: u64) -> bool {
        true
    }
}

macro_rules! schemes {
    ($($(#[$attribute:meta])* $scheme:ident = $name:literal,)+) => {
        /// What the receiver of a channel does when its buffer fills.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
        pub enum FlowControl {
            $($(#[$attribute])* #[serde(rename = $name)] $scheme,)+
        }

        impl FlowControl {
            /// All of them.
            pub const ALL: &[FlowControl] = &[$(FlowControl::$scheme,)+];

            /// Its name in configurations.
            pub fn name(self) -> &'static str {
                match self { $(FlowControl::$scheme => $name,)+ }
            }

            /// The number of its classes: groups of priorities that are paused together.
            #[inline]
            pub fn classes(self) -> u8 {
                match self { $(FlowControl::$scheme => $scheme::CLASSES,)+ }
            }

            /// The class in which `priority` is counted and paused.
            #[inline]
            pub fn class(self, priority: u8) -> u8 {
                match self { $(FlowControl::$scheme => $scheme::class(priority),)+ }
            }

            /// The priorities, as bits, that pausing `class` stops.
            #[inline]
            pub fn mask(self, class: u8) -> u8 {
                match self { $(FlowControl::$scheme => $scheme::mask(class),)+ }
            }

            /// Whether a sender begins only what its receiver has advertised room for.
            #[inline]
            pub fn uses_credits(self) -> bool {
                match self { $(FlowControl::$scheme => $scheme::CREDITS,)+ }
            }

            /// Whether the receiver pauses a channel that is not paused at this ingress occupancy.
            #[inline]
            pub(crate) fn stops(self, bytes: u64, xoff_bytes: u64) -> bool {
                match self { $(FlowControl::$scheme => $scheme::stops(bytes, xoff_bytes),)+ }
            }

            /// Whether the receiver resumes a paused channel at this ingress occupancy.
            #[inline]
            pub(crate) fn resumes(self, bytes: u64, xon_bytes: u64) -> bool {
                match self { $(FlowControl::$scheme => $scheme::resumes(bytes, xon_bytes),)+ }
            }
        }
    };
}

schemes! {
    /// Nothing: frames are dropped where an egress queue is full.
    #[default]
    Off = "off",
    /// IEEE 802.3x PAUSE: all priorities are paused together.
    Pause = "pause",
    /// IEEE 802.1Qbb priority flow control: each priority is paused by itself.
    Pfc = "pfc",
    /// Credits for each priority, as in InfiniBand and Ultra Ethernet: a sender begins a frame only
    /// if its receiver has advertised room for all of it.
    Credits = "credits",
}

impl FlowControl {
    /// Whether the receiver counts frames in ingress buffers, and holds the sender back.
    #[inline]
    pub fn pauses(self) -> bool {
        self.classes() > 0
    }
}

/// Flow control of all links of a fabric: PAUSE on no link, on links to hosts, on links between
/// switches or on all links; or PFC or credits on all links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "described above")]
pub enum FabricFlowControl {
    None,
    Host,
    Switch,
    Pause,
    Pfc,
    Credits,
}

impl FabricFlowControl {
    /// The flow control of one link.
    pub fn of_link(self, is_host_link: bool) -> FlowControl {
        let (hosts, switches) = match self {
            FabricFlowControl::None => (FlowControl::Off, FlowControl::Off),
            FabricFlowControl::Host => (FlowControl::Pause, FlowControl::Off),
            FabricFlowControl::Switch => (FlowControl::Off, FlowControl::Pause),
            FabricFlowControl::Pause => (FlowControl::Pause, FlowControl::Pause),
            FabricFlowControl::Pfc => (FlowControl::Pfc, FlowControl::Pfc),
            FabricFlowControl::Credits => (FlowControl::Credits, FlowControl::Credits),
        };
        if is_host_link {
            hosts
        } else {
            switches
        }
    }
}

impl FromStr for FabricFlowControl {
    type Err = value::Error;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::deserialize(name.into_deserializer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_divide_the_priorities() {
        for scheme in FlowControl::ALL.iter().filter(|scheme| scheme.pauses()) {
            let masks: Vec<u8> = (0..scheme.classes()).map(|class| scheme.mask(class)).collect();
            assert_eq!(masks.iter().map(|mask| mask.count_ones()).sum::<u32>(), 8, "{scheme:?}");
            for priority in 0..PRIORITIES as u8 {
                let mask = masks[usize::from(scheme.class(priority))];
                assert_eq!(mask >> priority & 1, 1, "{scheme:?} {priority}");
            }
        }
    }

    #[test]
    fn names_are_those_of_configurations() {
        for &scheme in FlowControl::ALL {
            let name: value::StrDeserializer<'_, value::Error> = scheme.name().into_deserializer();
            assert_eq!(FlowControl::deserialize(name), Ok(scheme));
        }
    }
}
