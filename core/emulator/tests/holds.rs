//! What virtual time waits for, and for how long.

mod harness;

use emulator::engine::Hold;
use emulator::nfqueue::Held;
use harness::{configuration, frame, Bench, MS, TICK};
use serde_json::{json, Value};
use switch_model::MICROSECOND;

#[test]
fn virtual_time_waits_for_a_slow_switch() {
    let mut bench = Bench::new("pause");
    bench.switch_time = 5 * MS;
    for _ in 0..20 {
        bench.send("ah1", &frame(3, 1514));
    }
    let mut held = [false; 2];
    while bench.delivered.len() < 20 {
        bench.step(TICK);
        assert_eq!(bench.ask(json!({"do": "counters"}))["held"], bench.held.is_some());
        held[usize::from(bench.held.is_some())] = true;
    }
    assert_eq!(held, [true; 2]);
    // As with a fast switch: the lines were busy without a gap.
    let due = 22 * 1538 * 800_000 + 3 * 500 * MICROSECOND;
    let last = bench.delivered[19].0;
    assert!(last >= due && last < due + 2 * MS, "{last} is not {due}");
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!(status["valid"], true);
    assert!(status["stretch"].as_f64().unwrap() > 1.5, "{status}");
    assert!(status["holds"]["switch"]["ms"].as_f64().unwrap() > 20.0, "{status}");
    assert_eq!(status["holds"]["host"]["ms"], 0.0);
    assert!(status["slowest_switch"]["switch"].as_str().unwrap().starts_with('s'));
}

#[test]
fn what_a_switch_is_known_to_have_dropped_does_not_hold_for_long_and_counts_as_lost() {
    let mut bench = Bench::new("pause");
    bench.send("ah1", &frame(9, 100));
    bench.send("ah1", &frame(3, 100));
    bench.run_for(10 * MS);
    assert_eq!(bench.delivered.len(), 1);
    assert_eq!(bench.drops("unforwarded"), 0);
    bench.run_for(200 * MS);
    assert_eq!(bench.drops("unforwarded"), 1);
    assert_eq!(bench.engine.frames_in_network(), 0);
    assert!(bench.engine.is_idle());
    assert_eq!(bench.ask(json!({"do": "status"}))["valid"], true);
}

#[test]
fn a_switchs_own_frame_for_its_neighbour_holds_nothing_and_is_not_lost() {
    let mut bench = Bench::new("pause");
    bench.switch_time = 50 * MS;
    bench.probed = false;
    let mut probe = frame(1, 60);
    probe[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0x0e]);
    bench.send("kb", &probe);
    bench.run_for(20 * MS);
    let mut reflected = bench.taken.pop().unwrap();
    assert_eq!((bench.held, bench.engine.frames_in_network()), (None, 0));
    // The neighbour sends it back: it is a frame of that switch.
    let ka = bench.end("ka");
    reflected[6] = 2;
    bench.engine.receive(ka, reflected);
    bench.run_for(300 * MS);
    assert_eq!(bench.taken.len(), 1);
    assert_eq!(bench.drops("unforwarded"), 0);
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!((&status["injected"], &status["valid"]), (&json!(2), &json!(true)));
}

#[test]
fn frames_that_are_handed_over_after_the_look_at_the_switches_are_not_taken_as_dropped() {
    let mut bench = Bench::new("pause");
    bench.probed = false;
    bench.send("ah2", &frame(9, 100));
    bench.run_for(10 * MS);
    assert!(matches!(bench.held, Some(Hold::Switch(_))), "{:?}", bench.held);
    let seen = bench.engine.in_switches();
    bench.send("ah1", &frame(2, 100));
    bench.engine.conclude_all(&seen, true);
    bench.carry_all();
    bench.run_for(250 * MS);
    assert_eq!((bench.delivered.len(), bench.drops("unforwarded")), (1, 1));
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!((&status["sent_on"], &status["valid"]), (&json!(0), &json!(true)));
}

#[test]
fn a_frame_that_a_controller_sends_on_is_not_lost() {
    let mut bench = Bench::new("pause");
    bench.send("ah1", &frame(9, 100));
    bench.run_for(10 * MS);
    let mut diverted = bench.taken.pop().unwrap();
    assert_eq!(bench.engine.in_switch_for(0), None, "it holds nothing");
    let bh1 = bench.end("bh1");
    diverted[0] = 1;
    bench.engine.receive(bh1, diverted);
    bench.run_for(300 * MS);
    assert_eq!((bench.delivered.len(), bench.drops("unforwarded")), (1, 0));
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!((&status["injected"], &status["valid"]), (&json!(1), &json!(true)));
    assert_eq!(status["sent_on"], 1);
}

