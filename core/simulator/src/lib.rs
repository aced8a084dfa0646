//! An event-driven simulator of lossless fabrics: the switch model under a virtual clock.
//!
//! The emulator drives [`switch_model::Model`] by real frames and a real clock. Here a queue of
//! events, in order of time and of [`switch_model::EventOrder`], drives the same model. Every source
//! has a seeded random stream of its own, and no result depends on the machine.
//!
//! - [`Fabric`] and [`Tables`] are the wiring and what the switches do with packets.
//! - [`Traffic`] is which host sends what to which hosts, and when; [`poisson`] and [`incasts`] draw
//!   traces of random flows.
//! - [`Simulation`] runs them, in slices, so that a caller can show progress and stop.
//! - [`Report`] holds the results.
//!
//! # Two hosts send to a third
//!
//! [`number_channels`] numbers the channels of a fabric in the order that [`Fabric::new`] asks for.
//! One switch needs no routes; those of several come from an explored forwarding state
//! ([`Tables::new`]). A [`Time`] is in picoseconds.
//!
//! ```
//! use simulator::{
//!     longest_frame_bytes, number_channels, Arrivals, ChannelConfig, Error, Fabric, Faults, Flow,
//!     FlowControl, Forwarding, Limits, Node, Settings, Simulation, Tables, Target, Time, Traffic,
//! };
//!
//! const MICROSECOND: Time = 1_000_000;
//!
//! /// A switch with three hosts, on links of 10 Gbit/s and 1 us that pause.
//! fn star() -> Result<Fabric, Error> {
//!     let (rate_bps, delay) = (10_000_000_000, MICROSECOND);
//!     let config = ChannelConfig {
//!         rate_bps,
//!         delay,
//!         flow_control: FlowControl::Pause,
//!         buffer: Limits::default().with_defaults(rate_bps, delay, longest_frame_bytes(1500)),
//!         to_switch: true,
//!         watchdog: None,
//!         pause_limit: None,
//!         broadcast_limit: None,
//!         jitter: 0,
//!         faults: Faults::NONE,
//!     };
//!     let numbered = number_channels(&[], &[(0, 1), (0, 2), (0, 3)])?;
//!     let channels = numbered.iter().map(|channel| {
//!         let to_switch = matches!(channel.to, Node::Switch(_));
//!         (ChannelConfig { to_switch, ..config }, channel.from, channel.to, channel.back)
//!     });
//!     Fabric::new(1, 3, channels.collect())
//! }
//!
//! let fabric = star()?;
//! let tables = Tables::without_routes(&fabric);
//! let flows = [0, 1].map(|from| Flow { from, to: Target::Host(2) }).to_vec();
//! let traffic = Traffic::Flows { flows, arrivals: Arrivals::Saturate, message_bytes: 1500 };
//! let settings = Settings {
//!     seed: 1,
//!     warm_up: 1000 * MICROSECOND,
//!     end: 5000 * MICROSECOND,
//!     packet_bytes: 1500,
//!     forwarding: Forwarding::StoreAndForward,
//!     link_changes: Vec::new(),
//! };
//! let mut simulation = Simulation::new(fabric, tables, traffic, settings)?;
//! while simulation.run(10_000) {
//!     // A slice of about 10,000 events is done; the simulation could stop here.
//! }
//! let report = simulation.report();
//!
//! // Each gets half of the line to the third host, and pauses keep frames from being lost.
//! let half = 10_000_000_000.0 / 2.0 * 1500.0 / 1538.0;
//! for flow in &report.flows {
//!     let bits_per_s = 8.0 * flow.bytes as f64 / (report.measured as f64 / 1e12);
//!     assert!((bits_per_s / half - 1.0).abs() < 0.01, "{bits_per_s}");
//!     assert_eq!(flow.lost, 0);
//! }
//! let pauses = |channel: &simulator::ChannelCounters| channel.priorities[0].pauses;
//! assert!(report.channels.iter().map(pauses).sum::<u64>() > 0);
//! assert!(report.deadlock.is_none());
//! # Ok::<(), Error>(())
//! ```
//!
//! # Programs, and mistakes
//!
//! A [`Process`] is a program on a host, which asks for messages and wake-ups by appending
//! [`Wish`]es. What does not fit together is an [`Error`] of one line before anything runs.
//!
//! ```
//! # use simulator::*;
//! /// Host 0 sends a message; host 1 returns each one that it gets.
//! #[derive(Debug)]
//! struct Echo(u32);
//!
//! impl Process for Echo {
//!     fn begin(&mut self, _now: Time, wishes: &mut Vec<Wish>) {
//!         if self.0 == 0 {
//!             wishes.push(Wish::Send { to: Target::Host(1), bytes: 64, tag: 7 });
//!         }
//!     }
//!     fn received(&mut self, _now: Time, from: u32, tag: u64, wishes: &mut Vec<Wish>) {
//!         if self.0 == 1 {
//!             wishes.push(Wish::Send { to: Target::Host(from), bytes: 64, tag });
//!         }
//!     }
//!     fn woken(&mut self, _now: Time, _tag: u64, _wishes: &mut Vec<Wish>) {}
//! }
//!
//! # fn pair() -> Result<Fabric, Error> {
//! #     let (rate_bps, delay) = (10_000_000_000, 1_000_000);
//! #     let config = ChannelConfig {
//! #         rate_bps,
//! #         delay,
//! #         flow_control: FlowControl::Pause,
//! #         buffer: Limits::default().with_defaults(rate_bps, delay, longest_frame_bytes(1500)),
//! #         to_switch: true,
//! #         watchdog: None,
//! #         pause_limit: None,
//! #         broadcast_limit: None,
//! #         jitter: 0,
//! #         faults: Faults::NONE,
//! #     };
//! #     let numbered = number_channels(&[], &[(0, 1), (0, 2)])?;
//! #     let channels = numbered.iter().map(|channel| {
//! #         let to_switch = matches!(channel.to, Node::Switch(_));
//! #         (ChannelConfig { to_switch, ..config }, channel.from, channel.to, channel.back)
//! #     });
//! #     Fabric::new(1, 2, channels.collect())
//! # }
//! let run = |end: Time| -> Result<Report, Error> {
//!     let fabric = pair()?;
//!     let tables = Tables::without_routes(&fabric);
//!     let traffic = Traffic::Processes(vec![Box::new(Echo(0)), Box::new(Echo(1))]);
//!     let settings = Settings {
//!         seed: 1,
//!         warm_up: 0,
//!         end,
//!         packet_bytes: 1500,
//!         forwarding: Forwarding::StoreAndForward,
//!         link_changes: Vec::new(),
//!     };
//!     let mut simulation = Simulation::new(fabric, tables, traffic, settings)?;
//!     while simulation.run(10_000) {}
//!     Ok(simulation.report())
//! };
//!
//! let report = run(1_000_000_000)?;
//! assert_eq!(report.flows.iter().map(|flow| flow.messages).sum::<u64>(), 2);
//! // There and back: four links of 1 us, on each of which both frames are also transmitted.
//! assert!(report.last_complete > 4_000_000);
//!
//! let mistake = run(0).unwrap_err();
//! assert_eq!(mistake.to_string(), "the warm-up must be shorter than the simulation");
//! # Ok::<(), Error>(())
//! ```
#![forbid(unsafe_code)]

