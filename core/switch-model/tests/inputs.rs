//! What each input of the model does to the channels, and what follows from it.

mod harness;

use harness::channel;
use switch_model::{
    BroadcastLimit, ChannelId, DropCause, Effects, FlowControl, Frame, Model, Signal,
    VirtualChannel, MICROSECOND, SECOND,
};

#[derive(Default)]
struct Recorder {
    sent: Vec<(u64, u64, u64)>,
    signals: Vec<Signal>,
    dropped: usize,
}

impl Effects<()> for Recorder {
    fn started(&mut self, sent: switch_model::Sent<()>) {
        self.sent.push((sent.start, sent.ends, sent.arrives));
    }
    fn lost(&mut self, sent: switch_model::Sent<()>, cause: DropCause) {
        self.dropped(sent.channel, cause, ());
    }
    fn sent_twice(&mut self, sent: switch_model::Sent<()>, _: u64) {
        self.started(sent);
    }
    fn signal(&mut self, signal: Signal) {
        self.signals.push(signal);
    }
    fn dropped(&mut self, _: ChannelId, _: DropCause, (): ()) {
        self.dropped += 1;
    }
    fn expires(&mut self, _: VirtualChannel, _: Option<u64>) {}
}

fn frame(bytes: u32) -> Frame<()> {
    Frame { priority: 0, bytes, payload: () }
}

#[test]
fn a_frame_takes_its_time() {
    let mut model = Model::new([channel(FlowControl::Pause, true, 500, 4000)], 1);
    let mut recorder = Recorder::default();
    model.inject(0, ChannelId(0), frame(10), &mut recorder);
    // 64 bytes at least, 20 of gap, 800 ns each; then 500 us.
    let ends = 84 * 800_000;
    assert_eq!(recorder.sent, [(0, ends, ends + 500 * MICROSECOND)]);
    model.inject(ends / 2, ChannelId(0), frame(1522), &mut recorder);
    model.tx_done(ends, ChannelId(0), &mut recorder);
    assert_eq!(recorder.sent[1].0, ends);
    assert_eq!(recorder.sent[1].1, ends + 1542 * 800_000);
}

#[test]
fn a_multicast_is_charged_once_until_its_last_copy_has_left() {
    let configs = vec![channel(FlowControl::Pause, true, 0, 1000); 3];
    let mut model = Model::new(configs, 1);
    let mut recorder = Recorder::default();
    let ingress = |model: &Model<()>| model.counters(0, ChannelId(0)).priorities[0].ingress_bytes;
    let entry = model.arrive(0, ChannelId(0), 0, 1500, &mut recorder).unwrap();
    for out in [1, 2] {
        model.forward(0, entry, ChannelId(out), frame(1504), &mut recorder);
    }
    model.settle(0, entry, &mut recorder);
    assert_eq!(ingress(&model), 1500);
    model.tx_done(SECOND, ChannelId(1), &mut recorder);
    assert_eq!(ingress(&model), 1500);
    model.tx_done(2 * SECOND, ChannelId(2), &mut recorder);
    assert_eq!(ingress(&model), 0);
    let signals = recorder.signals.iter().map(|signal| (signal.arrives, signal.stop));
    assert!(signals.eq([(0, true), (2 * SECOND, false)]));
    // A copy that comes later is in no ingress buffer.
    model.forward(3 * SECOND, entry, ChannelId(1), frame(1504), &mut recorder);
    assert_eq!((ingress(&model), recorder.sent.len()), (0, 3));
}

