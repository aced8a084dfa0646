//! The link emulator of Knotless: everything between the ports of Open vSwitch.
//!
//! [`engine`] is the emulator without sockets and clocks; [`daemon`] connects it to packet sockets,
//! NFQUEUEs and the control socket. See docs/emulation.md for how it works and why.

pub mod broadcast_report;
pub mod capture;
pub mod clock;
pub mod config;
pub mod congestion;
pub mod control;
pub mod credit;
pub mod daemon;
pub mod detector;
pub mod engine;
pub mod error;
pub mod event_queue;
pub mod fabric;
pub mod frame;
mod holds;
pub mod host_rings;
mod line_report;
pub mod log;
mod loop_report;
pub mod loops;
pub mod nfqueue;
pub mod nic;
mod observation;
pub mod patience;
pub mod pause_history;
pub mod pause_report;
mod receive;
pub mod report;
pub mod server;
pub mod sockets;
pub mod state;
pub mod sys;
pub mod tagging;
pub mod tcp_timers;
pub mod trailer;
pub mod transit;
