//! Lines with faults, and lines that change while frames are under way.

mod harness;

use emulator::config::Config;
use emulator::fabric::Fabric;
use harness::{configuration, frame, Bench, MS};
use serde_json::{json, Value};

fn set(bench: &mut Bench, name: &str, channel: Option<&str>, values: Value) -> Value {
    let mut request = json!({"do": "line", "name": name, "set": values});
    if let Some(channel) = channel {
        request["channel"] = channel.into();
    }
    bench.ask(request)
}

fn change(bench: &mut Bench, name: &str, channel: Option<&str>, values: Value) -> Value {
    let answer = set(bench, name, channel, values);
    assert_eq!(answer["ok"], true, "{answer}");
    answer
}

/// Numbered frames to h2.
fn numbered(number: u16) -> Vec<u8> {
    let mut sent = frame(2, 100);
    sent[20..22].copy_from_slice(&number.to_be_bytes());
    sent
}

fn numbers(bench: &Bench) -> Vec<u16> {
    bench.delivered.iter().map(|(_, _, frame)| u16::from_be_bytes([frame[20], frame[21]])).collect()
}

#[test]
fn one_percent_of_loss_is_measured_and_lost_frames_reach_no_switch() {
    let mut bench = Bench::new("pause");
    change(&mut bench, "h1", Some("h1"), json!({"loss": 0.01}));
    let sent = 20_000;
    for _ in 0..sent / 50 {
        for number in 0..50 {
            bench.send("ah1", &numbered(number));
        }
        bench.run_virtual(6 * MS);
    }
    bench.run_virtual(100 * MS);
    let lost = bench.drops("loss");
    let (mean, sigma) = (f64::from(sent) * 0.01, (f64::from(sent) * 0.01 * 0.99).sqrt());
    assert!((lost as f64 - mean).abs() < 3.0 * sigma, "{lost} of {mean}");
    assert_eq!(bench.delivered.len() as u64, u64::from(sent as u32) - lost);
    assert_eq!(bench.channel("h1")["dropped_frames"], lost);
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!((&status["valid"], &status["abandoned"]), (&json!(true), &json!(0)));
    assert_eq!(bench.engine.frames_in_network(), 0);
    let lines = status["faulty_lines"].as_array().unwrap();
    assert_eq!(lines.len(), 1);
    assert_eq!((&lines[0]["channel"], &lines[0]["lost_frames"]), (&json!("h1"), &json!(lost)));
    assert_eq!(lines[0]["loss"], 0.01);
}

#[test]
fn the_frames_that_a_seed_loses_are_these() {
    // The same as in the tests of the switch model and of the simulator.
    for _ in 0..2 {
        let mut bench = Bench::new("pause");
        change(&mut bench, "h2", Some("s1:2"), json!({"loss": 0.1}));
        for number in 0..60 {
            bench.send("ah1", &numbered(number));
        }
        bench.run_virtual(50 * MS);
        let expected: Vec<u16> =
            (0..60).filter(|number| ![20, 35, 37, 46].contains(number)).collect();
        assert_eq!(numbers(&bench), expected);
    }
}

#[test]
fn a_new_line_empties_no_queue_and_keeps_the_order() {
    let mut bench = Bench::new("pause");
    for number in 0..60 {
        bench.send("ah1", &numbered(number));
    }
    bench.run_virtual(2 * MS);
    let before = bench.channel("h1");
    let waiting = before["priorities"][0]["queue_bytes"].as_u64().unwrap();
    assert!(waiting > 2000);
    change(&mut bench, "h1", None, json!({"rate_mbps": 100, "delay_us": 10}));
    let after = bench.channel("h1");
    assert_eq!(after["priorities"][0]["queue_bytes"], waiting);
    assert_eq!(after["rate_mbps"], 100.0);
    bench.run_virtual(20 * MS);
    assert_eq!(numbers(&bench), (0..60).collect::<Vec<_>>());
}

#[test]
fn a_direction_has_a_line_of_its_own() {
    let mut bench = Bench::new("pause");
    let answer = change(&mut bench, "s1:3-s2:2", Some("s1:3"), json!({"rate_mbps": 1}));
    let expected = json!([{
        "channel": "s1:3", "rate_mbps": 1.0, "delay_us": 500.0, "jitter_us": 0.0, "loss": 0.0,
        "corrupt": 0.0, "duplicate": 0.0, "reorder": 0.0, "line_errors": 0.0, "errors_in_a_row": 1,
    }]);
    assert_eq!(answer["channels"], expected);
    assert_eq!(bench.channel("s1:3")["rate_mbps"], 1.0);
    assert_eq!(bench.channel("s2:2")["rate_mbps"], 10.0);
    // Without changes it tells of both.
    let both = change(&mut bench, "s1:3-s2:2", None, json!({}));
    assert_eq!(both["channels"].as_array().unwrap().len(), 2);
}

#[test]
fn duplicates_and_late_frames_arrive_and_corrupted_ones_do_not() {
    let mut bench = Bench::new("pause");
    change(&mut bench, "h2", Some("s1:2"), json!({"duplicate": 0.2, "reorder": 0.2}));
    for number in 0..100 {
        bench.send("ah1", &numbered(number));
    }
    bench.run_virtual(100 * MS);
    let twice = bench.ask(json!({"do": "status"}))["faulty_lines"][0]["duplicated_frames"].clone();
    assert!(twice.as_u64().unwrap() > 5);
    let mut found = numbers(&bench);
    assert_eq!(found.len() as u64, 100 + twice.as_u64().unwrap());
    assert!(!found.is_sorted());
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, (0..100).collect::<Vec<_>>());
    change(&mut bench, "h2", None, json!({"duplicate": 0, "reorder": 0, "corrupt": 1}));
    bench.delivered.clear();
    bench.send("ah1", &numbered(0));
    bench.run_virtual(10 * MS);
    assert_eq!((bench.delivered.len(), bench.drops("corrupt")), (0, 1));
}

