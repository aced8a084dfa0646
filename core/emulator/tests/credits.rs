//! The emulator under credits.

mod harness;

use emulator::config::Config;
use emulator::frame::{pause_frame, PauseRequest};
use harness::{configuration, frame, Bench, MS};
use serde_json::{json, Value};
use switch_model::{ChannelId, FlowControl};

/// Blocks of a longest frame.
const ROOM: u64 = 1536;

/// The fabric of the bench, each of whose buffers holds this many longest frames.
fn with_room_for(frames: u64) -> Value {
    let mut settings = configuration("credits");
    for link in settings["links"].as_array_mut().unwrap() {
        link["buffer"] = json!({"credit_bytes": frames * ROOM});
    }
    settings
}

fn paused_us(bench: &mut Bench, channel: &str) -> u64 {
    bench.channel(channel)["priorities"][0]["paused_us"].as_u64().unwrap()
}

/// Two hosts offer a line as much as it carries each.
fn overload(bench: &mut Bench) {
    for _ in 0..400 {
        for host in ["ah1", "ah2"] {
            if bench.engine.frames_in_network() < 100 {
                bench.send(host, &frame(3, 1514));
            }
        }
        bench.run_for(2 * MS);
    }
}

#[test]
fn a_full_line_makes_its_senders_wait_for_credit_and_loses_nothing() {
    let mut bench = Bench::of(&with_room_for(3));
    overload(&mut bench);
    assert_eq!(bench.ask(json!({"do": "counters"}))["lost_frames"], 0);
    for host in ["h1", "h2"] {
        assert!(paused_us(&mut bench, host) > 0, "{host}");
        let peak = bench.channel(host)["priorities"][0]["account_peak_bytes"].as_u64().unwrap();
        assert!((ROOM..=3 * ROOM).contains(&peak), "{host}: {peak}");
    }
    let used = bench.channel("s1:3")["tx_frames"].as_u64().unwrap() * 1542 * 800_000;
    let now = bench.engine.now();
    assert!(used as f64 > 0.95 * now as f64, "{used} of {now}");
}

#[test]
fn credit_for_one_frame_passes_one_for_each_round_trip() {
    let mut bench = Bench::of(&with_room_for(1));
    for _ in 0..20 {
        bench.send("ah1", &frame(3, 1514));
    }
    bench.run_virtual(40 * MS);
    // Received and sent on, in 1538 and 1542 or twice 1542 byte times, and two delays: h1 has one of
    // these in 3.464 ms, the link behind in 3.4672 ms.
    assert_eq!(bench.channel("h1")["tx_frames"], json!(12));
    assert_eq!(bench.delivered.len(), 11);
}

#[test]
fn credit_comes_back_for_frames_that_no_buffer_takes() {
    let mut settings = with_room_for(1);
    for link in settings["links"].as_array_mut().unwrap() {
        link["broadcast_limit"] = json!({"share": 0.001, "burst_bytes": 3000});
    }
    let mut bench = Bench::of(&settings);
    // Broadcasts beyond the limit, frames that the switch drops, and frames lost by a cut link.
    for _ in 0..10 {
        bench.send("ah1", &frame(0xff, 1514));
        bench.send("ah1", &frame(9, 1514));
    }
    bench.run_virtual(200 * MS);
    assert!(bench.drops("broadcast_limit") > 5);
    bench.send("ah1", &frame(2, 1514));
    bench.run_virtual(MS);
    bench.ask(json!({"do": "link", "name": "h1", "up": false}));
    bench.run_virtual(5 * MS);
    bench.ask(json!({"do": "link", "name": "h1", "up": true}));
    bench.run_virtual(5 * MS);
    let before = bench.delivered.len();
    for _ in 0..3 {
        bench.send("ah1", &frame(2, 1514));
    }
    bench.run_virtual(30 * MS);
    assert_eq!(bench.delivered.len(), before + 3);
    assert_eq!(bench.engine.frames_in_network(), 0);
}

#[test]
fn credit_comes_back_when_a_switch_starts_again() {
    let mut bench = Bench::of(&with_room_for(2));
    for _ in 0..10 {
        bench.send("ah1", &frame(3, 1514));
    }
    bench.run_virtual(8 * MS);
    for up in [false, true] {
        assert_eq!(bench.ask(json!({"do": "switch", "name": "s2", "up": up}))["ok"], true);
        bench.run_virtual(20 * MS);
    }
    let before = bench.delivered.len();
    for _ in 0..10 {
        bench.send("ah1", &frame(3, 1514));
    }
    bench.run_virtual(100 * MS);
    assert_eq!(bench.delivered.len(), before + 10);
}

#[test]
fn pauses_of_hosts_are_ignored_under_credits() {
    let mut bench = Bench::new("credits");
    bench.send("ah2", &pause_frame([2; 6], PauseRequest::Classes([Some(1000); 8])));
    bench.send("ah2", &pause_frame([2; 6], PauseRequest::All(1000)));
    bench.send("ah1", &frame(2, 500));
    bench.run_for(20 * MS);
    assert_eq!(bench.delivered.len(), 1);
    assert_eq!(bench.ask(json!({"do": "status"}))["pauses_ignored"], 2);
}

#[test]
fn all_links_can_change_to_credits() {
    let mut bench = Bench::new("pause");
    assert_eq!(bench.ask(json!({"do": "reset", "flow_control": "credits"}))["ok"], true);
    let model = bench.engine.model();
    for channel in 0..model.channels() as u32 {
        assert_eq!(model.config(ChannelId(channel)).flow_control, FlowControl::Credits);
    }
    overload(&mut bench);
    assert!(paused_us(&mut bench, "h1") > 0);
}

#[test]
fn credit_that_a_frame_can_never_get_is_refused() {
    for (buffer, text) in [
        (
            json!({"credit_bytes": 1535}),
            "link h1: credit of 1535 bytes is too little for a frame of 1522 bytes in units of 64: \
             it must be at least 1536",
        ),
        (
            json!({"credit_bytes": 1599, "credit_unit_bytes": 200}),
            "link h1: credit of 1599 bytes is too little for a frame of 1522 bytes in units of 200: \
             it must be at least 1600",
        ),
        (
            json!({"credit_unit_bytes": 0}),
            "link h1: a unit of credit has 1 to 65536 bytes, not 0",
        ),
    ] {
        let mut settings = configuration("credits");
        settings["links"][0]["buffer"] = buffer;
        let refused = Config::parse(&settings.to_string()).unwrap_err();
        assert_eq!(refused.to_string(), text);
    }
}
