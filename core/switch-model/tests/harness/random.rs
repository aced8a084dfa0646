//! Random fabrics and traffic.

use proptest::prelude::*;
use switch_model::{ChannelConfig, ChannelPorts, FlowControl, SwitchSettings};

use super::{channel, Hop, Simulation, MAX_FRAME};

/// Switches joined at random, each with one host, and frames on random walks.
#[derive(Clone, Debug)]
pub struct Case {
    pub configs: Vec<ChannelConfig>,
    pub frames: Vec<(u32, Vec<Hop>)>,
    /// What switches are like inside.
    pub settings: Option<SwitchSettings>,
    pub switches: usize,
    pub ports: Vec<ChannelPorts>,
}

/// The ports that channels join: 1 is the host's, others are numbered by their channels.
pub fn ports(channels: &[(usize, usize)], switches: usize) -> Vec<ChannelPorts> {
    let leaves = |number: usize| Some((channels[number].0 as u32, number as u32 + 10));
    let between = (0..channels.len())
        .map(|number| ChannelPorts { from: leaves(number), to: leaves(number ^ 1) });
    let host = |switch: usize| Some((switch as u32, 1));
    let from = (0..switches).map(|switch| ChannelPorts { from: None, to: host(switch) });
    let to = (0..switches).map(|switch| ChannelPorts { from: host(switch), to: None });
    between.chain(from).chain(to).collect()
}

/// Ends of the channels between `switches` switches: a ring, so that all are joined, and chords.
pub fn links(switches: usize, chords: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let ring = (0..switches).map(|switch| (switch, (switch + 1) % switches));
    let chords = chords.iter().map(|(a, b)| (a % switches, b % switches));
    let joined = ring.chain(chords).filter(|(a, b)| a != b);
    joined.flat_map(|(a, b)| [(a, b), (b, a)]).collect()
}

/// `turns` picks the next channel at each switch; on every hop the priority is `turn % 3`.
fn walk(channels: &[(usize, usize)], switches: usize, from: usize, turns: &[u8]) -> Vec<Hop> {
    let mut at = from;
    let mut path = vec![((channels.len() + from) as u32, 0)];
    for turn in turns {
        let leaving: Vec<usize> =
            (0..channels.len()).filter(|&channel| channels[channel].0 == at).collect();
        let next = leaving[usize::from(*turn) % leaving.len()];
        path.push((next as u32, turn % 3));
        at = channels[next].1;
    }
    path.push(((channels.len() + switches + at) as u32, 0));
    path
}

pub fn cases(flow_controls: Vec<FlowControl>) -> impl Strategy<Value = Case> {
    let traffic = (64..=MAX_FRAME, 0usize..8, prop::collection::vec(any::<u8>(), 0..6));
    (
        2usize..6,
        prop::collection::vec((0usize..6, 0usize..6), 0..3),
        prop::sample::select(flow_controls),
        0u64..800,
        1_600u64..6_000,
        prop::collection::vec(traffic, 1..250),
    )
        .prop_map(|(switches, chords, flow_control, delay_us, xoff, traffic)| {
            let channels = links(switches, &chords);
            let all = channels.len() + 2 * switches;
            let to_switch = |index| index < channels.len() + switches;
            let configs = (0..all)
                .map(|index| channel(flow_control, to_switch(index), delay_us, xoff))
                .collect();
            let frames = traffic
                .into_iter()
                .map(|(bytes, from, turns)| {
                    (bytes, walk(&channels, switches, from % switches, &turns))
                })
                .collect();
            let ports = ports(&channels, switches);
            Case { configs, frames, settings: None, switches, ports }
        })
}

pub fn simulate(case: &Case) -> Simulation {
    let mut simulation = Simulation::new(case.configs.clone(), 1);
    if let Some(settings) = &case.settings {
        let names: Vec<String> = (0..case.switches).map(|switch| format!("s{switch}")).collect();
        simulation.model.set_switches(settings, &names, &case.ports, 1).expect("they fit");
        let model = &mut simulation.model;
        model.set_pause_frames(settings, &names, &case.ports, MAX_FRAME).expect("no credits");
    }
    for (flow, (bytes, path)) in case.frames.iter().enumerate() {
        simulation.send(flow, *bytes, path);
    }
    simulation
}
