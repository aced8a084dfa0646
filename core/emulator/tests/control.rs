//! The answers of the control socket, and which configurations are accepted.

mod harness;

use emulator::config::Config;
use emulator::fabric::Fabric;
use harness::{configuration, frame, Bench, MS, TICK};
use proptest::prelude::*;
use serde_json::{json, Value};

#[test]
fn a_reset_changes_settings_or_nothing() {
    let mut bench = Bench::new("pause");
    let flow = |bench: &Bench, link: usize| {
        bench.engine.state().fabric.ends[2 * link].settings.flow_control
    };
    use switch_model::FlowControl::{Off, Pause};
    assert_eq!(bench.ask(json!({"do": "reset", "flow_control": "switch"}))["ok"], true);
    assert_eq!((flow(&bench, 0), flow(&bench, 3)), (Off, Pause));
    let bad = json!([{"name": "h1", "rate_mbps": 20}, {"name": "h2", "rate_mbps": -1}]);
    let answer = bench.ask(json!({"do": "reset", "flow_control": "pause", "links": bad}));
    assert_eq!(answer["ok"], false);
    assert!(answer["error"].as_str().unwrap().contains("rate_mbps"), "{answer}");
    assert_eq!((flow(&bench, 0), flow(&bench, 3)), (Off, Pause));
    assert_eq!(bench.engine.state().fabric.ends[0].settings.rate_mbps, 10.0);
}

#[test]
fn bad_requests_are_answered_in_one_line() {
    let mut bench = Bench::new("pause");
    for line in [
        "",
        "{",
        "[]",
        "{\"do\":\"dance\"}",
        "{\"do\":\"status\",\"more\":1}",
        "{\"do\":\"link\"}",
        "{\"do\":\"link\",\"name\":\"none\",\"up\":true}",
        "{\"do\":\"switch\",\"name\":\"s3\",\"up\":false}",
        "{\"do\":\"switch\",\"name\":\"s1\"}",
        "{\"do\":\"link\",\"name\":\"h1\",\"up\":true,\"channel\":\"h2\"}",
        "\u{0}",
        "{\"do\":\"capture-stop\",\"link\":\"h1\"}",
    ] {
        let answer = bench.control.answer(line.as_bytes(), 0, &mut bench.engine);
        let parsed: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(parsed["ok"], false, "{line}");
        assert!(!parsed["error"].as_str().unwrap().is_empty());
        assert!(!answer.contains('\n'));
    }
}

