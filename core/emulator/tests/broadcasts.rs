//! The limit of a host's broadcasts: what it drops, what it does not concern, and what is reported.

mod harness;

use emulator::config::Config;
use emulator::fabric::Fabric;
use emulator::frame::{pause_frame, PauseRequest};
use harness::{configuration, frame, Bench, MS};
use serde_json::{json, Value};
use switch_model::ChannelId;

/// Bytes of the limit's burst.
const BURST: u64 = 4000;
/// Wire bytes of a frame of 100 bytes: FCS and gap.
const WIRE: u64 = 124;

fn with(share: f64) -> Value {
    let mut settings = configuration("pause");
    for link in settings["links"].as_array_mut().unwrap() {
        link["broadcast_limit"] = json!({ "share": share, "burst_bytes": BURST });
    }
    settings
}

fn number(bench: &Bench, channel: &str) -> ChannelId {
    let channels = &bench.engine.state().fabric.channels;
    ChannelId(channels.iter().position(|each| each.name == channel).unwrap() as u32)
}

/// h1 fills its line for a quarter of a second of virtual time with frames to `destination`, which the switch
/// sends to all hosts.
fn flood(bench: &mut Bench, destination: [u8; 6]) {
    let mut flooding = frame(0xff, 100);
    flooding[..6].copy_from_slice(&destination);
    let (end, line) = (bench.engine.now() + 250 * MS, number(bench, "h1"));
    while bench.engine.now() < end {
        if bench.engine.model().queued_bytes(line) < 2000 {
            (0..20).for_each(|_| bench.send("ah1", &flooding));
        }
        bench.run_for(MS);
    }
    bench.run_for(20 * MS);
}

fn delivered(bench: &Bench, host: &str) -> u64 {
    bench.delivered.iter().filter(|(_, name, _)| name == host).count() as u64
}

#[test]
fn broadcasts_beyond_the_share_are_dropped_at_the_first_switch_and_are_no_loss() {
    let mut bench = Bench::of(&with(0.02));
    flood(&mut bench, [0xff; 6]);
    let h1 = bench.channel("h1");
    let sent = h1["tx_frames"].as_u64().unwrap();
    assert!(sent > 2400, "the line of h1 is full: {sent}");
    // 2 % of 10 Mbit/s for a quarter of a second, and the burst.
    let allowed = (25_000 / 4 + BURST) / WIRE;
    for host in ["h2", "h3"] {
        let arrived = delivered(&bench, host);
        assert!(arrived.abs_diff(allowed) <= 4, "{host}: {arrived} of {allowed}");
    }
    let dropped = h1["drops"]["broadcast_limit"].as_u64().unwrap();
    assert_eq!(dropped + delivered(&bench, "h2"), sent);
    assert_eq!(
        (&h1["dropped_frames"], h1["rx_frames"].as_u64()),
        (&json!(0), Some(sent - dropped))
    );
    assert_eq!(bench.ask(json!({"do": "counters"}))["lost_frames"], 0);
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!((&status["valid"], &status["broadcasts_limited"]), (&json!(true), &json!(dropped)));
    let host = json!({"host": "h1", "share": 0.02, "limited": true, "frames": dropped});
    assert_eq!(status["broadcasting_hosts"], json!([host]));
    // It is no longer shown when it has stopped for long enough, nor after a reset.
    bench.run_virtual(6000 * MS);
    assert_eq!(bench.ask(json!({"do": "status"}))["broadcasting_hosts"], json!([]));
    flood(&mut bench, [0xff; 6]);
    bench.ask(json!({"do": "reset"}));
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!(
        (&status["broadcasting_hosts"], &status["broadcasts_limited"]),
        (&json!([]), &json!(0))
    );
}

#[test]
fn unicasts_declared_groups_and_pauses_are_not_limited() {
    let group = [0xff, 0, 0, 0, 0, 7];
    let mut settings = with(0.02);
    settings["declared_groups"] = json!(["ff:00:00:00:00:07"]);
    let mut bench = Bench::of(&settings);
    flood(&mut bench, group);
    flood(&mut bench, [2, 0, 0, 0, 0, 0]);
    for _ in 0..400 {
        bench.send("ah1", &pause_frame([2; 6], PauseRequest::All(0)));
        bench.run_for(MS);
    }
    assert_eq!(bench.drops("broadcast_limit"), 0);
    assert!(delivered(&bench, "h3") > 2400 && delivered(&bench, "h2") > 4800);
    // None of them has used up what h1 may broadcast.
    (0..BURST / WIRE).for_each(|_| bench.send("ah1", &frame(0xff, 100)));
    bench.run_for(100 * MS);
    assert_eq!(bench.drops("broadcast_limit"), 0);

    // A group counts from the moment on at which it is no longer declared.
    assert_eq!(bench.ask(json!({"do": "groups", "addresses": []}))["ok"], true);
    assert_eq!(bench.ask(json!({"do": "status"}))["declared_groups"], json!([]));
    flood(&mut bench, group);
    let limited = bench.drops("broadcast_limit");
    assert!(limited > 2000, "{limited}");
    bench.ask(json!({"do": "groups", "addresses": ["ff:00:00:00:00:07"]}));
    flood(&mut bench, group);
    assert_eq!(bench.drops("broadcast_limit"), limited);
    // It survives a reset.
    bench.ask(json!({"do": "reset"}));
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!(status["declared_groups"], json!(["ff:00:00:00:00:07"]));
}

