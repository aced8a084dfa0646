//! Switches that stop and start, and processes of Open vSwitch that end.

mod harness;

use emulator::engine::Hold;
use harness::{configuration, frame, Bench, MS};
use proptest::prelude::*;
use serde_json::{json, Value};
use test_tier::case_count;

fn switch(bench: &mut Bench, name: &str, up: bool) {
    let answer = bench.ask(json!({"do": "switch", "name": name, "up": up}));
    assert_eq!(answer["ok"], true, "{answer}");
}

fn status(bench: &mut Bench) -> Value {
    bench.ask(json!({"do": "status"}))
}

/// All frames of the last reset are accounted for.
fn counted(bench: &mut Bench) -> u64 {
    let causes =
        ["queue", "headroom", "watchdog", "down", "broadcast_limit", "unforwarded", "reboot"];
    let dropped: u64 = causes.map(|cause| bench.drops(cause)).iter().sum();
    dropped + bench.delivered.len() as u64
}

/// Congested: the hosts h1 and h2 send to h3, so that s1 has a queue.
fn loaded() -> Bench {
    let mut bench = Bench::new("pause");
    for _ in 0..20 {
        bench.send("ah1", &frame(3, 1514));
        bench.send("ah2", &frame(3, 1514));
    }
    bench.run_virtual(12 * MS);
    assert!(bench.channel("s1:3")["priorities"][0]["queue_bytes"].as_u64().unwrap() > 1522);
    bench
}

#[test]
fn a_switch_that_stops_loses_what_it_has_and_pauses_nobody() {
    let mut bench = loaded();
    switch(&mut bench, "s1", false);
    assert!(bench.drops("reboot") > 1);
    for channel in ["h1", "h2", "s1:3"] {
        let channel = bench.channel(channel);
        assert_eq!(channel["up"], false);
        assert_eq!(channel["priorities"][0]["queue_bytes"], 0);
    }
    bench.run_virtual(2 * MS);
    for channel in ["h1", "h2"] {
        // Nothing is in its ingress buffers any more, nor on its line.
        assert_eq!(bench.channel(channel)["priorities"][0]["account_bytes"], 0);
    }
    bench.run_virtual(100 * MS);
    bench.run_for(300 * MS);
    assert_eq!(counted(&mut bench), 40);
    assert_eq!(bench.engine.frames_in_network(), 0);
    let report = status(&mut bench);
    assert_eq!((&report["valid"], &report["stopped"]), (&json!(true), &json!(["s1"])));
    // What comes now is lost on the links.
    let (down, delivered) = (bench.drops("down"), bench.delivered.len());
    bench.send("ah1", &frame(3, 100));
    bench.run_virtual(10 * MS);
    assert_eq!((bench.drops("down"), bench.delivered.len()), (down + 1, delivered));
    switch(&mut bench, "s1", true);
    for to in [2, 3] {
        bench.send("ah1", &frame(to, 100));
    }
    bench.run_virtual(10 * MS);
    assert_eq!(bench.delivered.len(), delivered + 2);
    assert_eq!(status(&mut bench)["stopped"], json!([]));
}

#[test]
fn frames_inside_a_switch_that_stops_are_lost_and_hold_nothing() {
    let mut bench = Bench::new("pause");
    (bench.probed, bench.switch_time) = (false, 1000 * MS);
    for _ in 0..40 {
        bench.send("ah1", &frame(3, 100));
    }
    bench.run_for(20 * MS);
    assert!(matches!(bench.held, Some(Hold::Switch(_))), "{:?}", bench.held);
    switch(&mut bench, "s1", false);
    // Copies that come out nevertheless are of before.
    bench.run_for(1100 * MS);
    assert_eq!((bench.held, bench.engine.frames_in_network(), bench.delivered.len()), (None, 0, 0));
    assert_eq!(counted(&mut bench), 40);
    assert_eq!(status(&mut bench)["valid"], true);
}

#[test]
fn a_stop_that_ends_before_a_frame_arrives_loses_it_as_well() {
    let mut bench = Bench::new("pause");
    (bench.probed, bench.switch_time) = (false, 1000 * MS);
    bench.send("ah1", &frame(3, 100));
    bench.step(MS / 5);
    switch(&mut bench, "s1", false);
    switch(&mut bench, "s1", true);
    bench.run_for(1100 * MS);
    assert_eq!((bench.drops("reboot"), bench.delivered.len()), (1, 0));
    assert_eq!(counted(&mut bench), 1);
}

#[test]
fn cuts_and_stops_are_independent_of_each_other_and_survive_a_reset() {
    let mut bench = Bench::new("pause");
    let up = |bench: &mut Bench| {
        bench.ask(json!({"do": "reset"}));
        ["h1", "h3", "s1:3", "s2:2"].map(|name| bench.channel(name)["up"].as_bool().unwrap())
    };
    bench.ask(json!({"do": "link", "name": "s1:3-s2:2", "up": false, "channel": "s1:3"}));
    assert_eq!(up(&mut bench), [true, true, false, true]);
    switch(&mut bench, "s2", false);
    assert_eq!(up(&mut bench), [true, false, false, false]);
    switch(&mut bench, "s1", false);
    assert_eq!(up(&mut bench), [false; 4]);
    assert_eq!(status(&mut bench)["stopped"], json!(["s1", "s2"]));
    let cut = ["s1:3", "s2:2"].map(|name| bench.channel(name)["cut"].as_bool().unwrap());
    assert_eq!(cut, [true, false]);
    switch(&mut bench, "s2", true);
    assert_eq!(up(&mut bench), [false, true, false, false]);
    switch(&mut bench, "s1", true);
    assert_eq!(up(&mut bench), [true, true, false, true]);
    bench.ask(json!({"do": "link", "name": "s1:3-s2:2", "up": true}));
    assert_eq!(up(&mut bench), [true; 4]);
}

