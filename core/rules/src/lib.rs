//! Follows frames through the OpenFlow 1.3 rules of a whole fabric, for every pair of hosts.
//!
//! What a switch does with a frame is worked out from its rules once for all frames that no rule
//! can tell apart. What is out of the ordinary (a rule that changes addresses, a frame that
//! is lost, doubled or goes round) is only named: the Python package `routing` follows those
//! frames again, one by one, and tells what becomes of them.

mod classes;
pub mod fabric;
pub mod switch;
mod table;
pub mod walk;