#[test]
fn each_host_has_a_limit_of_its_own_and_switches_have_none() {
    let mut bench = Bench::of(&with(0.02));
    flood(&mut bench, [0xff; 6]);
    // What h2 sends to all arrives.
    bench.delivered.clear();
    (0..10).for_each(|_| bench.send("ah2", &frame(0xff, 100)));
    bench.run_for(100 * MS);
    assert_eq!((delivered(&bench, "h1"), delivered(&bench, "h3")), (10, 10));
    assert_eq!(bench.channel("h2")["drops"]["broadcast_limit"], 0);
    let limit = |bench: &Bench, name: &str| {
        bench.engine.model().config(number(bench, name)).broadcast_limit
    };
    assert!(["h1", "h2", "h3"].iter().all(|name| limit(&bench, name).is_some()));
    assert!(["s1:1", "s1:3", "s2:2"].iter().all(|name| limit(&bench, name).is_none()));
}

#[test]
fn without_a_limit_nothing_is_dropped_and_the_host_is_named() {
    let mut bench = Bench::of(&with(0.0));
    flood(&mut bench, [0xff; 6]);
    assert_eq!(bench.drops("broadcast_limit"), 0);
    assert!(delivered(&bench, "h2") > 2400);
    let status = bench.ask(json!({"do": "status"}));
    let host = &status["broadcasting_hosts"][0];
    assert_eq!((&host["host"], &host["limited"]), (&json!("h1"), &json!(false)));
    assert_eq!((&host["share"], &status["broadcasts_limited"]), (&json!(0.02), &json!(0)));
    assert!(host["frames"].as_u64().unwrap() > 2000, "{host}");
    // A reset may set it.
    let limit = json!({"share": 0.5, "burst_bytes": BURST});
    let links = json!([{"name": "h1", "broadcast_limit": limit}]);
    assert_eq!(bench.ask(json!({"do": "reset", "links": links}))["ok"], true);
    flood(&mut bench, [0xff; 6]);
    assert!((400..1300).contains(&bench.drops("broadcast_limit")));
}

#[test]
fn no_copy_of_a_dropped_broadcast_is_sent() {
    let mut bench = Bench::of(&with(0.02));
    (0..100).for_each(|_| bench.send("ah1", &frame(0xff, 100)));
    bench.run_for(50 * MS);
    let before = delivered(&bench, "h2");
    assert!(before <= (BURST + 25_000 / 20) / WIRE, "{before}");
    let injected = bench.ask(json!({"do": "status"}))["injected"].clone();
    assert_eq!(injected, 0);
    assert!(bench.drops("broadcast_limit") >= 50);
    assert_eq!(bench.drops("unforwarded"), 0);
}

#[test]
fn a_broadcast_that_the_switch_refuses_is_counted_once() {
    let mut bench = Bench::of(&with(0.02));
    let mut refused = frame(9, 100);
    refused[0] = 0x0b;
    (0..200).for_each(|_| bench.send("ah1", &refused));
    bench.run_for(1000 * MS);
    let (limited, unforwarded) = (bench.drops("broadcast_limit"), bench.drops("unforwarded"));
    assert!(limited > 100 && unforwarded > 0, "{limited} {unforwarded}");
    assert_eq!(limited + unforwarded, 200);
    assert_eq!(bench.ask(json!({"do": "counters"}))["lost_frames"], unforwarded);
}

#[test]
fn limits_and_groups_that_are_not_possible_are_refused_by_name() {
    for (place, value, key) in [
        ("/links/0/broadcast_limit", json!({"share": 1.5}), "share"),
        ("/links/0/broadcast_limit", json!({"share": -0.1}), "share"),
        ("/links/0/broadcast_limit", json!({"burst_bytes": 0}), "burst_bytes"),
        ("/links/0/broadcast_limit", json!({"burst_bytes": 1541}), "burst_bytes"),
        ("/links/0/broadcast_limit", json!({"burst_bytes": 1u64 << 63}), "burst_bytes"),
        ("/declared_groups", json!(["02:00:00:00:00:01"]), "declared_groups"),
        ("/declared_groups", json!(["h1"]), "declared_groups"),
    ] {
        let mut settings = with(0.02);
        settings["declared_groups"] = json!([]);
        *settings.pointer_mut(place).unwrap() = value;
        let refused = Config::parse(&settings.to_string()).and_then(|config| Fabric::new(&config));
        let text = refused.expect_err(place).to_string();
        assert!(text.contains(key) && !text.contains('\n'), "{text}");
    }
    let mut bench = Bench::new("pause");
    for addresses in [json!(["02:00:00:00:00:01"]), json!([7]), json!("03:00:00:00:00:01")] {
        let answer = bench.ask(json!({"do": "groups", "addresses": addresses}));
        assert_eq!(answer["ok"], false, "{answer}");
    }
}
