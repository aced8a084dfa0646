//! Pause frames that take their place on the wire.
//!
//! By default a pause signal takes one delay and no room on a line. Where switches send pause
//! frames, a signal waits until the frame that its port is sending has ended, goes before all that
//! wait there, and takes the time of a shortest frame. One frame names all classes whose state has
//! changed meanwhile (IEEE 802.1Qbb, as IEEE 802.1Q-2018 clause 36 has it). A pause ends by itself
//! after its quanta of 512 bit times, so the frame is repeated after half of them while the buffer
//! stays above its limit. The sender obeys a response time after the frame has arrived.
//!
//! The line is busy while it carries a pause frame. A pause frame that waits for a frame in
//! transmission takes the place of what that frame holds ([`Hold::Behind`]): switches without pause
//! frames do nothing for it.

use std::collections::BTreeMap;

use super::{Effects, Model, Signal};
use crate::config::Buffer;
use crate::entries::Hold;
use crate::ids::{ChannelId, VirtualChannel, PRIORITIES};
use crate::order::{EventKind, EventOrder};
use crate::switch_settings::SwitchSettings;
use crate::switches::{ChannelPorts, SwitchPort};
use crate::units::{transmission_time, wire_bytes, Time, PAUSE_FRAME_BYTES, QUANTUM_BITS, SECOND};

/// What is due because of pause frames; [`Model::pause_frame_event`] takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseFrameEvent {
    /// The pause frame on this channel is sent, and its sender is free again.
    Sent(ChannelId),
    /// The pause of this virtual channel is repeated, if it lasts.
    Refresh(VirtualChannel),
}

impl PauseFrameEvent {
    /// Its order. Pause frames have turn 0.
    pub const fn order(self) -> EventOrder {
        match self {
            PauseFrameEvent::Sent(channel) => {
                EventOrder::of_frame(EventKind::TransmissionEnd, channel, 0)
            }
            PauseFrameEvent::Refresh(target) => {
                EventOrder::of_target(EventKind::PauseTimer, target)
            }
        }
    }
}

/// The pause frames for the sender of one channel.
#[derive(Clone, Debug)]
pub(crate) struct PauseLink {
    /// The other direction of its link, which carries them.
    carrier: ChannelId,
    quanta: u16,
    /// How long a pause lasts.
    pause: Time,
    response: Time,
    longest_frame_bytes: u32,
    /// Whether a pause lasts until the next frame for it, whatever that has to wait for.
    lasts: bool,
    /// Classes that the next frame names, as bits.
    pending: u8,
    /// Classes that the last frame that named them has stopped, as bits.
    stopped: u8,
    /// By class: when its pause is repeated.
    refresh: [Time; PRIORITIES],
    /// What the frame that a pause frame waits for holds.
    held: Hold,
}

impl PauseLink {
    /// Its carrier has another rate: further pauses last as many bit times of that.
    fn set_rate(&mut self, rate_bps: u64) {
        let bits = u128::from(self.quanta) * u128::from(QUANTUM_BITS);
        self.pause = (bits * u128::from(SECOND) / u128::from(rate_bps)) as Time;
        let waits = transmission_time(wire_bytes(self.longest_frame_bytes), rate_bps);
        self.lasts = self.pause - self.pause / 2 > waits;
    }
}

impl<P> Model<P> {
    /// Have switches send pause frames as the settings say, before any frame has arrived. The other
    /// arguments are those of [`Model::set_switches`], and the longest frame that is sent.
    ///
    /// # Errors
    /// One line: a link with credits, which are no frames.
    pub fn set_pause_frames(
        &mut self,
        settings: &SwitchSettings,
        switches: &[String],
        ports: &[ChannelPorts],
        longest_frame_bytes: u32,
    ) -> Result<(), String> {
        if !settings.has_pause_frames() {
            return Ok(());
        }
        self.plain = false;
        let leaving: BTreeMap<SwitchPort, ChannelId> = ports
            .iter()
            .zip(0..)
            .filter_map(|(ends, id)| Some((ends.from?, ChannelId(id))))
            .collect();
        let mut links = vec![None; ports.len()];
        for (number, ends) in ports.iter().enumerate() {
            let Some((at, name)) = ends.to.map(|at| (at, &switches[at.0 as usize])) else {
                continue;
            };
            let Some(frames) = &settings.of_switch(name).pause_frames else { continue };
            let config = &self.cold[number].config;
            if config.flow_control.uses_credits() {
                return Err(format!(
                    "{name}:{}: pause_frames: credits need none: leave them out, or use PFC",
                    at.1
                ));
            }
            let Some(&carrier) = leaving.get(&at) else { continue };
            let mut link = PauseLink {
                carrier,
                quanta: frames.quanta,
                pause: 0,
                response: frames.response(),
                longest_frame_bytes,
                lasts: true,
                pending: 0,
                stopped: 0,
                refresh: [0; PRIORITIES],
                held: Hold::Uncharged,
            };
            link.set_rate(self.cold[carrier.index()].config.rate_bps);
            links[number] = Some(Box::new(link));
        }
        self.pause_frames = links;
        Ok(())
    }

