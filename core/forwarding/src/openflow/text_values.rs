//! Values in text of ovs-ofctl: fields that are matched, ports, numbers and addresses.

use std::fmt;
use std::net::Ipv4Addr;

use rustc_hash::FxHashMap;

use super::rule::{Field, Matched, ALL, CONTROLLER, FLOOD, IN_PORT, NORMAL, VLAN_PRESENT};

/// What is wrong with a text, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError(String);

impl TextError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The same, with the line in which it is.
    pub(super) fn within(self, kind: &str, line: usize) -> Self {
        Self(format!("{kind} {line}: {}", self.0))
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TextError {}

/// A text of others in quotes, at most its first `most` characters.
pub(super) fn quoted(text: &str, most: usize) -> String {
    let first: String = text.chars().take(most).collect();
    let quote = if first.contains('\'') && !first.contains('"') { '"' } else { '\'' };
    let escaped = first.chars().map(|c| match c {
        '\'' | '"' if c != quote => c.to_string(),
        c => c.escape_debug().to_string(),
    });
    format!("{quote}{}{quote}", escaped.collect::<String>())
}

/// The numbers of ports that text may name.
#[derive(Debug)]
pub struct Ports(FxHashMap<String, u32>);

impl Default for Ports {
    /// Those that flood: our rules use neither.
    fn default() -> Self {
        Self(
            [("FLOOD", FLOOD), ("ALL", ALL)]
                .map(|(name, port)| (name.into(), port))
                .into_iter()
                .collect(),
        )
    }
}

impl Ports {
    /// The ports of a switch by their names, as `ovs-ofctl --names` writes them, and NORMAL.
    pub fn named(ports: impl IntoIterator<Item = (String, u32)>) -> Self {
        let mut all: FxHashMap<String, u32> = ports.into_iter().collect();
        all.extend(Self::default().0);
        all.insert("NORMAL".into(), NORMAL);
        Self(all)
    }

    /// Whether a text is a number or the name of a port.
    pub(super) fn has(&self, text: &str) -> bool {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
            || self.0.contains_key(text.trim_matches('"'))
    }

    /// The port that is given by number or by name, in quotes or without.
    pub(super) fn port(&self, text: &str) -> Result<u32, TextError> {
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(number(text, u32::MAX.into())? as u32);
        }
        let name = text.trim_matches('"');
        match (text, self.0.get(name)) {
            ("IN_PORT", _) => Ok(IN_PORT),
            ("CONTROLLER", _) => Ok(CONTROLLER),
            (_, Some(&port)) => Ok(port),
            _ if name == "LOCAL" => {
                Err(TextError::new("port LOCAL, the switch itself, is not supported"))
            }
            _ => {
                let needed = "ovs-ofctl dump-ports-desc of the switch is needed";
                Err(TextError::new(format!("port {} has no number: {needed}", quoted(name, 40))))
            }
        }
    }
}

/// The field that ovs-ofctl calls so, by its old names, its new ones or ours.
pub(super) fn field_of_ovs(name: &str) -> Option<Field> {
    Some(match name {
        "dl_dst" => Field::EthDst,
        "dl_src" => Field::EthSrc,
        "dl_type" => Field::EthType,
        "dl_vlan_pcp" => Field::VlanPcp,
        "nw_src" | "ip_src" => Field::Ipv4Src,
        "nw_dst" | "ip_dst" => Field::Ipv4Dst,
        "nw_proto" => Field::IpProto,
        _ => return Field::named(name),
    })
}

/// Counters, timeouts and flags that dumps have beside the match.
fn is_ignored(name: &str, value: &str) -> bool {
    match name {
        "duration" | "n_packets" | "n_bytes" | "idle_age" | "hard_age" | "idle_timeout"
        | "hard_timeout" | "importance" => {
            let digits = value.strip_suffix('s').unwrap_or(value);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        }
        "send_flow_rem" | "reset_counts" | "no_packet_counts" | "no_byte_counts"
        | "check_overlap" => value.is_empty(),
        _ => false,
    }
}

