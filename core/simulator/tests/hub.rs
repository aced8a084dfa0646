//! Repeater hubs: hosts that share one medium by the rules of IEEE 802.3.

mod common;

use common::{channels, config, MICROSECOND};
use simulator::{
    Arrivals, Fabric, Flow, LinkChange, Process, Report, Settings, Simulation, Tables, Target,
    Time, Traffic, Wish,
};

/// One bit at 10 Mbit/s.
const BIT: Time = 100_000;
const SECOND: Time = 1_000_000 * MICROSECOND;
/// Of a whole packet: 8 bytes of preamble, 18 of Ethernet; then a gap of 12.
const FRAME_BITS: Time = 8 * (8 + 1518);
const GAP_BITS: Time = 96;
const SLOT_BITS: Time = 512;

fn hub(hosts: usize, delay: Time) -> Fabric {
    let rows = channels(1, &[], &vec![0; hosts], config(delay));
    Fabric::new(1, hosts, rows).and_then(Fabric::with_hubs).expect("a hub")
}

fn settings(seed: u64, end: Time) -> Settings {
    Settings { end, ..common::settings(seed) }
}

fn run(fabric: Fabric, traffic: Traffic, settings: Settings) -> Report {
    let tables = Tables::without_routes(&fabric);
    common::run(fabric, tables, traffic, settings)
}

/// The first `senders` of `hosts` hosts always have a packet for the last.
fn saturated(hosts: u32, senders: u32, message_bytes: u64, arrivals: Arrivals) -> Traffic {
    let flows = (0..senders).map(|from| Flow { from, to: Target::Host(hosts - 1) }).collect();
    Traffic::Flows { flows, arrivals, message_bytes }
}

fn share_of_line(report: &Report, bits_a_frame: Time) -> f64 {
    let frames: u64 = report.stations.iter().map(|station| station.frames).sum();
    (frames * bits_a_frame * BIT) as f64 / report.now as f64
}

#[test]
fn a_host_alone_gets_the_line_rate_less_preamble_and_gap() {
    let traffic = saturated(2, 1, 1500, Arrivals::Saturate);
    let report = run(hub(2, MICROSECOND), traffic, settings(1, SECOND));
    let frames = SECOND / ((FRAME_BITS + GAP_BITS) * BIT);
    assert!(report.stations[0].frames.abs_diff(frames) <= 1);
    assert_eq!(report.stations[0].collisions, 0);
    // To the hub and from there, without waiting for the end of the frame in between.
    assert_eq!(report.latency.least(), FRAME_BITS * BIT + 2 * MICROSECOND);
}

/// Sends one message at a given time.
#[derive(Debug)]
struct Once(Option<(Time, u32)>);

impl Process for Once {
    fn begin(&mut self, _now: Time, wishes: &mut Vec<Wish>) {
        wishes.extend(self.0.map(|(at, _)| Wish::Wake { at, tag: 0 }));
    }
    fn received(&mut self, _now: Time, _from: u32, _tag: u64, _wishes: &mut Vec<Wish>) {}
    fn woken(&mut self, _now: Time, _tag: u64, wishes: &mut Vec<Wish>) {
        let send = |(_, to)| Wish::Send { to: Target::Host(to), bytes: 1500, tag: 0 };
        wishes.extend(self.0.map(send));
    }
}

fn once(sendings: &[Option<(Time, u32)>]) -> Traffic {
    Traffic::Processes(sendings.iter().map(|&sends| Box::new(Once(sends)) as _).collect())
}

#[test]
fn a_station_that_senses_another_waits_for_its_end_and_a_gap() {
    let delay = 2 * MICROSECOND;
    let traffic = once(&[Some((0, 2)), Some((100 * MICROSECOND, 2)), None]);
    let report = run(hub(3, delay), traffic, settings(1, Time::MAX));
    let first = FRAME_BITS * BIT + 2 * delay;
    let second = first + (GAP_BITS + FRAME_BITS) * BIT + 2 * delay;
    assert_eq!(report.stations.iter().map(|station| station.collisions).sum::<u64>(), 0);
    assert_eq!((report.last_arrival, report.last_complete), (second, second));
}

#[test]
fn two_that_begin_within_a_delay_of_each_other_collide_and_both_get_through() {
    let delay = 2 * MICROSECOND;
    for seed in 0..20 {
        // The second begins just before it would have sensed the first.
        let traffic = once(&[Some((0, 2)), Some((2 * delay - 1, 2)), None]);
        let report = run(hub(3, delay), traffic, settings(seed, Time::MAX));
        let counted = &report.stations;
        assert!(counted[0].collisions >= 1);
        assert_eq!(counted[0].collisions, counted[1].collisions, "both sense each collision");
        assert_eq!((counted[0].frames, counted[1].frames), (1, 1));
        assert_eq!(report.messages_under_way, 0);
        // It cannot be faster than: collision, no back-off, one frame, gap, the other.
        let least = (96 + 2 * (GAP_BITS + FRAME_BITS)) * BIT;
        let most = least + (counted[0].collisions * 96 + 2 * 1024 * SLOT_BITS) * BIT + 20 * delay;
        assert!((least..most).contains(&report.last_complete), "{seed}");
    }
}

