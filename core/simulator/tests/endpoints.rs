//! Hosts that send a message before they take more.

use simulator::{
    longest_frame_bytes, number_channels, Arrivals, ChannelConfig, Error, Fabric, Faults, Flow,
    FlowControl, Forwarding, HostSettings, Limits, MessageClass, Node, Report, Settings,
    Simulation, Tables, Target, Time, Traffic,
};

const MICROSECOND: Time = 1_000_000;
const HOSTS: u32 = 5;
/// Twice what a line carries, of the flows to all others.
const OVERLOAD: Arrivals = Arrivals::Poisson { mean: 2_400_000.0 };
/// A packet pauses its sender.
const ONE_PACKET: Limits = Limits {
    queue_bytes: None,
    xoff_bytes: Some(1000),
    xon_bytes: None,
    headroom_bytes: None,
    credit_bytes: None,
    credit_unit_bytes: None,
};
const REQUEST: MessageClass =
    MessageClass { sends: Some(1), reserve: 0, outstanding: None, priority: 0 };
const REPLY: MessageClass = MessageClass { sends: None, ..REQUEST };

/// A switch with hosts on links of 10 Gbit/s and 0.1 us.
fn star(flow_control: FlowControl) -> Fabric {
    let (rate_bps, delay) = (10_000_000_000, MICROSECOND / 10);
    let config = ChannelConfig {
        rate_bps,
        delay,
        flow_control,
        buffer: ONE_PACKET.with_defaults(rate_bps, delay, longest_frame_bytes(1500)),
        to_switch: true,
        watchdog: None,
        pause_limit: None,
        broadcast_limit: None,
        jitter: 0,
        faults: Faults::NONE,
    };
    let ends: Vec<(u32, u32)> = (1..=HOSTS).map(|port| (0, port)).collect();
    let channels = number_channels(&[], &ends).unwrap().into_iter().map(|channel| {
        let to_switch = matches!(channel.to, Node::Switch(_));
        (ChannelConfig { to_switch, ..config }, channel.from, channel.to, channel.back)
    });
    Fabric::new(1, HOSTS as usize, channels.collect()).unwrap()
}

fn simulation(
    flow_control: FlowControl,
    messages: &[MessageClass],
    arrivals: Arrivals,
) -> Result<Simulation, Error> {
    let fabric = star(flow_control);
    let tables = Tables::without_routes(&fabric);
    let pairs = (0..HOSTS).flat_map(|from| (0..HOSTS).map(move |to| (from, to)));
    let flows = pairs
        .filter(|(from, to)| from != to)
        .map(|(from, to)| Flow { from, to: Target::Host(to) })
        .collect();
    let traffic = Traffic::Flows { flows, arrivals, message_bytes: 1500 };
    let settings = Settings {
        seed: 1,
        warm_up: 0,
        end: 4000 * MICROSECOND,
        packet_bytes: 1500,
        forwarding: Forwarding::StoreAndForward,
        link_changes: Vec::new(),
    };
    let hosts = HostSettings { messages: messages.to_vec(), ..HostSettings::default() };
    Simulation::with_hosts(fabric, tables, traffic, settings, &hosts)
}

fn run(flow_control: FlowControl, messages: &[MessageClass]) -> Report {
    let mut simulation = simulation(flow_control, messages, OVERLOAD).unwrap();
    while simulation.run(10_000) {}
    let report = simulation.report();
    assert!(report.flows.iter().all(|flow| flow.lost == 0));
    report
}

#[test]
fn requests_that_wait_for_replies_freeze_a_switch() {
    for flow_control in [FlowControl::Pause, FlowControl::Pfc] {
        let deadlock = run(flow_control, &[REQUEST, REPLY]).deadlock.unwrap();
        // From a host to the switch, and from there to a host.
        assert!(deadlock.cycle.len() >= 4, "{:?}", deadlock.cycle);
        let of_hosts = deadlock.cycle.iter().filter(|target| target.channel.0 >= HOSTS).count();
        assert_eq!(2 * of_hosts, deadlock.cycle.len());
    }
}

#[test]
fn a_reserve_for_all_that_is_outstanding_prevents_it() {
    let bounded = MessageClass { outstanding: Some(3), reserve: 12, ..REQUEST };
    let report = run(FlowControl::Pause, &[bounded, REPLY]);
    assert!(report.deadlock.is_none());
    let taken: u64 = report.flows.iter().map(|flow| flow.packets).sum();
    assert!(report.answered > 1000);
    assert!(taken - report.answered <= 3 * u64::from(HOSTS * (HOSTS - 1)));
}

#[test]
fn a_reserve_without_a_bound_is_full_in_the_end() {
    let reserved = MessageClass { reserve: 2, ..REQUEST };
    let report = run(FlowControl::Pause, &[reserved, REPLY]);
    assert!(report.deadlock.is_some());
    assert!(report.answered > 0);
}

#[test]
fn replies_on_a_priority_of_their_own_prevent_it_where_priorities_pause_apart() {
    let apart = MessageClass { priority: 1, ..REPLY };
    assert!(run(FlowControl::Pfc, &[REQUEST, apart]).deadlock.is_none());
    assert!(run(FlowControl::Pause, &[REQUEST, apart]).deadlock.is_some());
}

#[test]
fn transactions_of_three_messages_are_bounded_too() {
    let bounded = MessageClass { outstanding: Some(2), reserve: 8, ..REQUEST };
    let reply = MessageClass { sends: Some(2), reserve: 8, ..REPLY };
    let report = run(FlowControl::Pause, &[bounded, reply, REPLY]);
    assert!(report.deadlock.is_none());
    assert!(report.answered > 1000);
}

#[test]
fn a_seed_gives_the_same_result() {
    let [first, second] = [0; 2].map(|_| format!("{:?}", run(FlowControl::Pfc, &[REQUEST, REPLY])));
    assert_eq!(first, second);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let error = |flow_control, messages: &[MessageClass], arrivals| {
        simulation(flow_control, messages, arrivals).map(|_| ()).unwrap_err().to_string()
    };
    let saturate = Arrivals::Saturate;
    for (text, expected) in [
        (error(FlowControl::Off, &[REQUEST, REPLY], saturate), "links to hosts do not pause"),
        (error(FlowControl::Credits, &[REQUEST, REPLY], saturate), "not with credits"),
        (error(FlowControl::Pause, &[REQUEST], saturate), "one that does not exist"),
        (
            error(FlowControl::Pause, &[MessageClass { sends: Some(0), ..REQUEST }], saturate),
            "no class is sent for itself",
        ),
        (
            error(FlowControl::Pfc, &[REQUEST, MessageClass { priority: 8, ..REPLY }], saturate),
            "priorities are below 8",
        ),
        (
            error(FlowControl::Pause, &[REQUEST, REPLY], Arrivals::Acknowledged { count: 1 }),
            "acknowledged messages",
        ),
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let mut one = simulation(FlowControl::Pause, &[REQUEST, REPLY], saturate).unwrap();
    assert_eq!(one.use_cores(2), Err("end points, whose transactions both hosts count"));
}