#[test]
fn a_frame_that_comes_out_after_all_makes_the_run_invalid_if_no_controller_can_have_sent_it() {
    let mut settings = configuration("pause");
    settings["controller_sends_on"] = json!(false);
    let mut bench = Bench::of(&settings);
    bench.send("ah1", &frame(9, 100));
    bench.run_for(10 * MS);
    assert_eq!(bench.ask(json!({"do": "status"}))["valid"], true);
    let late = bench.taken.pop().unwrap();
    let bh2 = bench.end("bh2");
    bench.engine.receive(bh2, late);
    bench.run_for(MS);
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!((&status["sent_on"], &status["valid"]), (&json!(1), &json!(false)));
    assert!(status["problems"][0].as_str().unwrap().contains("seemed"), "{status}");
}

#[test]
fn a_frame_that_is_abandoned_without_proof_makes_the_run_invalid() {
    let mut bench = Bench::new("pause");
    bench.probed = false;
    bench.send("ah1", &frame(9, 100));
    bench.run_for(50 * MS);
    let now = bench.engine.now();
    bench.run_for(50 * MS);
    assert_eq!(bench.engine.now(), now, "virtual time waits");
    let Some(Hold::Switch(sequence)) = bench.held else { panic!("{:?}", bench.held) };
    bench.engine.conclude(sequence, false);
    bench.run_for(50 * MS);
    assert!(bench.engine.now() > now);
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!((&status["abandoned"], &status["valid"]), (&json!(1), &json!(false)));
    assert!(status["problems"][0].as_str().unwrap().contains("not known"), "{status}");
    assert_eq!((&status["doubtful"], &status["past"]), (&json!(1), &json!([])));
    // It comes back after all, even much later.
    bench.run_for(500 * MS);
    let frame = bench.taken.pop().unwrap();
    let bh2 = bench.end("bh2");
    bench.engine.receive(bh2, frame);
    bench.run_for(10 * MS);
    assert_eq!(
        (bench.ask(json!({"do": "status"}))["given_up"].as_u64(), bench.delivered.len()),
        (Some(1), 0)
    );
    // No doubt is left, but what was measured since the reset is not valid.
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!((&status["doubtful"], &status["valid"]), (&json!(0), &json!(false)));
    assert_eq!(status["past"], status["problems"]);
    assert!(status["past"][0].as_str().unwrap().contains("1 came out later"), "{status}");
    bench.ask(json!({"do": "reset"}));
    assert_eq!(bench.ask(json!({"do": "status"}))["valid"], true);
}

#[test]
fn a_doubt_ends_when_switches_have_finished_with_every_frame() {
    let mut bench = Bench::new("pause");
    bench.probed = false;
    bench.send("ah1", &frame(9, 100));
    bench.run_for(50 * MS);
    let Some(Hold::Switch(sequence)) = bench.held else { panic!("{:?}", bench.held) };
    bench.engine.conclude(sequence, false);
    bench.run_for(50 * MS);
    assert_eq!(bench.ask(json!({"do": "status"}))["doubtful"], 1);
    bench.engine.settle_doubts();
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!((&status["doubtful"], &status["abandoned"]), (&json!(0), &json!(1)));
    assert!(status["past"][0].as_str().unwrap().contains("0 came out later"), "{status}");
}

#[test]
fn an_abandoned_frame_on_a_slow_link_does_not_keep_others_from_being_abandoned() {
    let mut settings = configuration("pause");
    settings["links"][1]["delay_us"] = json!(5_000_000);
    let mut bench = Bench::of(&settings);
    bench.send("ah2", &frame(9, 100));
    bench.run_for(2 * MS);
    bench.send("ah1", &frame(9, 100));
    bench.run_for(250 * MS);
    assert_eq!(bench.drops("unforwarded"), 2);
}

#[test]
fn a_switch_never_has_more_frames_of_a_channel_than_fit() {
    let mut settings = configuration("pause");
    for link in 0..4 {
        settings["links"][link]["rate_mbps"] = json!(10_000);
    }
    let mut bench = Bench::of(&settings);
    bench.switch_time = 20 * MS;
    for _ in 0..80 {
        bench.send("ah1", &frame(3, 1514));
    }
    let mut most = 0;
    while bench.delivered.len() < 80 {
        bench.step(TICK);
        most = most.max(bench.inside.len());
    }
    assert_eq!(most, 32);
    // 80 frames in a row, three hops.
    let last = bench.delivered[79].0;
    let due = 82 * 1538 * 800 + 3 * 500 * MICROSECOND;
    assert!(last >= due && last < due + 3 * MS, "{last} is not {due}");
}

/// A fabric whose first hosts have their packets held back in an NFQUEUE.
fn with_nfqueues(hosts: usize) -> Value {
    let mut settings = configuration("pause");
    for link in 0..hosts {
        settings["links"][link]["a"]["host_namespace"] = json!("/nowhere");
        settings["links"][link]["a"]["nfqueue"] = json!(1);
    }
    settings
}

