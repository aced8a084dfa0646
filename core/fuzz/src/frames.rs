//! Frames of any content, to an endpoint and to the link emulator.
//!
//! The peers of the endpoint return its challenges, as processes that attack it would.

use emulator::engine::Engine;
use knotless_endpoint::address::{Address, Mac};
use knotless_endpoint::config::{Config, Time, MILLISECOND};
use knotless_endpoint::node::Node;
use knotless_endpoint::wire::{self, Body, Header};

use crate::emulated::{engine, tick, TICK};
use crate::steps::Steps;

const OWN: Address = Address { mac: Mac([2, 0, 0, 0, 0, 1]), port: 7 };
const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];
/// Deadlines until an endpoint that hears nothing more is at rest.
const MAX_DEADLINES: usize = 10_000;

pub fn run(data: &[u8]) {
    let mut victim = Victim::new();
    let mut engine = engine();
    let mut ticks = 0;
    for (action, bytes) in Steps(data) {
        let of = action >> 2;
        match action & 3 {
            0 => inject(&mut engine, of, bytes),
            1 => victim.take(bytes),
            2 => victim.take(&sealed(bytes, of)),
            _ => {
                victim.pass(Time::from(of) * Time::from(of) * 20 * MILLISECOND);
                ticks += 1 + u64::from(of);
                tick(&mut engine, ticks * TICK);
            }
        }
    }
    victim.rest();
}

fn inject(engine: &mut Engine, end: u8, frame: &[u8]) {
    let ends = engine.state().fabric.ends.len();
    engine.receive(usize::from(end) % ends, frame.to_vec());
}

/// A frame to the endpoint, whose type is the second nibble, with a CRC that is right.
fn sealed(bytes: &[u8], from: u8) -> Vec<u8> {
    let mut frame = vec![0; 14];
    frame[..6].copy_from_slice(&OWN.mac.0);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 1, from % 8]);
    frame[12..].copy_from_slice(&ETHER_TYPE);
    let body_bytes = match bytes.first().map(|first| first & 15) {
        Some(1) => 12,
        Some(2) => 44,
        Some(3) => 24,
        Some(5 | 6) => 16,
        _ => 8,
    };
    let front = bytes.get(..16 + body_bytes).unwrap_or_default();
    frame.extend_from_slice(front);
    let payload = bytes.get(front.len()..).unwrap_or_default();
    if let Some([version_type, _, to_port, from_port, high, low]) =
        frame.get_mut(14..).and_then(|front| front.first_chunk_mut())
    {
        (*version_type, *to_port, *from_port) = (0x20 | *version_type & 15, OWN.port, from % 3);
        [*high, *low] = (payload.len() as u16).to_be_bytes();
    }
    let crc = {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&frame);
        hasher.update(payload);
        hasher.finalize()
    };
    frame.extend_from_slice(&crc.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

struct Victim {
    node: Node,
    now: Time,
}

impl Victim {
    fn new() -> Victim {
        let config = Config {
            longest_message_bytes: 1 << 16,
            inbox_bytes: 1 << 18,
            receive_buffers: 8,
            max_peers: 4,
            give_up: 100 * MILLISECOND,
            ..Config::default()
        };
        let mut node = Node::new(config, OWN, 1).expect("the settings are possible");
        let peer = Address { mac: Mac([2, 0, 0, 0, 1, 0]), port: 0 };
        node.isend(peer, 3, b"a message to a peer").expect("there is room");
        let mut victim = Victim { node, now: 0 };
        victim.answer();
        victim
    }

    fn take(&mut self, frame: &[u8]) {
        self.node.take_frame(self.now, frame);
        self.answer();
    }

    /// Return the challenges of the endpoint; its other frames are lost.
    fn answer(&mut self) {
        let mut frame = Vec::new();
        while self.node.messenger.transmit(self.now, &mut frame) {
            let (header, _) = wire::read(&frame).expect("what is written can be read");
            let Header { to, from, body, .. } = header;
            if let Body::Challenge { session, cookie } = body {
                let header = Header {
                    to: from,
                    from: to,
                    session,
                    body: Body::Confirmation { cookie, oldest: 0 },
                };
                wire::write(&mut frame, &header, &[]);
                self.node.take_frame(self.now, &frame);
            }
        }
    }

    fn pass(&mut self, time: Time) {
        self.now += time;
        self.node.messenger.settle();
        if self.node.deadline().is_some_and(|at| at <= self.now) {
            self.node.expire(self.now);
        }
        if time.is_multiple_of(3) {
            while self.node.messenger.receive().is_some() {}
        }
        self.answer();
    }

    /// Nothing more arrives: every wait must end.
    fn rest(&mut self) {
        for _ in 0..MAX_DEADLINES {
            let Some(deadline) = self.node.deadline() else {
                assert_eq!(self.node.messenger.outstanding(), 0);
                return;
            };
            self.now = self.now.max(deadline);
            self.node.expire(self.now);
            self.answer();
        }
        panic!("the endpoint waits without end");
    }
}
