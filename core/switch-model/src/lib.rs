//! What a lossless Ethernet switch port does with frames: queues, serialisation, 802.3x PAUSE and
//! 802.1Qbb PFC, credits, ingress buffers, and the exact deadlock condition.
//!
//! The crate has no clock and does no I/O. A caller says what happens and when ([`Model::arrive`],
//! [`Model::tx_done`], ...) and learns through [`Effects`] what follows and when it is due. The
//! emulator drives the model by a real clock, the simulator by a virtual one.
//!
//! A *channel* is one direction of a link. Its sender has an egress queue for each priority and a
//! serialiser. Its receiver, if it is a switch, has an *ingress buffer* for each priority (one for
//! all priorities under 802.3x). The occupancy of an ingress buffer counts a frame from its arrival
//! until its last copy has left the switch. While the occupancy is above XOFF the channel is
//! paused. Under credits the sender counts instead what the buffer has room for, and waits if the
//! next frame does not fit.
//!
//! By default the buffers of a switch are independent. [`Model::set_switches`] says what switches
//! are like inside: pools that their buffers share, priorities that may lose frames, schedulers,
//! and marking. [`Model::set_pause_frames`] has pause signals take their place on the wire.
//! [`Model::set_directions`] says which channels are the two directions of a link.
//!
//! # A frame through a switch
//!
//! A [`Model`] is built from the settings of all channels; a [`ChannelId`] is a position in that
//! list. The payload of a frame is the caller's, here a text. What is due later is collected in an
//! agenda; [`Sent`] and [`Signal`] say which method of the model to call at which time.
//!
//! ```
//! use switch_model::{
//!     transmission_time, wire_bytes, ChannelConfig, ChannelId, DropCause, Effects, Faults,
//!     FlowControl, Frame, Limits, Model, Sent, Signal, Time, VirtualChannel, LONGEST_FRAME_BYTES,
//!     MICROSECOND,
//! };
//!
//! #[derive(Default)]
//! struct Agenda {
//!     sent: Vec<Sent<&'static str>>,
//!     signals: Vec<Signal>,
//! }
//!
//! impl Effects<&'static str> for Agenda {
//!     fn started(&mut self, sent: Sent<&'static str>) {
//!         self.sent.push(sent);
//!     }
//!     fn lost(&mut self, sent: Sent<&'static str>, cause: DropCause) {
//!         panic!("{} is lost: {cause:?}", sent.frame.payload);
//!     }
//!     fn sent_twice(&mut self, _: Sent<&'static str>, _: Time) {
//!         panic!("this line duplicates nothing");
//!     }
//!     fn signal(&mut self, signal: Signal) {
//!         self.signals.push(signal);
//!     }
//!     fn dropped(&mut self, _: ChannelId, cause: DropCause, payload: &'static str) {
//!         panic!("{payload} is lost: {cause:?}");
//!     }
//!     fn expires(&mut self, _: VirtualChannel, _: Option<Time>) {}
//! }
//!
//! // From a host to the switch, and from the switch to another host. Limits that are not set have
//! // defaults with which nothing is lost.
//! let (rate_bps, delay) = (10_000_000, 500 * MICROSECOND);
//! let limits = Limits { xoff_bytes: Some(1000), ..Limits::default() };
//! let to_switch = ChannelConfig {
//!     rate_bps,
//!     delay,
//!     flow_control: FlowControl::Pause,
//!     buffer: limits.with_defaults(rate_bps, delay, LONGEST_FRAME_BYTES),
//!     to_switch: true,
//!     watchdog: None,
//!     pause_limit: None,
//!     broadcast_limit: None,
//!     jitter: 0,
//!     faults: Faults::NONE,
//! };
//! let to_host = ChannelConfig { to_switch: false, ..to_switch };
//! let (inwards, outwards) = (ChannelId(0), ChannelId(1));
//! let mut model = Model::new([to_switch, to_host], 1);
//! let mut agenda = Agenda::default();
//!
//! // The host sends at time 0.
//! let frame = Frame { priority: 0, bytes: 1522, payload: "hello" };
//! model.inject(0, inwards, frame, &mut agenda);
//! let sent = agenda.sent.remove(0);
//! assert_eq!(sent.ends, transmission_time(wire_bytes(1522), rate_bps));
//! assert_eq!(sent.arrives, sent.ends + delay);
//!
//! // Both are due: the sender is free again, and the last bit arrives.
//! model.tx_done(sent.ends, inwards, &mut agenda);
//! let now = sent.arrives;
//! let entry = model.arrive(now, inwards, 0, 1522, &mut agenda).expect("there is room");
//! model.forward(now, entry, outwards, sent.frame, &mut agenda);
//! model.settle(now, entry, &mut agenda);
//!
//! // The ingress buffer is above XOFF, so the switch pauses the host.
//! let stop = agenda.signals.remove(0);
//! assert!(stop.stop);
//! model.signalled(stop.arrives, stop, &mut agenda);
//! assert!(model.is_paused(inwards, 0));
//!
//! // When the frame has left the switch, the host is resumed.
//! let sent = agenda.sent.remove(0);
//! model.tx_done(sent.ends, outwards, &mut agenda);
//! let resume = agenda.signals.remove(0);
//! assert!(!resume.stop);
//! model.signalled(resume.arrives, resume, &mut agenda);
//! assert!(!model.is_paused(inwards, 0));
//! assert!(model.delivered(outwards, 1522));
//! ```
//!
//! # A deadlock
//!
//! Two switches send each other frames that come back: what arrives on either channel waits for the
//! other one. [`Model::deadlock`] finds the channels that can never send again.
//!
//! ```
//! # use switch_model::*;
//! # #[derive(Default)]
//! # struct Agenda {
//! #     sent: Vec<Sent<()>>,
//! #     signals: Vec<Signal>,
//! # }
//! # impl Effects<()> for Agenda {
//! #     fn started(&mut self, sent: Sent<()>) {
//! #         self.sent.push(sent);
//! #     }
//! #     fn lost(&mut self, _: Sent<()>, _: DropCause) {}
//! #     fn sent_twice(&mut self, _: Sent<()>, _: Time) {}
//! #     fn signal(&mut self, signal: Signal) {
//! #         self.signals.push(signal);
//! #     }
//! #     fn dropped(&mut self, _: ChannelId, _: DropCause, (): ()) {}
//! #     fn expires(&mut self, _: VirtualChannel, _: Option<Time>) {}
//! # }
//! # let (rate_bps, delay) = (10_000_000, 500 * MICROSECOND);
//! # let limits = Limits { xoff_bytes: Some(1000), ..Limits::default() };
//! # let channel = ChannelConfig {
//! #     rate_bps,
//! #     delay,
//! #     flow_control: FlowControl::Pause,
//! #     buffer: limits.with_defaults(rate_bps, delay, LONGEST_FRAME_BYTES),
//! #     to_switch: true,
//! #     watchdog: None,
//! #     pause_limit: None,
//! #     broadcast_limit: None,
//! #     jitter: 0,
//! #     faults: Faults::NONE,
//! # };
//! let (there, back) = (ChannelId(0), ChannelId(1));
//! let mut model = Model::new([channel, channel], 1);
//! let mut agenda = Agenda::default();
//! for (from, to) in [(there, back), (back, there)] {
//!     for _ in 0..2 {
//!         let entry = model.arrive(0, from, 0, 1522, &mut agenda).expect("there is room");
//!         model.forward(0, entry, to, Frame { priority: 0, bytes: 1522, payload: () }, &mut agenda);
//!         model.settle(0, entry, &mut agenda);
//!     }
//! }
//! // The first frames leave, the second ones wait; then both switches are paused.
//! assert_eq!((agenda.sent.len(), model.waiting_frames()), (2, 2));
//! assert_eq!(model.deadlock(), None);
//! for signal in std::mem::take(&mut agenda.signals) {
//!     model.signalled(signal.arrives, signal, &mut agenda);
//! }
//! for sent in std::mem::take(&mut agenda.sent) {
//!     model.tx_done(sent.ends, sent.channel, &mut agenda);
//! }
//! let knot = [there, back].map(|channel| VirtualChannel { channel, class: 0 });
//! assert_eq!(model.deadlock().expect("a deadlock").cycle, knot);
//! ```
#![forbid(unsafe_code)]

