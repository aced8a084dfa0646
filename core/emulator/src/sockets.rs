//! The daemon's sockets inside the namespaces, and the frames and credit that pass through them.

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};

use packet_io::credit::CreditIssuer;
use packet_io::ethernet::MESSAGE_ETHER_TYPE;
use packet_io::interface::Interface;
use packet_io::ring::{slot_bytes, Received, Ring};
use packet_io::socket::{Destination, PacketSocket, ALL_ETHER_TYPES};

use crate::config::Config;
use crate::credit::Credit;
use crate::engine::{Engine, Outgoing};
use crate::error::{environment, Error};
use crate::fabric::{EndId, Fabric, Owner};
use crate::frame::{restore_tag, Frame, TAG_BYTES};
use crate::host_rings::HostRing;
use crate::log::Log;
use crate::sys::netns;
use crate::sys::nfqueue::Nfqueue;
use crate::trailer::TRAILER_BYTES;

const RING_BYTES: usize = 32 << 20;
const SEND_BUFFER_BYTES: usize = 16 << 20;
/// MTU of a host's frames, and what tag and trailer add to them.
const HOST_MTU: usize = 1500;
const ADDED_BYTES: usize = TAG_BYTES + TRAILER_BYTES;
/// Room in a slot beyond an interface's MTU, for the Ethernet header and a tag.
const SPARE_BYTES: usize = 64;

/// All sockets and what is known of the interfaces.
pub struct Sockets {
    packets: PacketSockets,
    /// By interface index.
    ends: Vec<Option<EndId>>,
    nfqueues: Vec<(EndId, Nfqueue)>,
    credits: Vec<(EndId, CreditIssuer, Credit)>,
    /// By end: its index in `credits`.
    credit_of: Vec<Option<usize>>,
}

/// The packet sockets for all of the daemon's interfaces.
struct PacketSockets {
    /// What switches return.
    receiver: PacketSocket,
    ring: Ring,
    hosts: Vec<HostRing>,
    sender: PacketSocket,
    /// By end.
    destinations: Vec<Destination>,
    /// By end.
    indexes: Vec<i32>,
}

impl Sockets {
    /// Open all of them.
    ///
    /// # Errors
    /// One line that names the namespace, interface or NFQUEUE.
    pub fn open(config: &Config, fabric: &Fabric) -> Result<Sockets, Error> {
        let nfqueues = open_nfqueues(fabric)?;
        let credits = open_credits(config)?;
        let mut credit_of = vec![None; fabric.ends.len()];
        for (index, (end, ..)) in credits.iter().enumerate() {
            credit_of[*end] = Some(index);
        }
        let opened = netns::inside(&config.namespace, || PacketSockets::open(fabric));
        let packets = environment(opened, || "namespace".into())??;
        let largest = packets.indexes.iter().copied().max().unwrap_or(0) as usize;
        let mut ends = vec![None; largest + 1];
        for (end, &index) in packets.indexes.iter().enumerate() {
            ends[index as usize] = Some(end);
        }
        Ok(Sockets { packets, ends, nfqueues, credits, credit_of })
    }

    /// Readable when a frame has arrived.
    pub fn receivers(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let hosts = self.packets.hosts.iter().map(|host| host.socket().as_fd());
        std::iter::once(self.packets.receiver.as_fd()).chain(hosts)
    }

    /// The sockets of all NFQUEUEs.
    pub fn nfqueues(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.nfqueues.iter().map(|(_, queue)| queue.as_fd())
    }

    /// Frames of switches that the kernel lost for want of room in the ring since the last call.
    /// Those of hosts did not fit into the queues of their interfaces, and are counted there, as are
    /// packets that an NFQUEUE did not hold.
    pub fn take_lost(&mut self, engine: &mut Engine) -> u64 {
        for (end, queue) in &mut self.nfqueues {
            if let Some(nic) = engine.nic(*end) {
                nic.count_dropped(queue.take_dropped());
            }
        }
        for host in &self.packets.hosts {
            engine.count_unqueued(host.end, host.socket().take_lost());
        }
        self.packets.receiver.take_lost()
    }