#[test]
fn priorities_that_no_frame_has_change_nothing() {
    for &flow_control in FlowControl::ALL {
        let run = |priorities: u8| {
            let mut config = channel(flow_control, true, 500, 1000);
            config.buffer.credit_bytes = 4000;
            let configs = vec![config; 2];
            let mut model = Model::with_priorities(configs, priorities, 1);
            let mut recorder = Recorder::default();
            let (there, back) = (ChannelId(0), ChannelId(1));
            for (from, to) in [(there, back), (there, back), (back, there), (back, there)] {
                if let Some(entry) = model.arrive(0, from, 1, 1500, &mut recorder) {
                    let frame = Frame { priority: 1, bytes: 1504, payload: () };
                    model.forward(0, entry, to, frame, &mut recorder);
                    model.settle(0, entry, &mut recorder);
                }
            }
            for signal in std::mem::take(&mut recorder.signals) {
                model.signalled(signal.arrives, signal, &mut recorder);
            }
            for channel in [there, back] {
                model.tx_done(SECOND, channel, &mut recorder);
            }
            let deadlock = model.deadlock();
            let queued = model.queued_bytes(there);
            model.set_up(2 * SECOND, there, false, &mut recorder);
            model.set_up(3 * SECOND, there, true, &mut recorder);
            let counters = [there, back].map(|channel| model.counters(4 * SECOND, channel));
            (deadlock, queued, counters, recorder.sent, recorder.signals, recorder.dropped)
        };
        let few = run(2);
        assert!(few.2[0].rx_frames > 0, "{flow_control:?}");
        assert_eq!(few, run(8), "{flow_control:?}");
    }
}

#[test]
fn a_resume_never_overtakes_a_stop() {
    let mut model = Model::new(vec![channel(FlowControl::Pause, true, 500, 1000); 2], 1);
    let mut recorder = Recorder::default();
    let entry = model.arrive(SECOND, ChannelId(0), 0, 1500, &mut recorder).unwrap();
    // A late caller gives the frame back at an earlier virtual time.
    model.settle(SECOND / 2, entry, &mut recorder);
    let [xoff, xon] = recorder.signals[..] else { panic!() };
    assert!(xoff.stop && !xon.stop);
    assert!(xon.arrives >= xoff.arrives);
}

#[test]
fn too_little_headroom_loses_and_counts() {
    let mut config = channel(FlowControl::Pause, true, 500, 1000);
    config.buffer.headroom_bytes = 600;
    let mut model = Model::new([config], 1);
    let mut recorder = Recorder::default();
    assert!(model.arrive(0, ChannelId(0), 0, 1500, &mut recorder).is_some());
    assert!(model.arrive(0, ChannelId(0), 0, 101, &mut recorder).is_none());
    assert_eq!(model.counters(0, ChannelId(0)).drops[DropCause::Headroom as usize], 1);
}

#[test]
fn broadcasts_beyond_the_limit_are_counted_and_charged_to_no_buffer() {
    let mut config = channel(FlowControl::Pause, true, 500, 1000);
    config.broadcast_limit = Some(BroadcastLimit { burst_bytes: 300, ..BroadcastLimit::DEFAULT });
    let mut model: Model<()> =
        Model::new([config, channel(FlowControl::Pause, true, 500, 1000)], 1);
    let (host, other) = (ChannelId(0), ChannelId(1));
    let admitted = |model: &mut Model<()>, at| {
        (0..9)
            .filter(|_| model.admit_broadcast(at, host, (0, 80), &mut Recorder::default()))
            .count()
    };
    assert_eq!(admitted(&mut model, 0), 3);
    let counted = model.counters(0, host);
    assert_eq!(
        (counted.drops[DropCause::BroadcastLimit as usize], counted.broadcasts_over),
        (6, 6)
    );
    assert_eq!(
        (counted.dropped(), counted.rx_frames, counted.priorities[0].ingress_bytes),
        (0, 0, 0)
    );
    assert_eq!(model.last_broadcast_over(host), Some(0));
    // A channel without a limit has none, and what a cut link loses is not counted as limited.
    assert!((0..9).all(|_| model.admit_broadcast(0, other, (0, 80), &mut Recorder::default())));
    model.set_up(1, host, false, &mut Recorder::default());
    assert!((0..9).all(|_| model.admit_broadcast(1, host, (0, 80), &mut Recorder::default())));
    let counted = model.counters(1, host);
    assert_eq!(counted.broadcasts_over, 6);
    assert_eq!(counted.since(&counted).broadcasts_over, 0);
}

