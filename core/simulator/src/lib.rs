//! An event-driven simulator of lossless fabrics: the switch model under a virtual clock.
//!
//! The emulator drives [`switch_model::Model`] by real frames and a real clock; here the same
//! model is driven by an [`agenda`] of what is due, in order of (time, sequence). Everything
//! random comes from one seeded stream for each source, and no result depends on the machine.
//!
//! - [`Fabric`] and [`Tables`] say what is plugged into what and which way frames go.
//! - [`Traffic`] says who sends what to whom, and when.
//! - [`Simulation`] runs it, in slices, so that a caller can show progress and stop.
//! - [`Report`] is what was counted.
#![forbid(unsafe_code)]

mod agenda;
mod columns;
mod error;
mod fabric;
mod histogram;
mod hosts;
mod hub;
mod lane;
mod layout;
mod message;
mod nic;
mod random;
mod report;
mod routes;
mod rows;
mod settings;
mod sharing;
mod simulation;
mod sources;
mod standstill;
mod switching;
mod tables;
mod traffic;
mod world;

pub use error::Error;
pub use fabric::{Fabric, Forwarding, Node};
pub use histogram::Histogram;
pub use hub::StationCounters;
pub use report::{FlowReport, Report, StoodStill};
pub use settings::{LinkChange, Settings};
pub use simulation::Simulation;
pub use switch_model::{
    transmission_time, Buffer, ChannelConfig, ChannelCounters, DropCause, FlowControl,
    PriorityCounters, Time, VirtualChannel,
};
pub use tables::Tables;
pub use traffic::{Arrivals, Flow, Process, Sending, Target, Traffic, Wish};
