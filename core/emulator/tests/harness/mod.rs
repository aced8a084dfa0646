//! A test bench for the engine. A table stands in for Open vSwitch.
#![allow(dead_code)] // each test file uses its part

use emulator::config::Config;
use emulator::control::Control;
use emulator::engine::{Engine, Hold};
use emulator::fabric::{Fabric, Owner};
use serde_json::{json, Value};
use switch_model::{Time, MICROSECOND};

/// Real time between two ticks of the daemon.
pub const TICK: Time = 200 * MICROSECOND;
/// A millisecond.
pub const MS: Time = 1000 * MICROSECOND;

/// A switch with hosts h1 and h2, then `s1:3-s2:2` to a switch with host h3.
pub fn configuration(flow_control: &str) -> Value {
    let host = |name: &str, switch: &str, port: u32| {
        json!({
            "name": name, "rate_mbps": 10, "delay_us": 500, "flow_control": flow_control,
            "a": {"host": name, "interface": format!("a{name}")},
            "b": {"switch": switch, "port": port, "interface": format!("b{name}")},
        })
    };
    json!({
        "namespace": "/nowhere",
        // The addresses of h1 and h3 in frames of the bench have the bit of groups.
        "declared_groups": ["01:00:00:00:00:00", "03:00:00:00:00:00"],
        "links": [
            host("h1", "s1", 1), host("h2", "s1", 2), host("h3", "s2", 1),
            {
                "name": "s1:3-s2:2", "rate_mbps": 10, "delay_us": 500,
                "flow_control": flow_control,
                "a": {"switch": "s1", "port": 3, "interface": "ka"},
                "b": {"switch": "s2", "port": 2, "interface": "kb"},
            },
        ],
    })
}

/// The emulator, real time, and the switches.
pub struct Bench {
    pub engine: Engine,
    pub control: Control,
    /// Real time.
    pub real: Time,
    /// Frames inside a switch: at which real time and by which end they leave.
    pub inside: Vec<(Time, usize, Vec<u8>)>,
    /// Delivered frames, with the virtual time at which the engine had them sent.
    pub delivered: Vec<(Time, String, Vec<u8>)>,
    /// Frames that a switch has dropped.
    pub taken: Vec<Vec<u8>>,
    /// How long a frame stays in a switch, in real time.
    pub switch_time: Time,
    /// Whether it is known that a switch without frames has dropped what it did not return.
    pub probed: bool,
    pub held: Option<Hold>,
    /// What switches do instead of what [`Bench::carry`] says.
    pub rules: Option<Rules>,
}

/// From the interface by which a frame enters a switch and its bytes to those by which it leaves,
/// each with how much longer than usual it takes.
pub type Rules = Box<dyn FnMut(&str, &[u8]) -> Vec<(Time, String, Vec<u8>)>>;

impl Bench {
    pub fn new(flow_control: &str) -> Bench {
        Bench::of(&configuration(flow_control))
    }

    pub fn of(configuration: &Value) -> Bench {
        let config = Config::parse(&configuration.to_string()).unwrap();
        let fabric = Fabric::new(&config).unwrap();
        Bench {
            engine: Engine::new(fabric, 1, TICK, 500 * MS, config.slow_down),
            control: Control::new(&config, 0),
            real: 0,
            inside: Vec::new(),
            delivered: Vec::new(),
            taken: Vec::new(),
            switch_time: 100 * MICROSECOND,
            probed: true,
            held: None,
            rules: None,
        }
    }

    pub fn end(&self, interface: &str) -> usize {
        let ends = &self.engine.state().fabric.ends;
        ends.iter().position(|end| end.interface == interface).unwrap()
    }

    pub fn send(&mut self, interface: &str, frame: &[u8]) {
        let end = self.end(interface);
        self.engine.receive(end, frame.to_vec());
    }

    /// Let real time pass.
    pub fn run_for(&mut self, time: Time) {
        let end = self.real + time;
        while self.real < end {
            self.step(TICK);
        }
    }