    /// Something is due, see [`Effects::pause_frame`].
    #[cold]
    #[inline(never)]
    pub fn pause_frame_event(
        &mut self,
        now: Time,
        event: PauseFrameEvent,
        fx: &mut impl Effects<P>,
    ) {
        match event {
            PauseFrameEvent::Sent(channel) => self.tx_done(now, channel, fx),
            PauseFrameEvent::Refresh(target) => {
                let link = self.pause_link(target.channel);
                let repeats = link.is_some_and(|link| {
                    let class = usize::from(target.class);
                    link.refresh[class] == now && link.stopped & (1 << class) != 0
                });
                if repeats && self.ingress(target).xoff_sent {
                    self.request_pause_frame(now, target, fx);
                }
            }
        }
    }

    /// Whether nothing happens any more but that pause frames are repeated, if no frame is under
    /// way: none may be sent, all pauses last, and all senders have been told.
    pub fn only_repeats_pauses(&self) -> bool {
        let told = |(number, link): (usize, &Option<Box<PauseLink>>)| {
            link.as_ref().is_none_or(|link| {
                (0..PRIORITIES as u8).all(|class| {
                    let target = VirtualChannel { channel: ChannelId(number as u32), class };
                    let stop = self.ingress(target).xoff_sent;
                    (link.stopped & (1 << class) != 0) == stop && (link.lasts || !stop)
                })
            })
        };
        self.channels.iter().all(|state| !state.up || state.waiting & !state.paused == 0)
            && self.pause_frames.iter().enumerate().all(told)
    }

    fn pause_link(&self, channel: ChannelId) -> Option<&PauseLink> {
        self.pause_frames.get(channel.index())?.as_deref()
    }

    /// Whether a pause of a channel lasts until its receiver ends it.
    pub(crate) fn pause_lasts(&self, channel: ChannelId) -> bool {
        self.pause_link(channel).is_none_or(|link| link.lasts)
    }

    /// A signal has arrived: when the pause ends if no other one arrives; 0 if it does not `stop`.
    pub(super) fn pause_end(
        &mut self,
        now: Time,
        target: VirtualChannel,
        stop: bool,
        fx: &mut impl Effects<P>,
    ) -> Time {
        let Some(link) = self.pause_link(target.channel) else {
            return if stop { Time::MAX } else { 0 };
        };
        let until = stop.then_some(now + link.pause);
        fx.expires(target, until);
        until.unwrap_or(0)
    }

    /// The line of a channel has another rate, which may carry pause frames.
    pub(super) fn set_rate_of_pause_frames(&mut self, carrier: ChannelId, rate_bps: u64) {
        let channel = self.paused_over(carrier);
        if let Some(Some(link)) = channel.and_then(|id| self.pause_frames.get_mut(id.index())) {
            link.set_rate(rate_bps);
        }
    }

    /// The channel whose pause frames a channel carries, if it carries any.
    pub(super) fn paused_over(&self, carrier: ChannelId) -> Option<ChannelId> {
        let carries = |link: &Option<Box<PauseLink>>| {
            link.as_ref().is_some_and(|link| link.carrier == carrier)
        };
        self.pause_frames.iter().position(carries).map(|number| ChannelId(number as u32))
    }

    /// What the headroom of a channel needs for pause frames if its line had this rate.
    pub(super) fn room_for_pause_frames(&self, channel: ChannelId, rate_bps: u64) -> u64 {
        self.pause_link(channel).map_or(0, |link| {
            let carrier_bps = self.cold[link.carrier.index()].config.rate_bps;
            let line = (rate_bps, carrier_bps);
            Buffer::headroom_of_pause_frames(line, link.response, link.longest_frame_bytes)
        })
    }

