//! The engine, with a table in place of Open vSwitch.

mod harness;

use std::time::{Duration, Instant};

use emulator::config::Config;
use emulator::engine::Engine;
use emulator::fabric::Fabric;
use emulator::frame::{pause_frame, PauseRequest};
use emulator::nfqueue::Held;
use harness::{configuration, frame, Bench, MS, TICK};
use proptest::prelude::*;
use serde_json::{json, Value};
use switch_model::{MICROSECOND, SECOND};
use test_tier::case_count;

#[test]
fn a_frame_arrives_as_it_was_sent_and_in_its_time() {
    let mut bench = Bench::new("pause");
    let sent = frame(3, 1514);
    bench.send("ah1", &sent);
    bench.run_for(20 * MS);
    // Three hops of (1514 + 4 + 20) * 0.8 us + 500 us, to the next tick.
    let due = 3 * (1538 * 800_000 + 500 * MICROSECOND);
    let (at, host, bytes) = bench.delivered.pop().unwrap();
    assert_eq!((host.as_str(), &bytes), ("h3", &sent));
    assert!(at >= due && at < due + TICK, "{at} is not {due}");
    assert!(bench.engine.is_idle());
    assert_eq!(bench.ask(json!({"do": "status"}))["valid"], true);
}

#[test]
fn a_host_with_a_table_tags_what_it_sends() {
    let mut settings = configuration("pause");
    settings["links"][0]["a"]["vlans"] = json!({"default": 5});
    let mut bench = Bench::of(&settings);
    let sent = frame(3, 1514);
    bench.send("ah1", &sent);
    bench.run_for(20 * MS);
    let (_, host, bytes) = bench.delivered.pop().unwrap();
    assert_eq!((host.as_str(), &bytes[12..16]), ("h3", &[0x81, 0, 0, 5][..]));
    assert_eq!((&bytes[..12], &bytes[16..]), (&sent[..12], &sent[12..]));
    // The tag adds to the transmission time on the host's line as well.
    let tx_bytes = bench.channel("h1")["tx_bytes"].as_u64();
    assert_eq!(tx_bytes, Some(1514 + 4 + 4));

    settings["links"][3]["a"]["vlans"] = json!({"default": 5});
    let config = Config::parse(&settings.to_string()).unwrap();
    assert!(Fabric::new(&config).unwrap_err().to_string().contains("an end that is a host"));
}

#[test]
fn a_broadcast_counts_once_in_the_ingress_buffer_and_reaches_all() {
    let mut bench = Bench::new("pause");
    bench.send("ah1", &frame(0xff, 200));
    bench.run_for(20 * MS);
    let mut hosts: Vec<&str> = bench.delivered.iter().map(|(_, host, _)| host.as_str()).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["h2", "h3"]);
    assert_eq!(bench.channel("h1")["priorities"][0]["account_peak_bytes"], 204);
}

#[test]
fn frames_from_before_a_reset_are_discarded() {
    let mut bench = Bench::new("pause");
    bench.switch_time = 10 * MS;
    bench.send("ah1", &frame(2, 1000));
    bench.run_for(3 * MS);
    assert_eq!(bench.inside.len(), 1);
    assert_eq!(bench.ask(json!({"do": "reset"}))["ok"], true);
    bench.run_for(30 * MS);
    assert!(bench.delivered.is_empty());
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!((&status["stale"], &status["frames_in_network"]), (&json!(1), &json!(0)));
    bench.send("ah1", &frame(2, 1000));
    bench.run_for(30 * MS);
    assert_eq!(bench.delivered.len(), 1);
}

#[test]
fn a_frame_from_the_switch_itself_is_sent_on() {
    let mut bench = Bench::new("pause");
    bench.send("bh1", &frame(1, 90));
    bench.run_for(10 * MS);
    assert_eq!(bench.delivered.len(), 1);
    assert_eq!(bench.ask(json!({"do": "status"}))["injected"], 1);
}