#[test]
fn what_is_impossible_changes_nothing() {
    let mut bench = Bench::new("pause");
    for (values, text) in [
        (json!({"loss": 1.5}), "link h1: loss 1.5 is not in 0..1"),
        (json!({"line_errors": 0.1}), "link h1: line_errors 0.1 is not in 0..0.01"),
        (json!({"rate_mbps": 0}), "link h1: rate_mbps 0 is not in 0.001..400000"),
        (json!({"jitter_us": -1}), "link h1: jitter_us -1 is not in 0..10000000"),
    ] {
        let answer = set(&mut bench, "h1", None, values);
        assert_eq!((&answer["ok"], &answer["error"]), (&json!(false), &json!(text)));
    }
    let answer = set(&mut bench, "h1", Some("s2:2"), json!({"loss": 0.5}));
    assert_eq!(answer["ok"], false);
    assert_eq!(bench.ask(json!({"do": "status"}))["faulty_lines"], json!([]));
}

#[test]
fn a_headroom_that_was_set_is_not_exceeded() {
    let mut settings = configuration("pause");
    settings["links"][0]["buffer"] = json!({"headroom_bytes": 5000});
    let mut bench = Bench::of(&settings);
    let answer = set(&mut bench, "h1", None, json!({"delay_us": 5000}));
    let text = "link h1: needs headroom_bytes 15585 to lose nothing for want of room, and it was \
                set to 5000: start the fabric with at least that";
    assert_eq!(answer["error"], text);
    assert_eq!(bench.channel("h1")["up"], true);
    change(&mut bench, "h1", None, json!({"delay_us": 100}));
    // The default headroom of the others grows.
    change(&mut bench, "h2", None, json!({"delay_us": 5000}));
}

#[test]
fn lines_stay_as_they_are_after_a_reset() {
    let mut bench = Bench::new("pause");
    change(&mut bench, "h1", None, json!({"loss": 1, "rate_mbps": 5}));
    bench.ask(json!({"do": "reset"}));
    bench.send("ah1", &numbered(0));
    bench.run_virtual(10 * MS);
    assert_eq!((bench.drops("loss"), bench.delivered.len()), (1, 0));
    assert_eq!(bench.channel("h1")["rate_mbps"], 5.0);
}

/// The bench with links that repeat frames.
fn repeating(limit: u32) -> Bench {
    let mut settings = configuration("pause");
    settings["retry"] = limit.into();
    Bench::of(&settings)
}

#[test]
fn links_that_repeat_frames_lose_none_on_lines_that_change() {
    let mut bench = repeating(0);
    change(&mut bench, "h2", None, json!({"loss": 0.2, "corrupt": 0.2}));
    for number in 0..60 {
        bench.send("ah1", &numbered(number));
    }
    bench.run_virtual(5 * MS);
    let under_way = bench.engine.frames_in_network();
    assert!(0 < under_way && under_way < 60 && bench.delivered.len() < 60, "{under_way}");
    change(&mut bench, "h2", None, json!({"delay_us": 20, "rate_mbps": 20}));
    bench.run_virtual(100 * MS);
    assert_eq!(numbers(&bench), (0..60).collect::<Vec<_>>());
    assert_eq!((bench.drops("loss"), bench.engine.frames_in_network()), (0, 0));
    let counted = bench.channel("s1:2")["retry"].clone();
    let count = |name: &str| counted[name].as_u64().unwrap();
    assert_eq!((count("llr_rx_expected_seq_good"), count("given_up")), (60, 0));
    assert!(
        count("llr_tx_replay") > 0 && count("llr_rx_bad") > 0 && count("replay_peak_bytes") > 0
    );
    assert_eq!(bench.channel("h1")["retry"]["llr_tx_ok"], 60);
}

#[test]
fn frames_that_a_link_gives_up_are_lost_and_no_longer_under_way() {
    let mut bench = repeating(2);
    change(&mut bench, "h1", Some("h1"), json!({"loss": 1}));
    (0..3).for_each(|number| bench.send("ah1", &numbered(number)));
    bench.run_virtual(MS / 2);
    let under_way =
        |bench: &mut Bench| bench.ask(json!({"do": "under-way"}))["channels"]["h1"]["0"].clone();
    assert_eq!(under_way(&mut bench), json!([0, 3]));
    bench.run_virtual(100 * MS);
    assert_eq!(under_way(&mut bench), json!([3, 0]));
    assert_eq!((bench.drops("loss"), bench.engine.frames_in_network()), (3, 0));
    assert!(bench.channel("h1")["retry"]["given_up"].as_u64() > Some(0));
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!(status["valid"], true);
}

#[test]
fn what_does_not_go_with_repeated_frames_is_refused() {
    let answer = set(&mut repeating(0), "h1", None, json!({"reorder": 0.1}));
    let text = "link h1: it repeats frames (retry), so duplicate and reorder must be 0";
    assert_eq!(answer["error"], text);
    for (key, value, text) in [
        ("retry", json!(256), "retry: 256 replays are not in 0..255"),
        (
            "switch_settings",
            json!({"pause_frames": {"quanta": 200, "response_us": 12}}),
            "switch_settings: links that repeat frames do not go with pause frames on the wire",
        ),
    ] {
        let mut settings = configuration("pause");
        settings["retry"] = json!(0);
        settings[key] = value;
        let fabric = Config::parse(&settings.to_string()).and_then(|config| Fabric::new(&config));
        assert_eq!(fabric.unwrap_err().to_string(), text);
    }
}
