//! An event-driven simulator of lossless fabrics: the switch model under a virtual clock.
//!
//! The emulator drives [`switch_model::Model`] by real frames and a real clock. Here a queue of
//! events, in order of (time, sequence), drives the same model. Every source has a seeded random
//! stream of its own, and no result depends on the machine.
//!
//! - [`Fabric`] and [`Tables`] are the wiring and what the switches do with packets.
//! - [`Traffic`] is which host sends what to which hosts, and when.
//! - [`Simulation`] runs them, in slices, so that a caller can show progress and stop.
//! - [`Report`] holds the results.
#![forbid(unsafe_code)]

mod columns;
mod deadlocks;
mod driver;
mod error;
mod event;
mod event_queue;
mod fabric;
mod held_rules;
mod histogram;
mod hosts;
mod hub;
mod lane;
mod layout;
mod links;
mod message;
mod network;
mod random;
mod report;
mod routes;
mod rows;
mod settings;
mod simulation;
mod tables;
mod traffic;
mod traffic_check;
mod wiring;

pub use error::Error;
pub use fabric::{Fabric, Forwarding, Node};
pub use held_rules::Passed;
pub use histogram::Histogram;
pub use report::{DeadlockReport, FlowReport, Report, StationCounters};
pub use settings::{LinkChange, Settings};
pub use simulation::Simulation;
pub use switch_model::{
    default_jitter, longest_frame_bytes, transmission_time, wire_bytes, Buffer, ChannelConfig,
    ChannelCounters, DropCause, FabricFlowControl, FlowControl, Limits, PriorityCounters, Time,
    VirtualChannel, Watchdog, WatchdogAction, GAP_BYTES, PRIORITIES,
};
pub use tables::Tables;
pub use traffic::{Arrivals, Flow, Process, Sending, Target, Traffic, Wish, NOBODY};
pub use wiring::{number_channels, HostEnd, LinkEnds, NumberedChannel};
