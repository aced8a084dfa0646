//! What carries the messages: an endpoint, or a UDP socket.

use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use knotless_endpoint::address::Address;
use knotless_endpoint::endpoint::Endpoint;
use knotless_endpoint::error::Error;
use knotless_endpoint::message::Reliability;
use knotless_endpoint::spin::Spin;
use rustix::net::{recv, RecvFlags};

use crate::LIMIT;

const UDP_PORT: u16 = 7077;

/// A way to exchange messages with the other process.
pub trait Transport {
    fn send(&mut self, data: &[u8]) -> Result<(), Error>;
    /// Receive one message; returns its length.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, Error>;
    /// Wait until everything is delivered.
    fn finish(&mut self) -> Result<(), Error>;
}

/// Messages of an endpoint.
pub struct Messages {
    pub endpoint: Endpoint,
    pub peer: Address,
    pub reliability: Reliability,
}

impl Transport for Messages {
    fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        self.endpoint.send(self.peer, data.into(), self.reliability, LIMIT).map(|_| ())
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let message = self.endpoint.receive(Some(LIMIT))?;
        let message = message.ok_or(Error::TimedOut(LIMIT.as_micros() as u64))?;
        let length = message.data.len().min(buffer.len());
        buffer[..length].copy_from_slice(&message.data[..length]);
        Ok(length)
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.endpoint.flush(LIMIT).map(|_| ())
    }
}

/// A UDP socket.
pub struct Udp {
    socket: UdpSocket,
    spin: Spin,
}

impl Udp {
    /// A socket at `own` that is connected to `peer`.
    pub fn open(own: Ipv4Addr, peer: Ipv4Addr, spin: Duration) -> Result<Udp, Error> {
        let socket = UdpSocket::bind(SocketAddrV4::new(own, UDP_PORT)).map_err(system)?;
        socket.connect(SocketAddrV4::new(peer, UDP_PORT)).map_err(system)?;
        socket.set_read_timeout(Some(LIMIT)).map_err(system)?;
        Ok(Udp { socket, spin: Spin::new(spin) })
    }
}

impl Transport for Udp {
    fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        self.socket.send(data).map(|_| ()).map_err(system)
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        // Poll and sleep as an endpoint does, so that only the interface differs.
        let received = Cell::new(None);
        let place = RefCell::new(&mut *buffer);
        let poll = || {
            let result = recv(&self.socket, &mut place.borrow_mut()[..], RecvFlags::DONTWAIT);
            received.set(result.ok().map(|(length, _)| length));
            received.get().is_some()
        };
        if !self.spin.until(Instant::now(), LIMIT, poll) {
            received.set(Some(self.socket.recv(buffer).map_err(system)?));
        }
        Ok(received.get().unwrap_or(0))
    }

    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

fn system(error: std::io::Error) -> Error {
    Error::System(format!("UDP: {error}"))
}
