//! Problems that rules can have.

use std::fmt;

/// What rules do that cannot be followed, or that a switch would not do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // their texts say what they are
pub enum Problem {
    ToController,
    GoesBack { table: u8, to: u8 },
    NoGroup(u32),
    EndlessGroups(u32),
    TooManyActions { group: u32, most: usize },
    UntaggedPop,
    UntaggedSet(&'static str),
    SetsOther(String),
    OtherAction,
    ThreeTags,
    TooManyChoices(usize),
    AmbiguousReplay,
    SelectNotFollowed(u32),
    ChoiceNotFollowed,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ToController => {
                write!(f, "a rule sends frames to the controller; they are not followed")
            }
            Self::GoesBack { table, to } => {
                write!(f, "a rule of table {table} goes back to table {to}")
            }
            Self::NoGroup(group) => write!(f, "a rule uses group {group}, which is not there"),
            Self::EndlessGroups(group) => write!(f, "group {group} uses groups without end"),
            Self::TooManyActions { group, most } => write!(
                f,
                "group {group} leads to more than {most} actions for one frame; they are not followed"
            ),
            Self::UntaggedPop => write!(f, "a rule takes the tag off an untagged frame"),
            Self::UntaggedSet(name) => write!(f, "a rule sets {name} of an untagged frame"),
            Self::SetsOther(name) => write!(f, "a rule sets {name}, which is not followed here"),
            Self::OtherAction => write!(f, "a rule has an action that is not followed here"),
            Self::TooManyChoices(most) => write!(
                f,
                "rules of equal priority and groups of type select give a frame more than {most} \
                 choices; they are not followed"
            ),
            Self::AmbiguousReplay => {
                write!(f, "rules of equal priority match the same frames; which one counts is open")
            }
            Self::SelectNotFollowed(group) => write!(
                f,
                "group {group} of type select is used by another group, or leads to too many \
                 choices; it is not followed here"
            ),
            Self::ChoiceNotFollowed => write!(
                f,
                "a rule chooses among too many ports, or in a group; it is not followed here"
            ),
            Self::ThreeTags => write!(f, "a rule puts on a third tag, which is not followed here"),
        }
    }
}

impl Problem {
    /// Whether the fate of the frame is unknown.
    pub(super) fn ends_it(&self) -> bool {
        matches!(
            self,
            Self::SetsOther(_)
                | Self::OtherAction
                | Self::ThreeTags
                | Self::TooManyActions { .. }
                | Self::TooManyChoices(_)
                | Self::AmbiguousReplay
                | Self::SelectNotFollowed(_)
                | Self::ChoiceNotFollowed
        )
    }
}