#[test]
fn a_host_stops_its_channel_for_as_long_as_it_asks() {
    let mut model = Model::new([channel(FlowControl::Pause, false, 0, 1000)], 1);
    let mut recorder = Recorder::default();
    let target = VirtualChannel { channel: ChannelId(0), class: 0 };
    assert!(model.pause_until(0, target, SECOND, &mut recorder));
    model.inject(1, ChannelId(0), frame(100), &mut recorder);
    assert!(recorder.sent.is_empty());
    model.expired(SECOND - 1, target, &mut recorder);
    assert!(recorder.sent.is_empty());
    model.expired(SECOND, target, &mut recorder);
    assert_eq!(recorder.sent.len(), 1);
    assert_eq!(model.counters(SECOND, ChannelId(0)).priorities[0].paused, SECOND);
    let mut off = Model::new([channel(FlowControl::Off, false, 0, 1000)], 1);
    assert!(!off.pause_until(0, target, SECOND, &mut recorder));
}

#[test]
fn a_cut_link_loses_what_it_holds_and_starts_afresh() {
    let mut model = Model::new(vec![channel(FlowControl::Pause, true, 10, 1000); 2], 1);
    let mut recorder = Recorder::default();
    for _ in 0..3 {
        model.inject(0, ChannelId(0), frame(1500), &mut recorder);
    }
    model.set_up(1, ChannelId(0), false, &mut recorder);
    assert_eq!(recorder.dropped, 2);
    assert!(model.arrive(2, ChannelId(0), 0, 1500, &mut recorder).is_none());
    model.inject(3, ChannelId(0), frame(1500), &mut recorder);
    assert_eq!(model.counters(0, ChannelId(0)).drops[DropCause::Down as usize], 4);
    model.set_up(4, ChannelId(0), true, &mut recorder);
    model.tx_done(SECOND, ChannelId(0), &mut recorder);
    model.inject(SECOND, ChannelId(0), frame(1500), &mut recorder);
    assert_eq!(recorder.sent.len(), 2);
}

#[test]
fn a_signal_does_not_outlive_a_cut() {
    let mut configs = vec![channel(FlowControl::Pause, true, 500, 1000); 2];
    configs[0].delay = 500 * MICROSECOND;
    let mut model = Model::new(configs, 1);
    let mut recorder = Recorder::default();
    let entry = model.arrive(0, ChannelId(0), 0, 1500, &mut recorder).unwrap();
    model.forward(0, entry, ChannelId(1), frame(1500), &mut recorder);
    model.settle(0, entry, &mut recorder);
    let stop = recorder.signals[0];
    model.set_up(1, ChannelId(0), false, &mut recorder);
    model.set_up(2, ChannelId(0), true, &mut recorder);
    model.signalled(stop.arrives, stop, &mut recorder);
    assert!(!model.is_paused(ChannelId(0), 0), "nothing would ever resume it");
}

#[test]
fn restoring_a_link_that_is_up_does_not_resume_a_paused_channel() {
    let mut model = Model::new(vec![channel(FlowControl::Pause, true, 500, 1000); 2], 1);
    let mut recorder = Recorder::default();
    let entry = model.arrive(0, ChannelId(0), 0, 1500, &mut recorder).unwrap();
    model.forward(0, entry, ChannelId(1), frame(1500), &mut recorder);
    model.settle(0, entry, &mut recorder);
    let stop = recorder.signals[0];
    model.signalled(stop.arrives, stop, &mut recorder);
    model.set_up(stop.arrives, ChannelId(0), true, &mut recorder);
    assert!(model.is_paused(ChannelId(0), 0));
    assert_eq!(recorder.signals.len(), 1);
    model.tx_done(SECOND, ChannelId(1), &mut recorder);
    assert_eq!(recorder.signals.len(), 2, "its XON comes when the frame has left");
}

#[test]
fn a_restored_link_is_paused_again_while_the_ingress_buffer_is_above_xoff() {
    let mut model = Model::new(vec![channel(FlowControl::Pause, true, 500, 1000); 2], 1);
    let mut recorder = Recorder::default();
    let entry = model.arrive(0, ChannelId(0), 0, 1500, &mut recorder).unwrap();
    model.forward(0, entry, ChannelId(1), frame(1500), &mut recorder);
    model.settle(0, entry, &mut recorder);
    model.set_up(1, ChannelId(0), false, &mut recorder);
    recorder.signals.clear();
    model.set_up(2, ChannelId(0), true, &mut recorder);
    assert_eq!(recorder.signals.len(), 1);
    assert!(recorder.signals[0].stop, "XOFF");
    model.tx_done(SECOND, ChannelId(1), &mut recorder);
    assert!(!recorder.signals[1].stop, "XON after the frame has left");
}