    /// Let real time pass until virtual time is `time` later.
    pub fn run_virtual(&mut self, time: Time) {
        let end = self.engine.now() + time;
        while self.engine.now() < end {
            self.step(TICK.min(end - self.engine.now()));
        }
    }

    /// Wake up `time` later, in real time.
    pub fn step(&mut self, time: Time) {
        self.real += time;
        let idle = self.engine.is_idle();
        self.engine.elapse(self.real, self.held, idle);
        let real = self.real;
        let (out, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.inside).into_iter().partition(|frame| frame.0 <= real);
        self.inside = rest;
        for (_, end, frame) in out {
            self.engine.receive(end, frame);
        }
        self.held = self.engine.advance();
        self.carry_all();
        if self.probed && matches!(self.held, Some(Hold::Switch(_))) && self.inside.is_empty() {
            let handed = self.engine.in_switches();
            self.engine.conclude_all(&handed, true);
        }
    }

    /// Give frames to switches and hosts.
    pub fn carry_all(&mut self) {
        for sent in self.engine.take_outgoing() {
            self.carry(sent.end, sent.frame);
        }
    }

    /// Forward a frame. The first byte of the destination is the host's number; 0xff is all hosts,
    /// 9 none. A link-local one is for the switch.
    pub fn carry(&mut self, end: usize, frame: Vec<u8>) {
        let fabric = &self.engine.state().fabric;
        let came_in = &fabric.ends[end].interface;
        if let (Owner::Switch { .. }, Some(rules)) = (&fabric.ends[end].owner, &mut self.rules) {
            let leaving = rules(came_in, &frame);
            for (later, interface, frame) in leaving {
                let at = self.real + self.switch_time + later;
                self.inside.push((at, self.end(&interface), frame));
            }
            return;
        }
        let outs: &[&str] = match (&fabric.ends[end].owner, frame[0], came_in.as_str()) {
            (Owner::Host { name, .. }, ..) => {
                self.delivered.push((self.engine.now(), name.clone(), frame));
                return;
            }
            _ if frame[..2] == [0x01, 0x80] => &[],
            (_, 1, "kb") | (_, 3, "bh1" | "bh2") => &[if frame[0] == 3 { "ka" } else { "bh1" }],
            (_, 3, _) => &["bh3"],
            (_, 2, "bh1") => &["bh2"],
            (_, 0xff, "bh1") => &["bh2", "ka"],
            (_, 0xff, "bh2") => &["bh1", "ka"],
            (_, 0xff, "kb") => &["bh3"],
            _ => &[],
        };
        if outs.is_empty() {
            self.taken.push(frame.clone());
        }
        let at = self.real + self.switch_time;
        let outs: Vec<usize> = outs.iter().map(|interface| self.end(interface)).collect();
        for out in outs {
            self.inside.push((at, out, frame.clone()));
        }
    }

    pub fn ask(&mut self, request: Value) -> Value {
        let line = request.to_string();
        let now = self.engine.now();
        let answer = self.control.answer(line.as_bytes(), now, &mut self.engine);
        serde_json::from_str(&answer).unwrap()
    }

    pub fn drops(&mut self, cause: &str) -> u64 {
        let counters = self.ask(json!({"do": "counters"}));
        let channels = counters["channels"].as_array().unwrap().clone();
        channels.iter().map(|channel| channel["drops"][cause].as_u64().unwrap()).sum()
    }

    pub fn channel(&mut self, name: &str) -> Value {
        let counters = self.ask(json!({"do": "counters"}));
        let mut channels = counters["channels"].as_array().unwrap().iter();
        channels.find(|channel| channel["channel"] == name).unwrap().clone()
    }
}

/// A frame to a host by its number.
pub fn frame(to: u8, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    frame[0] = to;
    frame[6] = 2;
    frame[12..14].copy_from_slice(&[8, 0]);
    frame
}