    /// Read what the NFQUEUE of this index announces.
    pub fn receive_held(&mut self, index: usize, engine: &mut Engine) {
        let (end, queue) = &mut self.nfqueues[index];
        if let Some(nic) = engine.nic(*end) {
            queue.receive(nic.held());
        }
    }

    /// Give all frames in the rings to the engine, but at most as many as fit in them once.
    pub fn receive(&mut self, engine: &mut Engine) {
        let own = engine.state().clock.own();
        let (ends, credits, credit_of) = (&self.ends, &mut self.credits, &self.credit_of);
        let mut take = |engine: &mut Engine, end: EndId, received: Received<'_>| {
            if received.truncated {
                return engine.count_oversized();
            }
            if let Some(index) = credit_of[end] {
                let frame = Frame::new_checked(received.bytes);
                if frame.is_some_and(|frame| frame.ether_type() == MESSAGE_ETHER_TYPE) {
                    credits[index].2.arrived(own, received.bytes.len());
                }
            }
            let mut frame = engine.buffer();
            restore_tag(&mut frame, received.bytes, received.tag);
            engine.receive(end, frame);
        };
        for host in &mut self.packets.hosts {
            let end = host.end;
            host.receive(|received| take(engine, end, received));
        }
        for _ in 0..self.packets.ring.slots() {
            let received = self.packets.ring.receive(|received: Received<'_>| {
                let index = usize::try_from(received.interface).ok();
                let end = index.and_then(|index| ends.get(index).copied().flatten());
                if let Some(end) = end {
                    take(engine, end, received);
                }
            });
            if received.is_none() {
                return;
            }
        }
    }

    /// Tell hosts how much more their message programs may send.
    pub fn grant_credit(&mut self, engine: &Engine) {
        let own = engine.state().clock.own();
        for (end, issuer, credit) in &mut self.credits {
            issuer.grant(credit.grant(own, issuer.claimed(), engine.nic_room(*end)));
        }
    }

    /// Release the packets in NFQUEUEs that their NICs have room for.
    pub fn release_held(&mut self, engine: &mut Engine, log: &mut Log) {
        for (end, queue) in &self.nfqueues {
            release(*end, queue, engine, log);
        }
    }

    /// The line of the host at `end` is idle: read its NFQUEUE, and release what its NIC has room
    /// for.
    pub fn refill(&mut self, end: EndId, engine: &mut Engine, log: &mut Log) {
        let found = self.nfqueues.iter_mut().find(|(other, _)| *other == end);
        let Some(((end, queue), nic)) = found.zip(engine.nic(end)) else { return };
        queue.receive(nic.held());
        release(*end, queue, engine, log);
    }

    /// Send all frames that the engine has for switches and hosts; returns how many were lost.
    pub fn send(&mut self, engine: &mut Engine) -> u64 {
        let outgoing = engine.take_outgoing();
        let lost = self.packets.send(&outgoing);
        for out in outgoing {
            engine.recycle(out.frame);
        }
        lost
    }
}

fn release(end: EndId, queue: &Nfqueue, engine: &mut Engine, log: &mut Log) {
    let Some(id) = engine.release(end) else { return };
    if let Err(error) = queue.accept_up_to(id) {
        let interface = &engine.state().fabric.ends[end].interface;
        log.line(&format!("verdict of {interface}: {error}"));
    }
}

