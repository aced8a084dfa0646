//! Pauses of hosts: what is reported, what is obeyed, and the watchdog.

mod harness;

use emulator::config::Config;
use emulator::fabric::Fabric;
use emulator::frame::{pause_frame, PauseRequest};
use harness::{configuration, frame, Bench, MS};
use serde_json::{json, Value};

/// For `time` milliseconds, h1 sends to h2, which has paused its link, and to h3.
fn load(bench: &mut Bench, time: u64, mut each_ms: impl FnMut(&mut Bench, u64)) {
    for ms in 0..time {
        each_ms(bench, ms);
        if ms.is_multiple_of(20) {
            bench.send("ah1", &frame(2, 1000));
        }
        if ms.is_multiple_of(10) {
            bench.send("ah1", &frame(3, 1000));
        }
        bench.run_for(MS);
    }
}

/// Eight requests in twelve seconds, each of 3.36 s.
fn storm(bench: &mut Bench, ms: u64) {
    if ms.is_multiple_of(1500) {
        bench.send("ah2", &pause_frame([2; 6], PauseRequest::All(u16::MAX)));
    }
}

fn arrived(bench: &Bench, host: &str) -> usize {
    bench.delivered.iter().filter(|(_, name, _)| name == host).count()
}

fn with(key: &str, value: Value) -> Bench {
    let mut settings = configuration("pause");
    for link in settings["links"].as_array_mut().unwrap() {
        link[key] = value.clone();
    }
    Bench::of(&settings)
}

#[test]
fn a_host_that_never_resumes_does_not_stop_the_flows_of_others() {
    let mut delivered = Vec::new();
    for share in [1.0, 0.6] {
        let mut bench = with("pause_limit", json!({ "share": share }));
        load(&mut bench, 12_000, storm);
        delivered.push(arrived(&bench, "h3"));
    }
    assert!(delivered[0] < 300, "without a limit: {delivered:?}");
    assert!(delivered[1] > 1190, "with it: {delivered:?}");
}

#[test]
fn status_names_the_host_and_what_stands_still_behind_it() {
    let mut bench = with("pause_limit", json!({ "share": 1.0 }));
    load(&mut bench, 980, storm);
    let hosts = bench.ask(json!({"do": "status"}))["pausing_hosts"].clone();
    let host = &hosts[0];
    assert_eq!((&host["host"], &host["channel"]), (&json!("h2"), &json!("s1:2/0")));
    assert!((0.9..1.0).contains(&host["share"].as_f64().unwrap()), "{host}");
    assert_eq!(host["standing"], json!(["h1/0"]));
    let flows = host["flows"].as_array().unwrap();
    let to_h2 = json!("02:00:00:00:00:00");
    assert!(flows.iter().any(|flow| flow["to"] == to_h2 && flow["from"] == to_h2), "{host}");
    load(&mut bench, 1000, |_, _| {});
    let hosts = bench.ask(json!({"do": "status"}))["pausing_hosts"].clone();
    assert_eq!(hosts[0]["share"], 1.0);
    bench.send("ah2", &pause_frame([2; 6], PauseRequest::All(0)));
    load(&mut bench, 1200, |_, _| {});
    assert_eq!(bench.ask(json!({"do": "status"}))["pausing_hosts"], json!([]));
}

#[test]
fn what_is_ignored_is_counted_and_half_of_the_time_is_obeyed() {
    let mut bench = Bench::new("pause");
    load(&mut bench, 3000, storm);
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!(status["pauses_limited"], 2);
    assert_eq!(status["pausing_hosts"][0]["limited_now"], true);
    let ignored = bench.channel("s1:2")["host_pauses"]["ignored_us"].as_u64().unwrap();
    assert!((2_490_000..2_510_000).contains(&ignored), "{ignored}");
    assert_eq!(bench.channel("s1:3")["host_pauses"], Value::Null);

    let mut bench = Bench::new("pause");
    load(&mut bench, 5000, |bench, ms| {
        if ms.is_multiple_of(100) {
            // 977 quanta are 50 ms.
            bench.send("ah2", &pause_frame([2; 6], PauseRequest::All(977)));
        }
    });
    let counted = bench.channel("s1:2")["host_pauses"].clone();
    assert_eq!((&counted["ignored_us"], &counted["limited"]), (&json!(0), &json!(0)));
    let paused = bench.channel("s1:2")["priorities"][0]["paused_us"].as_u64().unwrap();
    assert!((2_490_000..2_510_000).contains(&paused), "{paused}");
    assert_eq!(arrived(&bench, "h2"), 250);
}