    /// Have the next pause frame name a class; false if the receiver sends none.
    #[cold]
    pub(super) fn request_pause_frame(
        &mut self,
        now: Time,
        target: VirtualChannel,
        fx: &mut impl Effects<P>,
    ) -> bool {
        let channel = target.channel;
        let Some(Some(link)) = self.pause_frames.get_mut(channel.index()) else { return false };
        link.pending |= 1 << target.class;
        self.dispatch_pause_frame(now, channel, fx);
        true
    }

    /// Send a pause frame, or have it wait for the frame in transmission.
    fn dispatch_pause_frame(&mut self, now: Time, channel: ChannelId, fx: &mut impl Effects<P>) {
        let Some(Some(link)) = self.pause_frames.get_mut(channel.index()) else { return };
        let carrier = &mut self.channels[link.carrier.index()];
        match carrier.sending {
            _ if link.pending == 0 => {}
            Some(Hold::Behind(_)) => {}
            Some(hold) => {
                link.held = hold;
                carrier.sending = Some(Hold::Behind(channel));
            }
            None if carrier.up => self.send_pause_frame(now, channel, fx),
            None => {}
        }
    }

    fn send_pause_frame(&mut self, now: Time, channel: ChannelId, fx: &mut impl Effects<P>) {
        let channels = self.channels.len();
        let Some(Some(link)) = self.pause_frames.get_mut(channel.index()) else { return };
        let pending = std::mem::take(&mut link.pending);
        // A pause that ended before any frame named it is not worth one.
        let (ingress, stopped) = (&self.ingress, link.stopped);
        let named = (0..PRIORITIES as u8).filter(|&class| {
            let of_class = &ingress[usize::from(class) * channels + channel.index()];
            pending & (1 << class) != 0 && (of_class.xoff_sent || stopped & (1 << class) != 0)
        });
        let named = named.fold(0, |mask, class| mask | 1 << class);
        if named == 0 {
            return;
        }
        let cold = &mut self.cold[link.carrier.index()];
        cold.pause_frames += 1;
        let lasts = transmission_time(wire_bytes(PAUSE_FRAME_BYTES), cold.config.rate_bps);
        let carrier = &mut self.channels[link.carrier.index()];
        let start = now.max(carrier.next_free);
        let ends = start + lasts;
        carrier.next_free = ends;
        carrier.sending = Some(Hold::Uncharged);
        fx.pause_frame(ends, PauseFrameEvent::Sent(link.carrier));
        let epoch = self.cold[channel.index()].epoch;
        for class in (0..PRIORITIES as u8).filter(|class| named & (1 << class) != 0) {
            let target = VirtualChannel { channel, class };
            let ingress = &mut self.ingress[usize::from(class) * channels + channel.index()];
            let stop = ingress.xoff_sent;
            let bit = 1 << class;
            let repeats = stop && link.stopped & bit != 0;
            link.stopped = if stop { link.stopped | bit } else { link.stopped & !bit };
            ingress.signals_in_flight += u32::from(!repeats);
            let arrives = ingress.last_signal.max(ends + carrier.delay + link.response);
            ingress.last_signal = arrives;
            fx.signal(Signal { target, stop, repeats, allowed: 0, sent: start, arrives, epoch });
            if stop {
                let at = ends.max(start + link.pause / 2);
                link.refresh[usize::from(class)] = at;
                fx.pause_frame(at, PauseFrameEvent::Refresh(target));
            }
        }
    }

    /// A frame is sent behind which a pause frame for the sender of a channel waits.
    #[cold]
    #[inline(never)]
    pub(super) fn release_before_pause_frame(
        &mut self,
        now: Time,
        channel: ChannelId,
        fx: &mut impl Effects<P>,
    ) {
        let Some(Some(link)) = self.pause_frames.get_mut(channel.index()) else { return };
        let held = std::mem::replace(&mut link.held, Hold::Uncharged);
        self.release(now, held, fx);
        self.dispatch_pause_frame(now, channel, fx);
    }

    /// The link of a virtual channel was cut or restored: what its sender was told is forgotten.
    pub(super) fn forget_pause_frames(&mut self, target: VirtualChannel) {
        if let Some(Some(link)) = self.pause_frames.get_mut(target.channel.index()) {
            link.pending &= !(1 << target.class);
            link.stopped &= !(1 << target.class);
        }
    }

    /// A channel is restored, on which a pause frame may wait.
    pub(super) fn restore_pause_frames(
        &mut self,
        now: Time,
        carrier: ChannelId,
        fx: &mut impl Effects<P>,
    ) {
        if let Some(channel) = self.paused_over(carrier) {
            self.dispatch_pause_frame(now, channel, fx);
        }
    }
}