#[test]
fn frames_inside_a_process_that_ends_are_lost_and_those_of_others_are_not() {
    let mut settings = configuration("pause");
    settings["switch_processes"] = json!([1, 2]);
    settings["process_of"] = json!({"s1": 0, "s2": 1});
    let mut bench = Bench::of(&settings);
    (bench.probed, bench.switch_time) = (false, 50 * MS);
    bench.send("ah1", &frame(2, 100));
    bench.send("ah3", &frame(9, 100));
    bench.run_for(10 * MS);
    let handed = bench.engine.in_switches();
    assert_eq!(handed.len(), 2);
    bench.engine.lose_in_processes(&handed, &[1]);
    bench.run_for(300 * MS);
    assert_eq!((bench.drops("reboot"), bench.delivered.len()), (1, 1));
    assert_eq!(bench.channel("h3")["drops"]["reboot"], 1);
    let report = status(&mut bench);
    assert_eq!((&report["abandoned"], &report["valid"]), (&json!(0), &json!(true)));
    bench.control.surroundings.ended = vec![1];
    let report = status(&mut bench);
    assert_eq!(report["valid"], false);
    let problem = report["problems"][0].as_str().unwrap();
    assert!(problem.starts_with("the Open vSwitch of s2 has ended"), "{problem}");
    // It runs again.
    bench.control.surroundings.ended.clear();
    assert_eq!(status(&mut bench)["valid"], true);
}

#[derive(Clone, Debug)]
enum Step {
    Send(usize, u8),
    Switch(usize, bool),
    Link(usize, bool),
    Lose(usize),
    Run(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3usize, prop_oneof![Just(1), Just(2), Just(3), Just(9)])
            .prop_map(|(from, to)| Step::Send(from, to)),
        1 => (0..2usize, any::<bool>()).prop_map(|(switch, up)| Step::Switch(switch, up)),
        1 => (0..4usize, any::<bool>()).prop_map(|(link, up)| Step::Link(link, up)),
        1 => (0..2usize).prop_map(Step::Lose),
        3 => (1..20u64).prop_map(Step::Run),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(case_count(256)))]

    /// Whatever stops, starts, is cut and ends: each frame is delivered or counted as lost once, and
    /// afterwards all works as before.
    #[test]
    fn every_frame_is_delivered_or_lost_once(
        steps in prop::collection::vec(step(), 1..40), pfc in any::<bool>(), slow in 1..30u64
    ) {
        let mut settings = configuration(if pfc { "pfc" } else { "pause" });
        settings["switch_processes"] = json!([1, 2]);
        settings["process_of"] = json!({"s1": 0, "s2": 1});
        let mut bench = Bench::of(&settings);
        bench.switch_time = slow * MS / 10;
        let links = ["h1", "h2", "h3", "s1:3-s2:2"];
        let mut sent = 0;
        for step in steps {
            match step {
                Step::Send(from, to) => {
                    bench.send(["ah1", "ah2", "ah3"][from], &frame(to, 1000));
                    sent += 1;
                }
                Step::Switch(index, up) => switch(&mut bench, ["s1", "s2"][index], up),
                Step::Link(link, up) => {
                    bench.ask(json!({"do": "link", "name": links[link], "up": up}));
                }
                Step::Lose(process) => {
                    let handed = bench.engine.in_switches();
                    // The process takes them along.
                    bench.carry_all();
                    let before = std::mem::take(&mut bench.inside);
                    let of_process = |end: usize| {
                        usize::from(bench.engine.state().fabric.ends[end].interface == "bh3"
                            || bench.engine.state().fabric.ends[end].interface == "kb")
                    };
                    let kept = before.into_iter().filter(|(_, end, _)| of_process(*end) != process);
                    bench.inside = kept.collect();
                    bench.engine.lose_in_processes(&handed, &[process]);
                }
                Step::Run(time) => bench.run_for(time * MS / 2),
            }
        }
        bench.run_for(500 * MS);
        prop_assert_eq!(counted(&mut bench), sent);
        prop_assert_eq!(bench.engine.frames_in_network(), 0);
        for link in links {
            bench.ask(json!({"do": "link", "name": link, "up": true}));
        }
        for name in ["s1", "s2"] {
            switch(&mut bench, name, true);
        }
        bench.run_for(50 * MS);
        let before = bench.delivered.len();
        for (from, to) in [("ah1", 3), ("ah2", 3), ("ah1", 2)] {
            bench.send(from, &frame(to, 1000));
        }
        bench.run_for(50 * MS);
        prop_assert_eq!(bench.delivered.len(), before + 3);
        prop_assert_eq!(&status(&mut bench)["valid"], true);
    }
}