/// Calls `add` with each field that a part of a match names: none for counters and flags.
pub(super) fn fields(
    name: &str,
    value: &str,
    ports: &Ports,
    mut add: impl FnMut(Matched) -> Result<(), TextError>,
) -> Result<(), TextError> {
    match name {
        "ip" if value.is_empty() => add((Field::EthType, 0x0800, None)),
        "arp" if value.is_empty() => add((Field::EthType, 0x0806, None)),
        "ipv6" if value.is_empty() => add((Field::EthType, 0x86DD, None)),
        "dl_vlan" => {
            let vlan = number(value, 0xFFFF)?;
            let vid = if vlan == 0xFFFF { 0 } else { VLAN_PRESENT | vlan & 0xFFF };
            add((Field::VlanVid, vid, None))
        }
        "vlan_tci" => tci_fields(value, add),
        "in_port" if !value.contains('/') => add((Field::InPort, ports.port(value)?.into(), None)),
        _ if is_ignored(name, value) => Ok(()),
        _ => {
            let Some(field) = field_of_ovs(name) else {
                let name = quoted(name, 60);
                return Err(TextError::new(format!("match {name} is not supported")));
            };
            match value_and_mask(field, value)? {
                (_, Some(0)) => Ok(()),
                (value, mask) => add((field, value, mask)),
            }
        }
    }
}

/// The fields of a match of the whole tag.
fn tci_fields(
    text: &str,
    mut add: impl FnMut(Matched) -> Result<(), TextError>,
) -> Result<(), TextError> {
    let (value, mask) = text.split_once('/').unwrap_or((text, "0xffff"));
    let (value, mask) = (number(value, 0xFFFF)?, number(mask, 0xFFFF)?);
    if mask & VLAN_PRESENT != 0 && value & VLAN_PRESENT == 0 {
        return add((Field::VlanVid, 0, None));
    }
    let value = value & mask;
    for (field, shift) in [(Field::VlanVid, 0), (Field::VlanPcp, 13)] {
        let bits = mask >> shift & field.all_bits();
        if bits != 0 {
            add((field, value >> shift & field.all_bits(), partial(field, bits)))?;
        }
    }
    Ok(())
}

/// The mask of a field; none if it has all bits.
fn partial(field: Field, mask: u64) -> Option<u64> {
    (mask != field.all_bits()).then_some(mask)
}

/// The value that an action sets; None if it sets only some bits.
pub(super) fn set_value(field: Field, text: &str) -> Result<Option<u64>, TextError> {
    let (value, mask) = value_and_mask(field, text)?;
    Ok(mask.is_none().then_some(value))
}

/// The value, masked, and its mask.
fn value_and_mask(field: Field, text: &str) -> Result<(u64, Option<u64>), TextError> {
    let Some((value, mask)) = text.split_once('/') else {
        return Ok((value_of(field, text)?, None));
    };
    let value = value_of(field, value)?;
    let is_length = !mask.is_empty() && mask.bytes().all(|byte| byte.is_ascii_digit());
    let mask = if is_address(field) && is_length {
        field.all_bits() & !(field.all_bits() >> number(mask, 32)?)
    } else {
        value_of(field, mask)?
    };
    Ok((value & mask, partial(field, mask)))
}

fn is_address(field: Field) -> bool {
    matches!(field, Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa)
}

fn value_of(field: Field, text: &str) -> Result<u64, TextError> {
    match field {
        Field::EthDst | Field::EthSrc | Field::ArpSha | Field::ArpTha => {
            mac(text).ok_or_else(|| TextError::new(format!("{} is not a MAC", quoted(text, 40))))
        }
        _ if is_address(field) => match text.parse::<Ipv4Addr>() {
            Ok(address) => Ok(u32::from(address).into()),
            Err(_) => Err(TextError::new(format!("{} is not an IPv4 address", quoted(text, 40)))),
        },
        _ => number(text, field.all_bits()),
    }
}

/// A number up to `most`, in decimal or hexadecimal digits.
pub(super) fn number(text: &str, most: u64) -> Result<u64, TextError> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix, longest) = hexadecimal.map_or((text, 10, 20), |digits| (digits, 16, 16));
    let is_number = (1..=longest).contains(&digits.len())
        && digits.bytes().all(|byte| char::from(byte).is_digit(radix));
    if !is_number {
        return Err(TextError::new(format!("{} is not a number", quoted(text, 40))));
    }
    match u64::from_str_radix(digits, radix) {
        Ok(value) if value <= most => Ok(value),
        _ => Err(TextError::new(format!("{text} is above the maximum, {most:#x}"))),
    }
}

fn mac(text: &str) -> Option<u64> {
    let mut bytes = text.split(':');
    let mut value = 0;
    for _ in 0..6 {
        let byte = bytes.next().filter(|byte| byte.len() == 2)?;
        if !byte.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        value = value << 8 | u64::from_str_radix(byte, 16).ok()?;
    }
    bytes.next().is_none().then_some(value)
}
