//! Lines of the control socket: each has one answer of one line, and the emulator goes on.

use emulator::control::Control;
use serde_json::Value;

use crate::emulated::{config, engine, tick, TICK};

/// Lines of one input; further ones are ignored.
const MAX_LINES: usize = 32;

pub fn run(data: &[u8]) {
    let mut engine = engine();
    let mut control = Control::new(&config(), 0);
    let mut real = 0;
    for line in data.split(|byte| *byte == b'\n').take(MAX_LINES) {
        if captures(line) {
            continue;
        }
        let answer = control.answer(line, engine.now(), &mut engine);
        let parsed: Value = serde_json::from_str(&answer).expect("an answer is JSON");
        assert!(parsed["ok"].is_boolean() && !answer.contains('\n'), "{answer}");
        engine.receive(line.len() % 8, vec![line.len() as u8; 100]);
        real += TICK;
        tick(&mut engine, real);
    }
}

/// Whether a line asks for a capture, which would create any file.
fn captures(line: &[u8]) -> bool {
    let asked = serde_json::from_slice::<Value>(line);
    asked.is_ok_and(|request| request["do"] == "capture")
}