mod alone;
mod classes;
mod columns;
mod deadlocks;
mod driver;
mod endpoints;
mod error;
mod event;
mod event_queue;
mod fabric;
mod held_rules;
mod histogram;
mod host_settings;
mod hosts;
mod hub;
mod lane;
mod layout;
mod links;
mod message;
mod network;
mod parts;
mod pauses;
pub mod programs;
mod random;
mod receivers;
mod report;
mod routes;
mod rows;
mod select;
mod settings;
mod simulation;
mod tables;
mod traffic;
mod traffic_check;
mod transport;
mod wiring;
mod workload;

pub use endpoints::MessageClass;
pub use error::Error;
pub use fabric::{Fabric, Forwarding, Node};
pub use held_rules::Passed;
pub use histogram::Histogram;
pub use host_settings::HostSettings;
pub use receivers::SlowReceiver;
pub use report::{Completion, DeadlockReport, FirstPause, FlowReport, Report, StationCounters};
pub use select::{hash_basis, select_member};
pub use settings::{LinkChange, Settings};
pub use simulation::Simulation;
pub use switch_model::{
    default_jitter, longest_frame_bytes, transmission_time, wire_bytes, BitErrors, BroadcastLimit,
    Buffer, Chance, ChannelConfig, ChannelCounters, ChannelId, DropCause, FabricFlowControl,
    Faults, FlowControl, Limits, PauseLimit, PoolCounters, PriorityCounters, RetryCount,
    RetryCounters, RetrySettings, RingEntry, SwitchSettings, Time, VirtualChannel, Watchdog,
    WatchdogAction, CREDIT_UNIT_BYTES, GAP_BYTES, PAUSE_FRAME_BYTES, PRIORITIES,
};
pub use tables::Tables;
pub use traffic::{Arrivals, Flow, Process, Sending, Target, Traffic, Wish, NOBODY};
pub use transport::Transport;
pub use wiring::{number_channels, HostEnd, LinkEnds, NumberedChannel};
pub use workload::{incasts, poisson, Incasts, Senders, Sizes};

/// The causes for which a simulation can lose frames, with their names, in the order of
/// [`ChannelCounters::drops`]: its switches are not started again, and its lines corrupt nothing.
pub fn drop_causes() -> &'static [(DropCause, &'static str)] {
    &DropCause::ALL[..DropCause::Reboot as usize]
}