impl PacketSockets {
    /// Runs inside the namespace of the interfaces.
    fn open(fabric: &Fabric) -> Result<PacketSockets, Error> {
        let mut indexes = Vec::with_capacity(fabric.ends.len());
        let mut largest = HOST_MTU + ADDED_BYTES;
        for end in &fabric.ends {
            let name = || format!("interface {} of {}", end.interface, fabric.describe(&end.owner));
            let interface = environment(Interface::find(&end.interface), name)?;
            let mtu = interface.mtu_bytes;
            if matches!(end.owner, Owner::Switch { .. }) && mtu < HOST_MTU + ADDED_BYTES {
                let needed = HOST_MTU + ADDED_BYTES;
                return Err(Error::Environment(format!(
                    "{}: its MTU is {mtu}, but tag and trailer need {needed}",
                    name()
                )));
            }
            largest = largest.max(mtu);
            indexes.push(interface.index);
        }
        let sender = environment(open_sender(), || "packet socket".into())?;
        let frame_bytes = largest + SPARE_BYTES;
        let is_host = |end: usize| matches!(fabric.ends[end].owner, Owner::Host { .. });
        let (hosts, switches): (Vec<EndId>, Vec<EndId>) =
            (0..indexes.len()).partition(|&end| is_host(end));
        let of_switches: Vec<i32> = switches.iter().map(|&end| indexes[end]).collect();
        let (receiver, ring) =
            environment(open_receiver(frame_bytes, &of_switches), || "packet ring".into())?;
        let open = |&end: &EndId| {
            let name = || format!("packet ring of {}", fabric.ends[end].interface);
            environment(HostRing::open(end, indexes[end], frame_bytes, hosts.len()), name)
        };
        let hosts = hosts.iter().map(open).collect::<Result<Vec<_>, Error>>()?;
        let destinations = indexes.iter().map(|&index| Destination::interface(index)).collect();
        Ok(PacketSockets { receiver, ring, hosts, sender, destinations, indexes })
    }

    /// Send each frame by its interface; returns how many could not be sent.
    fn send(&self, outgoing: &[Outgoing]) -> u64 {
        let mut lost = 0;
        let mut rest = outgoing;
        while !rest.is_empty() {
            let frames =
                rest.iter().map(|out| (Some(&self.destinations[out.end]), out.frame.as_slice()));
            let done = match self.sender.send_batch(frames) {
                Ok(sent) => sent,
                Err(error) if error.kind() == ErrorKind::Interrupted => 0,
                // The first frame cannot be sent (interface down, no room): continue behind it.
                Err(_) => {
                    lost += 1;
                    1
                }
            };
            rest = &rest[done..];
        }
        lost
    }
}

fn open_sender() -> std::io::Result<PacketSocket> {
    let socket = PacketSocket::open()?;
    socket.bypass_queueing()?;
    socket.force_send_buffer(SEND_BUFFER_BYTES)?;
    Ok(socket)
}

/// A socket that receives all frames of these interfaces, and its ring.
fn open_receiver(frame_bytes: usize, from: &[i32]) -> std::io::Result<(PacketSocket, Ring)> {
    let socket = PacketSocket::open()?;
    socket.ignore_outgoing()?;
    socket.filter_by_interface(from)?;
    let ring = Ring::new(&socket, frame_bytes, RING_BYTES / slot_bytes(frame_bytes))?;
    socket.bind(0, ALL_ETHER_TYPES)?;
    Ok((socket, ring))
}

fn open_nfqueues(fabric: &Fabric) -> Result<Vec<(EndId, Nfqueue)>, Error> {
    let mut nfqueues = Vec::new();
    for (id, end) in fabric.ends.iter().enumerate() {
        let Owner::Host { name, nfqueue: Some((path, number)) } = &end.owner else { continue };
        let opened = netns::inside(path, || Nfqueue::open(*number)).and_then(|queue| queue);
        let queue = environment(opened, || format!("host {name}: NFQUEUE {number}"))?;
        nfqueues.push((id, queue));
    }
    Ok(nfqueues)
}

/// A credit page for each host interface that the configuration names.
fn open_credits(config: &Config) -> Result<Vec<(EndId, CreditIssuer, Credit)>, Error> {
    let ends = config.links.iter().flat_map(|link| [&link.a, &link.b]).enumerate();
    let named = ends.filter_map(|(id, end)| {
        Some((id, end.host_namespace.as_ref()?, end.host_interface.as_ref()?))
    });
    named
        .map(|(id, namespace, interface)| {
            let page = environment(CreditIssuer::create(namespace, interface), || {
                format!("credit of {interface} in {}", namespace.display())
            })?;
            Ok((id, page, Credit::default()))
        })
        .collect()
}
