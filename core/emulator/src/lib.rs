//! The link emulator of Knotless: everything between the ports of Open vSwitch.
//!
//! [`engine`] is the emulator proper, free of sockets and clocks; [`daemon`] puts it between packet
//! sockets, NFQUEUEs and the control socket. See docs/emulation.md for how it works and why.

pub mod agenda;
pub mod capture;
pub mod config;
pub mod control;
pub mod credit;
pub mod daemon;
pub mod detector;
pub mod engine;
pub mod error;
pub mod fabric;
pub mod frame;
pub mod histogram;
mod intake;
pub mod log;
pub mod nfqueue;
pub mod nic;
pub mod report;
pub mod server;
pub mod sys;
pub mod tagging;
pub mod trailer;
pub mod transit;
pub mod world;
