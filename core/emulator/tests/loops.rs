//! Frames that go round, and all those that do not: they are followed through switches that copy,
//! rewrite, delay and reorder them, and through controllers.

mod harness;

use emulator::frame::Frame;
use emulator::trailer::{Trailer, TRAILER_BYTES};
use harness::{frame, Bench, Rules, MS};
use serde_json::{json, Value};
use switch_model::Time;

const SWITCHES: usize = 4;

/// A ring: `sN` has hN at port 1, the switch before it at port 2 and the next one at port 3. The
/// interfaces of switches are `N.PORT`.
fn ring() -> Value {
    let end = |switch: usize, port: usize| json!({"switch": format!("s{switch}"), "port": port, "interface": format!("{switch}.{port}")});
    let mut links = Vec::new();
    for switch in 1..=SWITCHES {
        let next = switch % SWITCHES + 1;
        let host = format!("h{switch}");
        links.push(json!({
            "name": host, "rate_mbps": 10, "delay_us": 500, "b": end(switch, 1),
            "a": {"host": host, "interface": format!("h{switch}")},
        }));
        links.push(json!({
            "name": format!("s{switch}-s{next}"), "rate_mbps": 10, "delay_us": 500,
            "a": end(switch, 3), "b": end(next, 2),
        }));
    }
    json!({"namespace": "/nowhere", "links": links})
}

fn bench(rules: impl FnMut(&str, &[u8]) -> Vec<(Time, String, Vec<u8>)> + 'static) -> Bench {
    let mut bench = Bench::of(&ring());
    bench.rules = Some(Box::new(rules) as Rules);
    bench
}

/// The switch and the port of an interface.
fn place(interface: &str) -> (usize, usize) {
    let (switch, port) = interface.split_once('.').unwrap();
    (switch.parse().unwrap(), port.parse().unwrap())
}

fn out(switch: usize, port: usize, frame: &[u8]) -> (Time, String, Vec<u8>) {
    (0, format!("{switch}.{port}"), frame.to_vec())
}

/// To all other ports.
fn flood(interface: &str, frame: &[u8]) -> Vec<(Time, String, Vec<u8>)> {
    let (switch, from) = place(interface);
    (1..=3).filter(|&port| port != from).map(|port| out(switch, port, frame)).collect()
}

/// The same without the link between s4 and s1.
fn flood_tree(interface: &str, frame: &[u8]) -> Vec<(Time, String, Vec<u8>)> {
    let mut copies = flood(interface, frame);
    copies.retain(|(_, interface, _)| !matches!(place(interface), (4, 3) | (1, 2)));
    copies
}

fn loops(bench: &mut Bench) -> Vec<Value> {
    bench.ask(json!({"do": "status"}))["loops"].as_array().unwrap().clone()
}