mod alternatives;
mod broadcast_limit;
mod bubbles;
mod buffers;
mod channel;
mod config;
mod counters;
mod credits;
mod deadlock;
mod defaults;
mod entries;
mod faults;
mod flow_control;
mod ids;
mod marking;
mod model;
mod numbering;
mod order;
mod pause_limit;
mod queue;
mod retry;
mod scheduler;
mod standstill;
mod switch_settings;
mod switches;
mod units;

pub use broadcast_limit::BroadcastLimit;
pub use bubbles::RingEntry;
pub use buffers::PoolCounters;
pub use config::{Buffer, ChannelConfig, RestoredBy, Watchdog, WatchdogAction};
pub use counters::{ChannelCounters, DropCause, PriorityCounters};
pub use deadlock::{deadlock_of, Deadlock};
pub use defaults::{default_jitter, Limits, CREDIT_UNIT_BYTES};
pub use entries::EntryId;
pub use faults::{BitErrors, Chance, Faults};
pub use flow_control::{FabricFlowControl, FlowControl};
pub use graph::limits;
pub use ids::{ChannelId, VirtualChannel, PRIORITIES};
pub use model::{Effects, Frame, Model, PauseFrameEvent, Sent, Signal};
pub use numbering::{channel_order, ChannelSource};
pub use order::{turn, EventKind, EventOrder};
pub use pause_limit::{HostPauseCounters, PauseLimit};
pub use retry::{RetryCount, RetryCounters, RetrySettings};
pub use switch_settings::{
    GroupSettings, MarkingSettings, PauseFrameSettings, PoolSettings, PortSettings,
    SchedulerSettings, Side, SwitchSettings, WatchdogSettings,
};
pub use switches::{ChannelPorts, SwitchPort};
pub use units::{
    longest_frame_bytes, transmission_time, wire_bytes, Time, GAP_BYTES, LONGEST_FRAME_BYTES,
    MICROSECOND, MIN_FRAME_BYTES, PAUSE_FRAME_BYTES, SECOND,
};