#[test]
fn a_full_line_pauses_its_senders_and_loses_nothing() {
    let mut bench = Bench::new("pause");
    for _ in 0..400 {
        for host in ["ah1", "ah2"] {
            if bench.engine.frames_in_network() < 100 {
                bench.send(host, &frame(3, 1514));
            }
        }
        bench.run_for(2 * MS);
    }
    let counters = bench.ask(json!({"do": "counters"}));
    assert_eq!(counters["lost_frames"], 0);
    for host in ["h1", "h2"] {
        let priority = &bench.channel(host)["priorities"][0].clone();
        assert!(priority["paused_us"].as_u64().unwrap() > 0, "{host}");
        assert!(priority["account_peak_bytes"].as_u64().unwrap() > 32_768, "{host}");
    }
    let used = bench.channel("s1:3")["tx_frames"].as_u64().unwrap() * 1542 * 800_000;
    let now = bench.engine.now();
    assert!(used as f64 > 0.98 * now as f64, "{used} of {now}");
}

#[test]
fn without_flow_control_the_queue_drops() {
    let mut bench = Bench::new("off");
    for _ in 0..400 {
        for host in ["ah1", "ah2"] {
            bench.send(host, &frame(3, 1514));
        }
        bench.run_for(2 * MS);
    }
    assert!(bench.drops("queue") > 20);
    assert_eq!(bench.ask(json!({"do": "deadlock"}))["deadlock"], Value::Null);
}

#[test]
fn a_host_that_pauses_is_obeyed_until_its_quanta_run_out() {
    let mut bench = Bench::new("pause");
    // 1000 quanta of 512 bit times are 51.2 ms.
    bench.send("ah2", &pause_frame([2; 6], PauseRequest::All(1000)));
    bench.run_for(2 * MS);
    bench.send("ah1", &frame(2, 500));
    bench.run_for(40 * MS);
    assert!(bench.delivered.is_empty());
    bench.run_for(20 * MS);
    assert_eq!(bench.delivered.len(), 1, "the pause is over, and itself was not forwarded");
    let paused = bench.channel("s1:2")["priorities"][0]["paused_us"].as_u64().unwrap();
    assert!((51_200..51_500).contains(&paused), "{paused}");
    assert_eq!(bench.ask(json!({"do": "status"}))["pauses_obeyed"], 1);
}

#[test]
fn pauses_are_ignored_where_there_is_no_flow_control() {
    let mut bench = Bench::new("off");
    bench.send("ah2", &pause_frame([2; 6], PauseRequest::All(1000)));
    bench.send("ah1", &frame(2, 500));
    bench.run_for(20 * MS);
    assert_eq!(bench.delivered.len(), 1);
    assert_eq!(bench.ask(json!({"do": "status"}))["pauses_ignored"], 1);
}

#[test]
fn a_cut_link_loses_and_counts() {
    let mut bench = Bench::new("pause");
    assert_eq!(bench.ask(json!({"do": "link", "name": "s1:3-s2:2", "up": false}))["ok"], true);
    bench.send("ah1", &frame(3, 500));
    bench.run_for(20 * MS);
    assert_eq!((bench.drops("down"), bench.delivered.len()), (1, 0));
    bench.ask(json!({"do": "link", "name": "s1:3-s2:2", "up": true}));
    bench.send("ah1", &frame(3, 500));
    bench.run_for(20 * MS);
    assert_eq!(bench.delivered.len(), 1);
}

#[test]
fn frames_that_are_too_long_are_counted() {
    let mut bench = Bench::new("pause");
    for (bytes, oversized) in [(1514, 0), (1518, 0), (1519, 1), (9014, 2)] {
        bench.send("ah1", &frame(3, bytes));
        bench.run_for(20 * MS);
        assert_eq!(bench.ask(json!({"do": "status"}))["oversized"], oversized, "{bytes}");
    }
    assert_eq!(bench.delivered.len(), 2);
}

#[test]
fn one_direction_of_a_link_is_cut_alone() {
    let mut bench = Bench::new("pause");
    let cut =
        |channel: &str| json!({"do": "link", "name": "s1:3-s2:2", "channel": channel, "up": false});
    assert_eq!(bench.ask(cut("s2:2"))["ok"], true);
    bench.send("ah1", &frame(3, 500));
    bench.run_for(20 * MS);
    assert_eq!((bench.drops("down"), bench.delivered.len()), (0, 1));
    assert_eq!(bench.ask(cut("s1:3"))["ok"], true);
    bench.send("ah1", &frame(3, 500));
    bench.run_for(20 * MS);
    assert_eq!((bench.drops("down"), bench.delivered.len()), (1, 1));
}

