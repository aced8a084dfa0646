//! Hosts that take frames from their buffer at a rate of their own.
//!
//! A frame that arrives is put into the buffer, which has the limits of a switch's ingress buffer
//! at the end of the same line: above XOFF the host pauses its switch, at XON it resumes it, and
//! what exceeds XOFF and headroom is lost. Where the line does not pause, frames are lost only. The
//! buffer has classes as flow control has; the host takes frames in the order of their arrival.

use std::collections::VecDeque;

use switch_model::{
    transmission_time, ChannelConfig, ChannelId, EventKind, EventOrder, Time, VirtualChannel,
    PRIORITIES,
};

use crate::error::Error;
use crate::event::{Event, EventQueue, ReceiverEvent};
use crate::fabric::Fabric;
use crate::message::Packet;

/// A host that receives at another rate than that of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowReceiver {
    /// The host.
    pub host: u32,
    /// Bits of frames that it takes in a second, FCS included, gaps not.
    pub rate_bps: u64,
}

/// A frame in the buffer of a host.
#[derive(Clone, Copy, Debug)]
struct Buffered {
    packet: Packet,
    bytes: u32,
    class: u8,
}

/// The buffer of a host.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    rate_bps: u64,
    host: u32,
    /// The line to the host.
    config: ChannelConfig,
    channel: ChannelId,
    frames: VecDeque<Buffered>,
    /// By class: bytes in the buffer, and whether the host has paused it.
    bytes: [u64; PRIORITIES],
    paused: [bool; PRIORITIES],
}

impl Receiver {
    /// The receiver of each host, where it has a rate of its own.
    ///
    /// # Errors
    /// Unknown hosts, two rates of one host, no rate, hubs, and lines with credits.
    pub fn all(slow: &[SlowReceiver], fabric: &Fabric) -> Result<Vec<Option<Receiver>>, Error> {
        let mut receivers: Vec<Option<Receiver>> = Vec::new();
        for &SlowReceiver { host, rate_bps } in slow {
            let wrong = |text: &str| Err(Error::new(format!("receiver {host}: {text}")));
            receivers.resize_with(fabric.hosts(), || None);
            let Some(receiver) = receivers.get_mut(host as usize) else {
                return wrong("there is no such host");
            };
            let channel = fabric.down[host as usize];
            let config = fabric.configs[channel.index()];
            match () {
                () if fabric.hubs => return wrong("hosts of hubs take frames at once"),
                () if receiver.is_some() => return wrong("it has two rates"),
                () if rate_bps == 0 => return wrong("its rate must be over 0"),
                () if config.flow_control.uses_credits() => {
                    return wrong("under credits, hosts take frames at once")
                }
                () => {}
            }
            *receiver = Some(Receiver {
                rate_bps,
                host,
                config,
                channel,
                frames: VecDeque::new(),
                bytes: [0; PRIORITIES],
                paused: [false; PRIORITIES],
            });
        }
        Ok(receivers)
    }

    /// A frame has arrived; false, without effect, if there is no room.
    pub fn arrived(
        &mut self,
        at: Time,
        (priority, bytes): (u8, u32),
        packet: &Packet,
        events: &mut EventQueue,
    ) -> bool {
        let class = self.config.flow_control.class(priority);
        let buffer = &self.config.buffer;
        let held = self.bytes[usize::from(class)] + u64::from(bytes);
        if held > buffer.xoff_bytes + buffer.headroom_bytes {
            return false;
        }
        self.bytes[usize::from(class)] = held;
        self.frames.push_back(Buffered { packet: *packet, bytes, class });
        if self.frames.len() == 1 {
            self.take_next(at, bytes, events);
        }
        if self.config.flow_control.pauses() && held > buffer.xoff_bytes {
            // Also if it has paused already: a link that was cut since has forgotten that.
            self.signal(at, class, true, events);
        }
        true
    }

    /// The host has taken the first frame from its buffer.
    pub fn taken(&mut self, at: Time, events: &mut EventQueue) -> Option<Packet> {
        let Buffered { packet, bytes, class } = self.frames.pop_front()?;
        let held = &mut self.bytes[usize::from(class)];
        *held -= u64::from(bytes);
        if self.paused[usize::from(class)] && *held <= self.config.buffer.xon_bytes {
            self.signal(at, class, false, events);
        }
        if let Some(next) = self.frames.front() {
            self.take_next(at, next.bytes, events);
        }
        Some(packet)
    }

    fn take_next(&self, at: Time, bytes: u32, events: &mut EventQueue) {
        let taken = Event::Receiver(ReceiverEvent::Taken { host: self.host });
        let due = at + transmission_time(bytes, self.rate_bps);
        events.add(due, EventOrder::of_host(self.host), taken);
    }

    fn signal(&mut self, at: Time, class: u8, stop: bool, events: &mut EventQueue) {
        self.paused[usize::from(class)] = stop;
        let target = VirtualChannel { channel: self.channel, class };
        let signal = ReceiverEvent::Signalled { target, stop };
        let order = EventOrder::of_target(EventKind::Pause, target);
        events.add(at + self.config.delay, order, Event::Receiver(signal));
    }
}