#[test]
fn virtual_time_waits_for_a_host_again_when_its_link_is_up_again() {
    let settings = with_nfqueues(1);
    let mut bench = Bench::of(&settings);
    let end = bench.end("ah1");
    bench.engine.nic(end).unwrap().set_has_more();
    bench.ask(json!({"do": "reset"}));
    for up in [true, false, true] {
        bench.ask(json!({"do": "link", "name": "h1", "up": up}));
        bench.run_for(10 * MS);
        assert_eq!(bench.held, up.then_some(Hold::Host(end)));
    }
}

#[test]
fn of_hosts_that_begin_together_the_quicker_one_gains_nothing() {
    let delivered = [["ah1", "ah2"], ["ah2", "ah1"]].map(|hosts| {
        let mut bench = Bench::of(&with_nfqueues(2));
        let ends = hosts.map(|host| bench.end(host));
        for end in ends {
            bench.engine.nic(end).unwrap().set_has_more();
        }
        bench.ask(json!({"do": "reset"}));
        for (end, host) in ends.into_iter().zip(hosts) {
            let mut sent = frame(3, 1514);
            sent[20..23].copy_from_slice(host.as_bytes());
            bench.engine.nic(end).unwrap().held().push_back(Held::new(0, 1500, Some(0x45)));
            assert_eq!(bench.engine.release(end), Some(0));
            bench.engine.receive(end, sent);
            bench.engine.nic(end).unwrap().give_up();
            // In real time.
            bench.run_for(MS);
        }
        bench.run_for(20 * MS);
        bench.delivered.into_iter().map(|(_, _, frame)| frame).collect::<Vec<_>>()
    });
    assert_eq!(delivered[0].len(), 2);
    assert_eq!(delivered[0], delivered[1]);
}

#[test]
fn virtual_time_waits_for_a_host_that_has_more_and_not_for_others() {
    let settings = with_nfqueues(1);
    let mut bench = Bench::of(&settings);
    let end = bench.end("ah1");
    let hand_over = |bench: &mut Bench, count: u32| {
        let held = (0..count).map(|id| Held::new(id, 1500, Some(0x45)));
        bench.engine.nic(end).unwrap().held().extend(held);
        while let Some(last) = bench.engine.release(end) {
            for _ in 0..=last {
                bench.engine.receive(end, frame(3, 1514));
            }
        }
    };
    // All of it fits: nobody knows whether there will be more.
    hand_over(&mut bench, 5);
    bench.run_for(100 * MS);
    assert_eq!(bench.held, None);
    // More than fits.
    hand_over(&mut bench, 15);
    let left = bench.engine.nic(end).unwrap().held().len();
    assert!(left > 0);
    bench.engine.nic(end).unwrap().held().clear();
    bench.run_for(100 * MS);
    assert_eq!(bench.held, Some(Hold::Host(end)));
    let idle_since = bench.engine.now();
    bench.run_for(100 * MS);
    assert_eq!(bench.engine.now(), idle_since);
    // Its next packet begins at once, and then its line is idle again.
    bench.engine.receive(end, frame(3, 1514));
    bench.run_for(100 * MS);
    assert_eq!(bench.held, Some(Hold::Host(end)));
    assert_eq!(bench.engine.now(), idle_since + 1538 * 800_000);
    bench.engine.give_up_host(end, false);
    bench.run_for(10 * MS);
    assert_eq!(bench.held, None);
    let (at, ..) = *bench.delivered.last().unwrap();
    let due = idle_since + 3 * (1538 * 800_000 + 500 * MICROSECOND);
    assert!(at >= due && at < due + 2 * MS, "{at} is not {due}");
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!((&status["host_timeouts"], &status["valid"]), (&json!(1), &json!(true)));
    assert!(status["holds"]["host"]["ms"].as_f64().unwrap() > 100.0);
    // It did have more to send, and the run is not valid.
    hand_over(&mut bench, 15);
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!((&status["host_late"], &status["valid"]), (&json!(1), &json!(false)));
}

#[test]
fn a_run_is_not_valid_if_a_program_of_a_host_had_no_processor() {
    let settings = with_nfqueues(1);
    let mut bench = Bench::of(&settings);
    let end = bench.end("ah1");
    bench.engine.give_up_host(end, true);
    let status = bench.ask(json!({"do": "status"}));
    assert_eq!((&status["host_starved"], &status["valid"]), (&json!(1), &json!(false)));
    assert!(status["problems"][0].as_str().unwrap().contains("waited for a processor"));
}

#[test]
fn the_slow_down_makes_virtual_time_slower() {
    let mut settings = configuration("pause");
    settings["slow_down"] = json!(4);
    let mut bench = Bench::of(&settings);
    bench.send("ah1", &frame(3, 1514));
    bench.run_for(400 * MS);
    // The switch has the frame for one tick.
    assert!((99 * MS..100 * MS).contains(&bench.engine.now()));
    let stretch = bench.ask(json!({"do": "status"}))["stretch"].as_f64().unwrap();
    assert!((4.0..4.1).contains(&stretch), "{stretch}");
}