#[test]
fn a_watchdog_cuts_a_storm_off_and_counts_it() {
    for (action, to_h2) in [("drop", 0), ("forward", 250)] {
        let mut settings = configuration("pause");
        for link in settings["links"].as_array_mut().unwrap() {
            link["watchdog_us"] = json!(200_000);
            link["watchdog_action"] = json!(action);
            link["pause_limit"] = json!({ "share": 1.0 });
        }
        let mut bench = Bench::of(&settings);
        load(&mut bench, 5000, storm);
        let storms = bench.ask(json!({"do": "status"}))["storms"].clone();
        assert_eq!(storms.as_array().unwrap().len(), 1, "{storms}");
        let storm = &storms[0];
        assert_eq!((&storm["channel"], &storm["detected"]), (&json!("s1:2"), &json!(1)));
        assert_eq!(storm["storming"][0]["channel"], "s1:2/0");
        let hosts = bench.ask(json!({"do": "status"}))["pausing_hosts"].clone();
        assert_eq!((&hosts[0]["host"], &hosts[0]["storm"]), (&json!("h2"), &json!(true)));
        let dropped = storm["dropped_frames"].as_u64().unwrap();
        assert!(if to_h2 == 0 { dropped >= 249 } else { dropped == 0 }, "{action}: {storm}");
        assert!(arrived(&bench, "h2") >= to_h2, "{action}");
        assert_eq!(arrived(&bench, "h3"), 500, "{action}");
        assert_eq!(bench.channel("s1:2")["storms"]["detected"], 1);
        load(&mut bench, 3400 + 400, |_, _| {});
        assert_eq!(bench.channel("s1:2")["storms"]["restored"], 1);
        let before = arrived(&bench, "h2");
        load(&mut bench, 100, |_, _| {});
        assert!(arrived(&bench, "h2") > before, "{action}");
    }
}

#[test]
fn a_watchdog_drops_what_arrives_from_the_port_of_a_storm_unless_it_is_told_not_to() {
    for (action, drops) in [("drop", true), ("drop-egress", false)] {
        let mut settings = configuration("pause");
        for link in settings["links"].as_array_mut().unwrap() {
            link["watchdog_us"] = json!(200_000);
            link["watchdog_action"] = json!(action);
            link["pause_limit"] = json!({ "share": 1.0 });
        }
        let mut bench = Bench::of(&settings);
        load(&mut bench, 3000, storm);
        for _ in 0..10 {
            // h2 sends to h3, while nothing is sent to h2.
            bench.send("ah2", &frame(3, 1000));
            bench.run_for(2 * MS);
        }
        bench.run_for(20 * MS);
        let storm = bench.ask(json!({"do": "status"}))["storms"][0].clone();
        assert_eq!(storm["dropped_arrivals"], if drops { 10 } else { 0 }, "{action}: {storm}");
        assert_eq!(bench.channel("h2")["drops"]["watchdog"], storm["dropped_arrivals"]);
        assert_eq!(arrived(&bench, "h3"), if drops { 300 } else { 310 }, "{action}");
    }
}

#[test]
fn requests_leave_no_events_behind() {
    let mut bench = with("flow_control", json!("pfc"));
    for quanta in (0..500).map(|n| 60_000 + n % 7 * 500) {
        bench.send("ah2", &pause_frame([2; 6], PauseRequest::Classes([Some(quanta); 8])));
        bench.run_for(MS);
    }
    let waiting = bench.engine.scheduled_events();
    assert!(waiting <= 2 * 8, "{waiting} events after 500 requests");
    bench.send("ah2", &pause_frame([2; 6], PauseRequest::Classes([Some(0); 8])));
    bench.run_for(2 * MS);
    assert!(bench.engine.is_idle(), "it need not wait for pauses that have ended");
}

#[test]
fn switch_settings_name_the_watchdogs_of_ports() {
    for (action, dropped) in [("drop", true), ("alert", false)] {
        let mut settings = configuration("pause");
        for link in settings["links"].as_array_mut().unwrap() {
            link["pause_limit"] = json!({ "share": 1.0 });
        }
        let watchdog = json!({
            "detection_us": 150_000.0, "polling_us": 400_000.0, "action": action, "priorities": [0],
        });
        settings["switch_settings"] =
            json!({ "switches": { "s1": { "ports": { "2": { "watchdog": watchdog } } } } });
        let mut bench = Bench::of(&settings);
        load(&mut bench, 3000, storm);
        let storms = bench.ask(json!({"do": "status"}))["storms"].clone();
        assert_eq!(storms.as_array().unwrap().len(), 1, "{storms}");
        let first = &storms[0];
        assert_eq!((&first["channel"], &first["detected"]), (&json!("s1:2"), &json!(1)));
        assert_eq!(first["alerts"], json!(u64::from(!dropped)));
        assert_eq!(first["dropped_frames"].as_u64().unwrap() > 0, dropped, "{first}");
        // Exactly at a poll, which count from the last reset.
        let since = |bench: &mut Bench| {
            let storms = bench.ask(json!({"do": "status"}))["storms"].clone();
            storms[0]["storming"][0]["since_us"].as_f64().unwrap()
        };
        assert_eq!(since(&mut bench) % 400e3, 0.0);
        assert!(arrived(&bench, "h3") > 0);
        load(&mut bench, 70, |_, _| {});
        let reset = bench.ask(json!({"do": "reset"}))["now_us"].as_f64().unwrap();
        assert_ne!(reset % 400e3, 0.0);
        load(&mut bench, 3000, storm);
        assert_eq!((since(&mut bench) - reset) % 400e3, 0.0);
    }
}

#[test]
fn a_watchdog_is_that_of_a_link_or_of_the_switch_settings() {
    let mut settings = configuration("pfc");
    settings["switch_settings"] = json!({ "watchdog": { "detection_us": 9.0 } });
    for link in settings["links"].as_array_mut().unwrap() {
        link["watchdog_us"] = json!(200_000);
    }
    let config = Config::parse(&settings.to_string()).unwrap();
    let error = Fabric::new(&config).unwrap_err().to_string();
    assert!(error.contains("s1:1: watchdog: the switch settings have one"), "{error}");
}