#[test]
fn of_two_that_always_send_one_captures_the_line_and_the_other_gives_frames_up() {
    for seed in 1..4 {
        let traffic = saturated(3, 2, 1500, Arrivals::Saturate);
        let report = run(hub(3, MICROSECOND), traffic, settings(seed, 15 * SECOND));
        let share = share_of_line(&report, FRAME_BITS + GAP_BITS);
        assert!((0.9..1.0).contains(&share), "{share}");
        let counted = &report.stations[..2];
        // In the long run both send equally much, but a station that loses 16 times in a row gives
        // its frame up: after each frame the winner draws from two slots and the loser from ever
        // more.
        let frames = counted.iter().map(|station| station.frames);
        assert!(frames.clone().max() < frames.min().map(|least| 2 * least), "{counted:?}");
        for (flow, station) in report.flows.iter().zip(counted) {
            assert_eq!(flow.lost, station.given_up);
            assert!(station.given_up > 0);
        }
    }
}

#[test]
fn one_seed_gives_one_result_and_another_another() {
    let of = |seed| {
        let traffic = saturated(5, 4, 700, Arrivals::Poisson { mean: 1e9 });
        format!("{:?}", run(hub(5, MICROSECOND), traffic, settings(seed, SECOND)))
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

/// The share of time in which `hosts` hosts carry payloads of `bytes` bytes, and that of Metcalfe
/// and Boggs (Ethernet: distributed packet switching, 1976) if each of Q hosts sends in a slot with
/// probability 1/Q: P / (P + W T), W = (1 - A) / A slots T, A = (1 - 1/Q)^(Q - 1).
fn efficiency(hosts: u32, bytes: u32, delay: Time) -> (f64, f64) {
    let traffic = saturated(hosts + 1, hosts, u64::from(bytes), Arrivals::Saturate);
    let settings = Settings { packet_bytes: bytes, ..settings(1, SECOND / 2) };
    let report = run(hub(hosts as usize + 1, delay), traffic, settings);
    let bits = 8 * (8 + 18 + Time::from(bytes)) + GAP_BITS;
    let acquired = (1.0 - 1.0 / f64::from(hosts)).powi(hosts as i32 - 1);
    let waits = (1.0 - acquired) / acquired * SLOT_BITS as f64;
    (share_of_line(&report, bits), bits as f64 / (bits as f64 + waits))
}

#[test]
fn many_hosts_share_the_line_about_as_efficiently_as_theory_says() {
    // Lines so long that a collision takes about one slot, as the theory assumes. Few hosts do
    // better, because one of them keeps the line while the others back off.
    for (hosts, bytes) in [(10, 1500), (32, 1500), (64, 1500), (32, 300), (64, 300)] {
        let (found, theory) = efficiency(hosts, bytes, 12 * MICROSECOND);
        assert!((found / theory - 1.0).abs() < 0.1, "{hosts} x {bytes}: {found}, not {theory}");
    }
    let (few, _) = efficiency(2, 46, 12 * MICROSECOND);
    let (many, _) = efficiency(64, 46, 12 * MICROSECOND);
    assert!(many < 0.7 && few > 0.9, "{many} {few}");
}

#[test]
fn fabrics_that_cannot_be_hubs_are_refused() {
    let refused = |fabric: Fabric| fabric.with_hubs().map(|_| ()).unwrap_err().0;
    let of = |switches, links: &[(u32, u32)], hosts: &[u32], config| {
        Fabric::new(switches, hosts.len(), channels(switches as u32, links, hosts, config))
            .expect("a fabric")
    };
    let joined = of(2, &[(0, 1)], &[0, 1], config(0));
    assert!(refused(joined).contains("joins hosts only"));
    let fast = simulator::ChannelConfig { rate_bps: 1_000_000_000, ..config(0) };
    assert!(refused(of(1, &[], &[0, 0], fast)).contains("at most 100 Mbit/s"));
    // 512 bits at 10 Mbit/s are 51.2 us: twice there and back over two lines of 12.8.
    let longest = 12_800_000;
    assert!(of(1, &[], &[0, 0], config(longest)).with_hubs().is_ok());
    assert!(refused(of(1, &[], &[0, 0], config(longest + 1))).contains("there and back"));
    let cut = LinkChange { at: 5, channel: 0, up: false };
    let fabric = hub(2, 0);
    let settings = Settings { link_changes: vec![cut], ..settings(1, SECOND / 2) };
    let tables = Tables::without_routes(&fabric);
    let traffic = saturated(2, 1, 1500, Arrivals::Saturate);
    let error = Simulation::new(fabric, tables, traffic, settings).unwrap_err();
    assert!(error.0.contains("links of a hub"));
}