fn channels(one: &Value) -> Vec<&str> {
    one["channels"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

/// The frame with this VLAN tag, and with the trailer that it has.
fn retagged(frame: &[u8], vlan: u16) -> Vec<u8> {
    let rest = if Frame::new_checked(frame).unwrap().is_tagged() { 16 } else { 12 };
    let tag = [&[0x81, 0x00], &vlan.to_be_bytes()[..]].concat();
    [&frame[..12], &tag, &frame[rest..]].concat()
}

#[test]
fn a_flood_in_a_ring_goes_round_in_both_directions() {
    let mut bench = bench(flood);
    let sent = frame(0xff, 60);
    bench.send("h1", &sent);
    bench.run_for(30 * MS);
    let found = loops(&mut bench);
    let mut named: Vec<Vec<&str>> = found.iter().map(channels).collect();
    named.sort_unstable();
    assert_eq!(named, [["s1:2", "s4:2", "s3:2", "s2:2"], ["s1:3", "s2:3", "s3:3", "s4:3"]]);
    for one in &found {
        assert_eq!(one["present"], true);
        assert!(one["passes"].as_u64() > Some(4), "{one}");
        assert!(one["since_us"].as_u64() < one["last_us"].as_u64());
    }
    // Each channel leads to the switch that sends on to the next one.
    let hops = bench.ask(json!({"do": "loops"}))["loops"][0].clone();
    assert_eq!(hops.as_array().map(Vec::len), Some(SWITCHES));
    let hex: String = sent.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(hops.as_array().unwrap().iter().all(|hop| hop["frame"] == hex.as_str()));
    let first = hops.as_array().unwrap().iter().find(|hop| hop["channel"] == "s1:3");
    if let Some(first) = first {
        assert_eq!((&first["switch"], &first["port"]), (&json!("s2"), &json!(2)));
    }
    assert_eq!(bench.ask(json!({"do": "status"}))["valid"], true);
}

#[test]
fn the_second_time_on_a_channel_is_found_and_not_the_first() {
    let mut left = 0;
    let once_round = move |interface: &str, frame: &[u8]| {
        left += 1;
        let (switch, _) = place(interface);
        // h1's frame passes s1, s2, s3, s4, and s1 again; then s1 drops it, or sends it to h1.
        let port = if left <= SWITCHES { 3 } else { 1 };
        vec![out(switch, port, frame)]
    };
    let mut dies = bench(once_round);
    dies.send("h1", &frame(2, 60));
    dies.run_for(50 * MS);
    assert_eq!(dies.delivered.len(), 1);
    assert_eq!(loops(&mut dies), Vec::<Value>::new());

    left = 0;
    let mut goes_on = bench(move |interface: &str, frame: &[u8]| {
        left += 1;
        let (switch, _) = place(interface);
        vec![out(switch, if left <= SWITCHES + 1 { 3 } else { 1 }, frame)]
    });
    goes_on.send("h1", &frame(2, 60));
    goes_on.run_for(50 * MS);
    assert_eq!(goes_on.delivered.len(), 1);
    let found = loops(&mut goes_on);
    assert_eq!((found.len(), &found[0]["passes"]), (1, &json!(1)));
    assert_eq!(channels(&found[0]), ["s1:3", "s2:3", "s3:3", "s4:3"]);
}

#[test]
fn a_loop_through_a_slow_controller_is_found() {
    // A second: everything about the frame is forgotten but where it has been.
    let slowly = |interface: &str, frame: &[u8]| {
        let mut copies = flood(interface, frame);
        copies.iter_mut().for_each(|copy| copy.0 = 1000 * MS);
        copies
    };
    let mut bench = bench(slowly);
    bench.send("h1", &frame(0xff, 60));
    // The switches have given it to the controller and have nothing more of it.
    for _ in 0..60_000 {
        bench.step(MS / 4);
        if matches!(bench.held, Some(emulator::engine::Hold::Switch(_))) {
            let handed = bench.engine.in_switches();
            bench.engine.conclude_all(&handed, true);
        }
    }
    assert_eq!(loops(&mut bench).len(), 2);
    assert!(bench.ask(json!({"do": "status"}))["injected"].as_u64() > Some(8));
}

#[test]
fn rewritten_tags_do_not_hide_a_loop() {
    let rewriting = |interface: &str, frame: &[u8]| {
        let (switch, from) = place(interface);
        let port = if from == 3 { 2 } else { 3 };
        vec![out(switch, port, &retagged(frame, 10 + switch as u16))]
    };
    let mut bench = bench(rewriting);
    bench.send("h2", &frame(2, 60));
    bench.run_for(30 * MS);
    let found = loops(&mut bench);
    assert_eq!(found.len(), 1);
    assert_eq!(channels(&found[0]), ["s1:3", "s2:3", "s3:3", "s4:3"]);
    let hops = bench.ask(json!({"do": "loops"}))["loops"][0].clone();
    let tags = hops.as_array().unwrap().iter().map(|hop| hop["frame"].as_str().unwrap());
    let tags: Vec<&str> = tags.map(|hex| &hex[24..32]).collect();
    assert_eq!(tags, ["8100000b", "8100000c", "8100000d", "8100000e"]);
}

#[test]
fn a_channel_in_two_vlans_is_no_loop() {
    // To s2 in VLAN 5, back to s1 through s3 and s4, and to s2 again in VLAN 6: a service chain.
    let chain = |interface: &str, frame: &[u8]| {
        let (switch, from) = place(interface);
        let is_second = frame[12..16] == [0x81, 0, 0, 6];
        match (switch, from, is_second) {
            (1, 1, _) => vec![out(1, 3, &retagged(frame, 5))],
            (1, _, false) => vec![out(1, 3, &retagged(frame, 6))],
            (2, _, true) => vec![out(2, 1, frame)],
            _ => vec![out(switch, 3, frame)],
        }
    };
    let mut bench = bench(chain);
    bench.send("h1", &frame(2, 60));
    bench.run_for(50 * MS);
    assert_eq!(bench.delivered.len(), 1);
    assert_eq!(loops(&mut bench), Vec::<Value>::new());
}

#[test]
fn copies_that_meet_again_are_no_loop() {
    // s1 sends both ways round to s3, which sends both copies on to s4.
    let both_ways = |interface: &str, frame: &[u8]| {
        let (switch, from) = place(interface);
        match (switch, from) {
            (1, 1) => vec![out(1, 3, frame), out(1, 2, frame)],
            (2, 2) => vec![out(2, 3, frame)],
            (4, 3) => vec![out(4, 2, frame)],
            (3, _) => vec![out(3, 3, frame), out(3, 1, frame)],
            _ => vec![out(switch, 1, frame)],
        }
    };
    let mut bench = bench(both_ways);
    for _ in 0..20 {
        bench.send("h1", &frame(0xff, 60));
    }
    bench.run_for(100 * MS);
    assert_eq!(bench.delivered.iter().filter(|(_, host, _)| host == "h3").count(), 40);
    assert_eq!(loops(&mut bench), Vec::<Value>::new());
}

/// ARP, LLDP, probes of switches and pings, with equal bytes again and again, on lines that
/// duplicate and reorder frames, through switches that return them in another order.
#[test]
fn an_hour_of_ordinary_traffic_has_no_loop() {
    let mut settings = ring();
    for link in settings["links"].as_array_mut().unwrap() {
        link["faults"] = json!({"duplicate": 0.1, "reorder": 0.1});
    }
    let mut bench = Bench::of(&settings);
    let mut number = 0;
    bench.rules = Some(Box::new(move |interface: &str, frame: &[u8]| {
        number += 1;
        let (switch, from) = place(interface);
        let to = usize::from(frame[0] / 2);
        let mut copies = match () {
            () if frame[..3] == [0x01, 0x80, 0xc2] => vec![],
            () if frame[0] == 0xff => flood_tree(interface, frame),
            () if to == switch => vec![out(switch, 1, frame)],
            () if from == 1 && to > switch => vec![out(switch, 3, frame)],
            () if from == 1 => vec![out(switch, 2, frame)],
            () => vec![out(switch, 5 - from, frame)],
        };
        for copy in &mut copies {
            copy.0 = number % 3 * MS / 5;
        }
        copies
    }));
    let mut lldp = frame(1, 60);
    lldp[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]);
    let (mut second, end) = (0u64, 3600 * 1000 * MS);
    while bench.engine.now() < end {
        if bench.engine.now() >= second * 1000 * MS {
            second += 1;
            for host in 1..=SWITCHES {
                let ping = frame(2 * ((host + 1) % SWITCHES + 1) as u8, 98);
                bench.send(&format!("h{host}"), &ping);
                bench.send(&format!("h{host}"), &ping);
                if second % 30 == host as u64 {
                    bench.send(&format!("h{host}"), &frame(0xff, 60));
                    bench.send(&format!("h{host}"), &lldp);
                }
                // A probe of the controller: a switch sends it to its neighbour.
                let port = bench.end(&format!("{host}.3"));
                bench.engine.receive(port, lldp.clone());
            }
        }
        let is_quiet = bench.inside.is_empty() && bench.engine.frames_in_network() == 0;
        bench.step(if is_quiet { 50 * MS } else { MS / 5 });
    }
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!(status["loops"], json!([]));
    assert!(bench.delivered.len() > 2 * 3600 * SWITCHES, "{}", bench.delivered.len());
    assert_eq!(status["injected"], json!(second * SWITCHES as u64));
}

#[test]
fn a_forged_trailer_makes_no_loop() {
    let mut bench = bench(flood_tree);
    bench.send("h1", &frame(0xff, 60));
    bench.run_for(20 * MS);
    // Hosts and a controller send what names transmissions of before, of channels and of nothing.
    for sequence in 0..40 {
        for channel in 0..12 {
            let mut forged = frame(0xff, 60);
            Trailer { channel, sequence: sequence * 3 }.append(&mut forged);
            bench.send("h2", &forged);
            let port = bench.end("3.1");
            bench.engine.receive(port, forged);
            bench.step(MS / 5);
        }
    }
    bench.run_for(600 * MS);
    assert_eq!(loops(&mut bench), Vec::<Value>::new());
    let whole = bench.delivered.iter().filter(|(_, _, frame)| frame.len() == 60 + TRAILER_BYTES);
    assert!(whole.count() > 0, "what a host has forged is payload");
}

#[test]
fn a_loop_is_past_when_nothing_goes_round_and_gone_after_a_reset() {
    let mut bench = bench(flood);
    bench.send("h1", &frame(0xff, 60));
    bench.run_for(30 * MS);
    bench.rules = Some(Box::new(|_: &str, _: &[u8]| Vec::new()));
    bench.run_virtual(9000 * MS);
    assert!(loops(&mut bench).iter().all(|one| one["present"] == true));
    bench.run_virtual(2000 * MS);
    let found = loops(&mut bench);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|one| one["present"] == false));
    // Frames that are inside at a reset are not known after it.
    bench.rules = Some(Box::new(flood));
    bench.send("h1", &frame(0xff, 60));
    bench.run_for(2 * MS);
    bench.ask(json!({"do": "reset"}));
    assert_eq!(loops(&mut bench), Vec::<Value>::new());
    assert_eq!(bench.ask(json!({"do": "loops"}))["loops"], json!([]));
    bench.run_for(30 * MS);
    bench.send("h3", &frame(0xff, 60));
    bench.run_for(30 * MS);
    assert_eq!(loops(&mut bench).len(), 2);
}
