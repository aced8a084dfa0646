//! Packet I/O shared by the link emulator and the endpoints of messages.
//!
//! | module | contents |
//! |---|---|
//! | [`ethernet`] | MAC addresses and the constants of Ethernet frames |
//! | [`interface`] | index, MTU and address of a network interface |
//! | [`socket`] | packet sockets: bind, filter, send, wait |
//! | [`ring`] | the memory that a packet socket receives into |
//! | [`credit`] | how many bytes a host's programs may send to an emulated interface |

pub mod credit;
pub mod ethernet;
mod filter;
pub mod interface;
pub mod ring;
pub mod socket;