#[test]
fn captures_go_to_regular_files_only() {
    let folder = std::env::temp_dir().join(format!("emulator-capture-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let fifo = folder.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let mut bench = Bench::new("pause");
    for file in [fifo.as_path(), std::path::Path::new("/dev/null"), folder.as_path()] {
        let answer = bench.ask(json!({"do": "capture", "link": "h1", "file": file}));
        assert_eq!(answer["ok"], false, "{answer}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn bad_configurations_are_refused_in_one_line() {
    let cases: [(&str, Value); 8] = [
        ("/links/0/rate_mbps", json!(0)),
        ("/links/0/delay_us", json!(-1)),
        ("/links/0/flow_control", json!("maybe")),
        ("/links/0/a/interface", json!("much-too-long-name")),
        ("/links/1/a/interface", json!("ah1")),
        ("/links/1/b/port", json!(1)),
        ("/links/1/name", json!("h1")),
        ("/links", json!([])),
    ];
    for (place, value) in cases {
        let mut config = configuration("pause");
        *config.pointer_mut(place).unwrap() = value;
        let refused = Config::parse(&config.to_string()).and_then(|config| Fabric::new(&config));
        let text = refused.expect_err(place).to_string();
        assert!(!text.is_empty() && !text.contains('\n'), "{place}: {text}");
    }
}

#[test]
fn settings_that_are_not_possible_are_refused_by_name() {
    let refuse = |config: Value, key: &str| {
        let text = Config::parse(&config.to_string()).expect_err(key).to_string();
        assert!(text.contains(key) && !text.contains('\n'), "{key}: {text}");
    };
    for (key, value) in [
        ("rate_mbps", json!(1e300)),
        ("delay_us", json!(1e300)),
        ("watchdog_us", json!(0)),
        ("watchdog_us", json!(1e300)),
        ("watchdog_restore_us", json!(1e300)),
        ("pause_limit", json!({"share": 1.5})),
        ("pause_limit", json!({"longest_us": 1e300})),
        ("buffer", json!({"queue_bytes": 1u64 << 63})),
        // Twice this is 2 modulo 2^64.
        ("buffer", json!({"xon_bytes": (1u64 << 63) + 1})),
    ] {
        let mut config = configuration("pause");
        config["links"][0][key] = value;
        refuse(config, key);
    }
    // In picoseconds each is more than 2^64.
    for key in ["deadlock_us", "host_wait_us", "tick_us"] {
        let mut config = configuration("pause");
        config[key] = json!(18_446_744_073_710u64);
        refuse(config, key);
    }
}

#[test]
fn switches_are_in_natural_order_by_default() {
    let mut config = configuration("pause");
    for place in ["/links/2/b/switch", "/links/3/b/switch"] {
        *config.pointer_mut(place).unwrap() = json!("s10");
    }
    *config.pointer_mut("/links/0/b/switch").unwrap() = json!("s2");
    let order = |config: &Value| {
        Fabric::new(&Config::parse(&config.to_string()).unwrap()).unwrap().switches
    };
    assert_eq!(order(&config), ["s1", "s2", "s10"]);
    config["switches"] = json!(["s10", "s1", "s2"]);
    assert_eq!(order(&config), ["s10", "s1", "s2"]);
}

proptest! {
    #[test]
    fn any_control_line_gets_an_answer(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bench = Bench::new("pause");
        let answer = bench.control.answer(&line, 0, &mut bench.engine);
        prop_assert!(serde_json::from_str::<Value>(&answer).is_ok());
    }

    #[test]
    fn any_configuration_text_is_parsed_without_panic(text in ".{0,200}", cut in 0usize..2000) {
        let _ = Config::parse(&text);
        let whole = configuration("pause").to_string();
        let cut = cut.min(whole.len());
        if let Some(part) = whole.get(..cut) {
            prop_assert!(Config::parse(part).is_err() || cut == whole.len());
        }
    }
}

/// Frames that have arrived and that are under way, of priority 0.
fn under_way(bench: &mut Bench, channel: &str) -> (u64, u64) {
    let answer = bench.ask(json!({"do": "under-way"}));
    let counted = &answer["channels"][channel]["0"];
    (counted[0].as_u64().unwrap_or(0), counted[1].as_u64().unwrap_or(0))
}

#[test]
fn what_is_under_way_is_counted_at_one_moment() {
    let mut bench = Bench::new("pause");
    for _ in 0..5 {
        bench.send("ah1", &frame(3, 1000));
    }
    let mut seen = Vec::new();
    for _ in 0..100 {
        bench.step(TICK);
        let (first, second) = (under_way(&mut bench, "h1"), under_way(&mut bench, "s1:3"));
        assert_eq!(first.0 + first.1, 5);
        // A frame that has arrived is on its next channel at the same time.
        assert_eq!(second.0 + second.1, first.0);
        seen.push(second);
    }
    assert!(seen.iter().any(|&(_, coming)| coming > 1), "{seen:?}");
    assert_eq!(seen.last(), Some(&(5, 0)));
    let answer = bench.ask(json!({"do": "under-way"}));
    let names: Vec<&String> = answer["channels"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["h1", "h2", "h3", "s1:3", "s2:2"]);
}

#[test]
fn frames_on_a_link_that_is_cut_are_not_under_way_for_ever() {
    let mut bench = Bench::new("pause");
    for _ in 0..5 {
        bench.send("ah1", &frame(3, 1000));
    }
    while under_way(&mut bench, "s1:3").1 < 2 {
        bench.step(TICK);
    }
    bench.ask(json!({"do": "link", "name": "s1:3-s2:2", "up": false}));
    bench.run_for(20 * MS);
    assert_eq!(under_way(&mut bench, "s1:3").1, 0);
    assert!(bench.delivered.is_empty());
}

#[test]
fn several_processes_need_one_for_each_switch() {
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut settings = configuration("pause");
        settings["switch_processes"] = json!([1, "/nowhere/ovs-vswitchd-2.pid"]);
        settings["process_of"] = json!({"s1": 0, "s2": 1});
        change(&mut settings);
        let config = Config::parse(&settings.to_string()).unwrap();
        Fabric::new(&config).map(|fabric| fabric.process_of).map_err(|error| error.to_string())
    };
    assert_eq!(refused(&|_| ()), Ok(vec![0, 1]));
    for (processes, process_of, text) in [
        (json!([1, 2]), json!({"s1": 0}), "process_of: s2 is missing"),
        (json!([1, 2]), json!({"s1": 0, "s2": 2}), "process_of: s2: 2 is not in 0..2"),
        (
            json!([1, 2]),
            json!({"s1": 0, "s2": 1, "s3": 0}),
            "process_of: there is no switch \"s3\"",
        ),
    ] {
        let error = refused(&|settings| {
            settings["switch_processes"] = processes.clone();
            settings["process_of"] = process_of.clone();
        });
        assert_eq!(error, Err(text.into()));
    }
    let mut one = configuration("pause");
    one["switch_processes"] = json!([1]);
    let one = Fabric::new(&Config::parse(&one.to_string()).unwrap()).unwrap();
    assert_eq!(one.process_of, [0, 0]);
}