#[test]
fn a_reset_forgets_the_pauses_that_wait_for_a_hosts_line() {
    let mut bench = Bench::new("pause");
    for _ in 0..1000 {
        bench.send("ah2", &pause_frame([2; 6], PauseRequest::All(1)));
    }
    assert!(bench.ask(json!({"do": "status"}))["pauses_ignored"].as_u64().unwrap() > 900);
    bench.ask(json!({"do": "reset"}));
    bench.send("ah2", &pause_frame([2; 6], PauseRequest::All(1)));
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!((&status["pauses_obeyed"], &status["pauses_ignored"]), (&json!(1), &json!(0)));
}

#[test]
fn a_host_never_drops_what_its_own_nic_releases() {
    let mut settings = configuration("pause");
    settings["links"][0]["rate_mbps"] = json!(1000);
    settings["links"][0]["a"]["host_namespace"] = json!("/nowhere");
    settings["links"][0]["a"]["nfqueue"] = json!(1);
    settings["links"][0]["buffer"] = json!({"queue_bytes": 2000});
    let mut bench = Bench::of(&settings);
    let end = bench.end("ah1");
    // At 1 Gbit/s credit for eight ticks is more than the limit of the queue.
    let fabric = bench.engine.state().fabric.clone();
    bench.engine = Engine::new(fabric, 1, 2 * MS, 500 * MS, 1.0);
    for (bytes, count) in [(1500, 3000), (20, 60_000)] {
        let held = (0..count).map(|id| Held::new(id, bytes, Some(0x45)));
        bench.engine.nic(end).unwrap().held().extend(held);
        let length = bytes as usize + 14;
        let credit = bench.engine.nic_room(end);
        let mut sent = 0;
        while let Some(last) = bench.engine.release(end) {
            for _ in sent..=last {
                bench.engine.receive(end, frame(3, length));
            }
            sent = last + 1;
        }
        // Message programs use the credit that they were granted before.
        for _ in 0..credit / length as u64 {
            bench.engine.receive(end, frame(3, length));
        }
        let held = bench.engine.nic(end).unwrap().held();
        assert!(!held.is_empty(), "more than the queue holds");
        held.clear();
        assert_eq!(bench.drops("queue"), 0);
        bench.ask(json!({"do": "reset"}));
    }
}

#[test]
fn a_capture_shows_frames_and_pauses_as_on_the_wire() {
    let file = std::env::temp_dir().join(format!("emulator-{}.pcap", std::process::id()));
    let mut bench = Bench::new("pause");
    let answer = bench.ask(json!({"do": "capture", "link": "h1", "file": file}));
    assert_eq!(answer, json!({"ok": true}));
    for _ in 0..120 {
        for host in ["ah1", "ah2"] {
            if bench.engine.frames_in_network() < 100 {
                bench.send(host, &frame(3, 1514));
            }
        }
        bench.run_for(2 * MS);
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    let packets = loop {
        let answer = bench.ask(json!({"do": "capture-stop", "link": "h1"}));
        if answer["written"] == true {
            break answer["packets"].clone();
        }
        assert!(Instant::now() < deadline, "{answer}");
        std::thread::yield_now(); // a thread writes the file
    };
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(bytes[..4], 0xa1b2_3c4du32.to_le_bytes());
    let (mut at, mut frames, mut pauses) = (24, 0, 0);
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        let frame = &bytes[at + 16..at + 16 + length];
        match u16::from_be_bytes([frame[12], frame[13]]) {
            0x8808 => pauses += 1,
            _ => assert_eq!(length, 1514, "no trailer"),
        }
        frames += 1;
        at += 16 + length;
    }
    assert_eq!(packets, frames);
    assert!(pauses > 0 && frames > pauses);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(case_count(256)))]

    #[test]
    fn any_frames_are_processed_without_panic(
        frames in prop::collection::vec((0usize..8, prop::collection::vec(any::<u8>(), 0..90)), 1..60),
    ) {
        let mut bench = Bench::new("pause");
        for (end, frame) in frames {
            bench.engine.receive(end, frame);
            bench.run_for(TICK);
        }
        bench.run_for(SECOND);
        prop_assert_eq!(bench.engine.frames_in_network(), 0);
    }
}
