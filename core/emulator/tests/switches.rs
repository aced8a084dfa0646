//! Switches with settings of their insides, on the emulator's clock.

mod harness;

use emulator::config::Config;
use emulator::fabric::Fabric;
use harness::{configuration, Bench, MS};
use serde_json::{json, Value};

fn with_settings(flow_control: &str, settings: Value) -> Value {
    let mut value = configuration(flow_control);
    value["switch_settings"] = settings;
    value
}

/// A frame to host `to` with a packet of IPv4 whose sender takes part in ECN, or does not.
fn packet(to: u8, ecn: u8) -> Vec<u8> {
    let mut sent = harness::frame(to, 1000);
    sent[12..14].copy_from_slice(&0x0800_u16.to_be_bytes());
    sent[14..34].fill(0);
    (sent[14], sent[15]) = (0x45, ecn);
    sent[24..26].copy_from_slice(&(!(0x4500 + u16::from(ecn))).to_be_bytes());
    sent
}

#[test]
fn packets_that_leave_a_long_queue_are_marked_if_they_may_be() {
    let ecn = json!({"ecn": [{"priorities": [0], "kmin_bytes": 3000, "kmax_bytes": 3000,
                             "pmax": 1.0}]});
    let mut bench = Bench::of(&with_settings("pause", ecn));
    // Two hosts send to a third, whose line is as fast as each of theirs: frames queue at s1:3.
    for number in 0..20 {
        for from in ["ah1", "ah2"] {
            bench.send(from, &packet(3, if number % 2 == 0 { 2 } else { 0 }));
        }
    }
    bench.run_virtual(200 * MS);
    assert_eq!(bench.delivered.len(), 40);
    let chosen = bench.channel("s1:3")["priorities"][0]["marked_frames"].as_u64().unwrap();
    let marked = bench.delivered.iter().filter(|(_, _, frame)| frame[15] & 3 == 3).count();
    let others = bench.delivered.iter().filter(|(_, _, frame)| frame[15] & 3 == 0).count();
    assert!(marked > 0 && marked as u64 <= chosen, "{marked} of {chosen}");
    assert_eq!(others, 20);
    for (_, _, frame) in &bench.delivered {
        let sum = u32::from(u16::from_be_bytes([frame[14], frame[15]]))
            + u32::from(u16::from_be_bytes([frame[24], frame[25]]));
        assert_eq!(sum, 0xffff);
    }
}

#[test]
fn pools_are_counted() {
    let pool = json!({
        "pools": {"p": {"side": "ingress", "bytes": 20_000}},
        "ingress": [{"priorities": [0, 1, 2, 3, 4, 5, 6, 7], "pool": "p", "alpha": 1.0}],
    });
    let mut bench = Bench::of(&with_settings("pause", pool));
    for _ in 0..30 {
        bench.send("ah1", &packet(3, 0));
        bench.send("ah2", &packet(3, 0));
    }
    bench.run_virtual(300 * MS);
    assert_eq!(bench.delivered.len(), 60);
    let counters = bench.ask(json!({"do": "counters"}));
    let pools = counters["pools"].as_array().unwrap();
    assert_eq!(pools.len(), 2);
    assert_eq!((&pools[0]["switch"], &pools[0]["pool"]), (&json!("s1"), &json!("p")));
    assert!(pools[0]["peak_bytes"].as_u64().unwrap() > 10_000, "{counters}");
    assert_eq!(pools[0]["used_bytes"], 0);
}

#[test]
fn pause_frames_take_their_place_on_the_wire_and_are_repeated() {
    // Pauses of 20 ms, which are repeated after half of that.
    let settings = json!({"pause_frames": {"quanta": 400, "response_us": 300}});
    let mut bench = Bench::of(&with_settings("pfc", settings));
    for _ in 0..100 {
        for from in ["ah1", "ah2"] {
            bench.send(from, &packet(3, 0));
        }
    }
    bench.run_virtual(120 * MS);
    let paused = |bench: &mut Bench| bench.channel("h1")["priorities"][0]["pauses"].as_u64();
    let sent = |bench: &mut Bench| bench.channel("s1:1")["pause_frames"].as_u64();
    assert!(paused(&mut bench) > Some(0), "{:?}", paused(&mut bench));
    assert!(sent(&mut bench) > paused(&mut bench).map(|pauses| 2 * pauses));
    bench.run_virtual(300 * MS);
    assert_eq!(bench.delivered.len(), 200);
    // None is repeated when nothing waits any more.
    let before = sent(&mut bench);
    bench.run_virtual(100 * MS);
    assert_eq!(sent(&mut bench), before);
    assert_eq!(bench.channel("s1:1")["tx_frames"], 0);
    assert!(bench.engine.is_idle());
}

#[test]
fn impossible_settings_are_refused_when_the_daemon_starts_and_at_a_reset() {
    let refused = |flow_control: &str, settings: Value| {
        let config = Config::parse(&with_settings(flow_control, settings).to_string());
        config.and_then(|config| Fabric::new(&config)).map(|_| ()).unwrap_err().to_string()
    };
    let message = refused("pfc", json!({"ports": {"9": {}}}));
    assert!(message.contains("switch_settings: ports: no switch has a port \"9\""), "{message}");
    assert!(refused("pause", json!({"lossless": [3]})).contains("use PFC"));
    assert!(refused("pfc", json!({"lossles": [3]})).contains("lossles"));
    let mut bench = Bench::of(&with_settings("pfc", json!({"lossless": [3]})));
    let answer = bench.ask(json!({"do": "reset", "flow_control": "pause"}));
    assert_eq!(answer["ok"], false, "{answer}");
    assert!(answer["error"].as_str().unwrap().contains("use PFC"), "{answer}");
}
