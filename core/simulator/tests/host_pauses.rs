//! Hosts that pause their links.

mod common;

use common::{channel, channels, config, settings, MICROSECOND};
use simulator::{
    Arrivals, ChannelConfig, Fabric, Flow, FlowControl, Node, PauseLimit, Settings, Simulation,
    Tables, Target, Time, Traffic, VirtualChannel,
};
use switch_model::ChannelId;

const MS: Time = 1000 * MICROSECOND;

/// Three hosts at a switch. The first sends to both others, packet by packet in turns.
fn star(adjust: impl Fn(&mut ChannelConfig), end: Time) -> (Simulation, VirtualChannel) {
    let mut rows = channels(1, &[], &[0, 0, 0], config(0));
    for row in &mut rows {
        adjust(&mut row.0);
    }
    let up = channel(&rows, Node::Host(0), Node::Switch(0));
    let fabric = Fabric::new(1, 3, rows).expect("a fabric");
    let tables = Tables::without_routes(&fabric);
    let flows = [1, 2].map(|to| Flow { from: 0, to: Target::Host(to) }).to_vec();
    let traffic = Traffic::Flows { flows, arrivals: Arrivals::Saturate, message_bytes: 1500 };
    let settings = Settings { end, ..settings(1) };
    let simulation = Simulation::new(fabric, tables, traffic, settings).expect("it fits");
    (simulation, VirtualChannel { channel: ChannelId(up), class: 0 })
}

fn packets(simulation: &Simulation) -> [u64; 2] {
    let flows = simulation.report().flows;
    [flows[0].packets, flows[1].packets]
}

#[test]
fn a_host_that_pauses_for_ever_stops_flows_to_others() {
    let (mut simulation, up) = star(|_| {}, 1000 * MS);
    simulation.pause_host(100 * MS, 2, Time::MAX).unwrap();
    simulation.run_to(100 * MS);
    assert!(simulation.standing_behind(2).unwrap().is_empty());
    simulation.run_to(500 * MS);
    let before = packets(&simulation);
    assert_eq!(simulation.standing_behind(2).unwrap().into_iter().collect::<Vec<_>>(), [up]);
    assert!(simulation.standing_behind(1).unwrap().is_empty());
    simulation.run_to(1000 * MS);
    assert_eq!(packets(&simulation), before);
    let report = simulation.report();
    assert!(report.deadlock.is_none(), "it would end with the pause");
    let first = report.first_pauses[0];
    assert_eq!((first.paused, first.cause_paused), (up, true));
    assert_eq!(report.flows.iter().map(|flow| flow.lost).sum::<u64>(), 0);
}

#[test]
fn under_pfc_all_priorities_are_paused() {
    let (mut simulation, up) = star(|config| config.flow_control = FlowControl::Pfc, 1000 * MS);
    simulation.pause_host(0, 2, Time::MAX).unwrap();
    simulation.run_to(1000 * MS);
    assert_eq!(simulation.standing_behind(2).unwrap().into_iter().collect::<Vec<_>>(), [up]);
    assert_eq!(packets(&simulation)[1], 0);
    let down = simulation.report().channels[2].priorities;
    assert!(down.iter().all(|priority| priority.pauses == 1));
}

#[test]
fn a_pause_ends_at_its_time_or_when_the_host_says() {
    for ends_itself in [true, false] {
        let (mut simulation, _) = star(|_| {}, 1000 * MS);
        let until = if ends_itself { 500 * MS } else { Time::MAX };
        simulation.pause_host(100 * MS, 2, until).unwrap();
        if !ends_itself {
            simulation.pause_host(500 * MS, 2, 500 * MS).unwrap();
        }
        simulation.run_to(499 * MS);
        let stopped = packets(&simulation);
        simulation.run_to(1000 * MS);
        assert!(simulation.standing_behind(2).unwrap().is_empty());
        // A frame takes 1,230.4 us, and the line carries frames for both in turns.
        let since = packets(&simulation)[0] - stopped[0];
        assert!((195..=210).contains(&since), "{since}");
    }
}

#[test]
fn a_limit_ends_the_pause_of_a_host_that_never_resumes() {
    let limit = PauseLimit { share_permille: 600, longest: 50 * MS };
    let (mut simulation, _) = star(|config| config.pause_limit = Some(limit), 1000 * MS);
    simulation.pause_host(100 * MS, 2, Time::MAX).unwrap();
    simulation.run_to(1000 * MS);
    assert!(simulation.standing_behind(2).unwrap().is_empty());
    assert_eq!(simulation.report().channels[2].priorities[0].paused, 50 * MS);
}

#[test]
fn a_simulation_ends_although_a_pause_does_not() {
    let mut rows = channels(1, &[], &[0, 0], config(0));
    rows.iter_mut().for_each(|row| row.0.pause_limit = None);
    let fabric = Fabric::new(1, 2, rows).expect("a fabric");
    let tables = Tables::without_routes(&fabric);
    let flows = vec![Flow { from: 0, to: Target::Host(1) }];
    let arrivals = Arrivals::Acknowledged { count: 1 };
    let traffic = Traffic::Flows { flows, arrivals, message_bytes: 1500 };
    let mut simulation = Simulation::new(fabric, tables, traffic, settings(1)).expect("it fits");
    simulation.pause_host(10 * MICROSECOND, 1, Time::MAX).unwrap();
    while simulation.run(1000) {}
    assert!(simulation.now() < 10 * MS, "{}", simulation.now());
    assert_eq!(simulation.report().in_network, 1);
}

#[test]
fn impossible_pauses_are_refused() {
    let (mut simulation, _) = star(|config| config.flow_control = FlowControl::Off, 1000 * MS);
    let error = |result: Result<(), simulator::Error>| result.unwrap_err().to_string();
    assert_eq!(error(simulation.pause_host(0, 1, MS)), "host 1 cannot pause its link");
    let (mut simulation, _) = star(|_| {}, 1000 * MS);
    assert_eq!(error(simulation.pause_host(0, 3, MS)), "there is no host 3");
    assert_eq!(simulation.standing_behind(3).unwrap_err().to_string(), "there is no host 3");
    simulation.run_to(100 * MS);
    assert!(error(simulation.pause_host(MS, 1, 2 * MS)).contains("not before"));
}
