//! The textual form of GOAL, which LogGOPSim reads: what the ranks of a program send, receive and
//! compute, and what must come before.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: calc 100 cpu 0
//!   l2: send 10b to 1 tag 7
//!   l2 requires l1
//! }
//! rank 1 {
//!   l1: recv 10b from 0 tag 7
//! }
//! ```
//!
//! Comments are `/* .. */` and `// ..`. A label is optional, and known in its rank only. Computing is
//! in nanoseconds. There is one interface, `nic 0`.
//!
//! Reference: Hoefler, Siebert, Lumsdaine: Group Operation Assembly Language: a flexible way to
//! express collective communication, 2009.

use std::collections::HashMap;

use switch_model::limits::MAX_BYTES;

use super::schedule::{Operation, RankSchedule};

/// The longest line, in bytes.
const LONGEST_LINE: usize = 1000;
/// The most operations and requirements: some gigabytes.
const MOST: usize = 50_000_000;
/// The longest time of computing in nanoseconds (11 days).
const MOST_NS: u64 = 1_000_000_000_000_000;
const PICOSECONDS_PER_NS: u64 = 1000;

type Result<T> = std::result::Result<T, String>;

/// How many messages of a sender, a receiver and a tag are sent and received.
#[derive(Debug, Default)]
struct Balance {
    sent: (u64, u64),
    received: (u64, u64),
    line: u64,
}

/// A rank whose block is read.
#[derive(Debug, Default)]
struct Block {
    rank: u32,
    operations: Vec<Operation>,
    /// By operation: its line.
    lines: Vec<u64>,
    labels: HashMap<Box<str>, u32>,
    ended: Vec<(u32, u32)>,
    started: Vec<(u32, u32)>,
    /// Requirements whose labels were not known yet: line, label, required label, of the start.
    later: Vec<(u64, Box<str>, Box<str>, bool)>,
}

/// A reader of GOAL, to which a file is given in pieces.
#[derive(Debug)]
pub struct GoalReader {
    most_ranks: u32,
    line: u64,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    in_comment: bool,
    ranks: Option<Vec<Option<RankSchedule>>>,
    block: Option<Block>,
    balances: HashMap<(u32, u32, u32), Balance>,
    size: usize,
}

impl GoalReader {
    /// A reader of programs of at most so many ranks.
    #[must_use]
    pub fn new(most_ranks: u32) -> GoalReader {
        GoalReader {
            most_ranks,
            line: 0,
            begun: Vec::new(),
            in_comment: false,
            ranks: None,
            block: None,
            balances: HashMap::new(),
            size: 0,
        }
    }

    /// Read the next piece of the file.
    ///
    /// # Errors
    /// What is wrong in a line, with its number.
    pub fn feed(&mut self, piece: &[u8]) -> Result<()> {
        let mut lines = piece.split(|&byte| byte == b'\n').peekable();
        while let Some(part) = lines.next() {
            if self.begun.len() + part.len() > LONGEST_LINE {
                return Err(format!("line {}: more than {LONGEST_LINE} bytes", self.line + 1));
            }
            self.begun.extend_from_slice(part);
            if lines.peek().is_some() {
                self.end_line()?;
            }
        }
        Ok(())
    }

    /// The end of the file: the schedule of each rank.
    ///
    /// # Errors
    /// What is wrong in a line, with its number, or what is missing.
    pub fn finish(mut self) -> Result<Vec<RankSchedule>> {
        self.end_line()?;
        if let Some(block) = self.block {
            return Err(format!("line {}: the block of rank {} has no end", self.line, block.rank));
        }
        let Some(ranks) = self.ranks else {
            return Err("line 1: must be num_ranks N".into());
        };
        let unequal = |(_, balance): &(_, &Balance)| balance.sent != balance.received;
        let first = self.balances.iter().filter(unequal).min_by_key(|(_, balance)| balance.line);
        if let Some((&(from, to, tag), balance)) = first {
            let ((sent, bytes), (received, expected)) = (balance.sent, balance.received);
            return Err(format!(
                "line {}: with tag {tag}, rank {from} sends {sent} messages of {bytes} bytes in all to \
                 rank {to}, which receives {received} of {expected}",
                balance.line
            ));
        }
        Ok(ranks.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn end_line(&mut self) -> Result<()> {
        self.line += 1;
        let bytes = std::mem::take(&mut self.begun);
        let done = match std::str::from_utf8(&bytes) {
            Ok(text) => self.read_line(text),
            Err(_) => Err("not UTF-8 text".into()),
        };
        self.begun = bytes;
        self.begun.clear();
        done.map_err(|text| format!("line {}: {text}", self.line))
    }

    fn read_line(&mut self, text: &str) -> Result<()> {
        let text = self.without_comments(text);
        let text = text.trim();
        if text.is_empty() {
            return Ok(());
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        match (&self.ranks, words.as_slice()) {
            (None, ["num_ranks", count]) => {
                let count = number(count, "number of ranks", 1, u64::from(u32::MAX))?;
                if count > u64::from(self.most_ranks) {
                    return Err(format!("{count} ranks, but {} hosts", self.most_ranks));
                }
                self.ranks = Some(vec![None; count as usize]);
                Ok(())
            }
            (None, _) => Err("must be num_ranks N".into()),
            (Some(_), ["rank", rank, "{"]) if self.block.is_none() => self.begin_rank(rank),
            (Some(_), ["}"]) => self.end_rank(),
            (Some(_), _) if self.block.is_none() => {
                Err(format!("{}: must be rank N {{", shortened(text)))
            }
            (Some(_), [label, "requires", other]) => self.require(label, other, false),
            (Some(_), [label, "irequires", other]) => self.require(label, other, true),
            (Some(_), _) => self.operation(text),
        }
    }

    fn without_comments(&mut self, text: &str) -> String {
        let (mut kept, mut rest) = (String::new(), text);
        loop {
            if self.in_comment {
                let Some((_, after)) = rest.split_once("*/") else { return kept };
                self.in_comment = false;
                rest = after;
            }
            let rest_of_line = rest.find("//").unwrap_or(rest.len());
            let Some(begins) = rest[..rest_of_line].find("/*") else {
                kept.push_str(&rest[..rest_of_line]);
                return kept;
            };
            kept.push_str(&rest[..begins]);
            kept.push(' ');
            rest = &rest[begins + 2..];
            self.in_comment = true;
        }
    }

    fn count(&self) -> u64 {
        self.ranks.as_ref().map_or(0, |ranks| ranks.len() as u64)
    }

    fn begin_rank(&mut self, rank: &str) -> Result<()> {
        let rank = self.rank(rank)?;
        if self.ranks.as_ref().is_some_and(|ranks| ranks[rank as usize].is_some()) {
            return Err(format!("rank {rank} has a block already"));
        }
        self.block = Some(Block { rank, ..Block::default() });
        Ok(())
    }

    fn end_rank(&mut self) -> Result<()> {
        let Some(mut block) = self.block.take() else { return Err("no rank has begun".into()) };
        for (line, label, other, start) in std::mem::take(&mut block.later) {
            let of = |label: &str| block.labels.get(label).copied();
            let (Some(operation), Some(needed)) = (of(&label), of(&other)) else {
                let missing = if of(&label).is_none() { label } else { other };
                return Err(format!(
                    "line {line} names {}, no label of this rank",
                    shortened(&missing)
                ));
            };
            let pairs = if start { &mut block.started } else { &mut block.ended };
            pairs.push((operation, needed));
        }
        let lines = &block.lines;
        let waits = |operation: u32| {
            let line = lines[operation as usize];
            format!("the operation of line {line} of rank {} waits for itself", block.rank)
        };
        let rank = RankSchedule::new(block.operations, &block.ended, &block.started);
        let rank = rank.map_err(waits)?;
        if let Some(ranks) = &mut self.ranks {
            ranks[block.rank as usize] = Some(rank);
        }
        Ok(())
    }

    fn require(&mut self, label: &str, other: &str, start: bool) -> Result<()> {
        self.grow()?;
        let line = self.line;
        let Some(block) = &mut self.block else { return Err("no rank has begun".into()) };
        match (block.labels.get(label), block.labels.get(other)) {
            (Some(&operation), Some(&needed)) => {
                let pairs = if start { &mut block.started } else { &mut block.ended };
                pairs.push((operation, needed));
            }
            _ => block.later.push((line, label.into(), other.into(), start)),
        }
        Ok(())
    }

    fn operation(&mut self, text: &str) -> Result<()> {
        self.grow()?;
        let (label, rest) = match text.split_once(':') {
            Some((label, rest)) => (Some(label.trim()), rest),
            None => (None, text),
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let operation = match words.as_slice() {
            ["calc", time, rest @ ..] => {
                let time = number(time, "time in nanoseconds", 0, MOST_NS)? * PICOSECONDS_PER_NS;
                let [_, processor, _] = attributes(rest, &["cpu", "nic"])?;
                Operation::Compute { time, processor }
            }
            ["send", bytes, "to", to, rest @ ..] => {
                let (to, [tag, ..]) = (self.rank(to)?, attributes(rest, &["tag", "cpu", "nic"])?);
                let bytes = self.message(bytes, to, tag, true)?;
                Operation::Send { to, bytes, tag }
            }
            ["recv", bytes, "from", from, rest @ ..] => {
                let (from, [tag, ..]) =
                    (self.rank(from)?, attributes(rest, &["tag", "cpu", "nic"])?);
                self.message(bytes, from, tag, false)?;
                Operation::Receive { from, tag }
            }
            _ => {
                return Err(format!(
                    "{}: must be calc N, send Nb to R, recv Nb from R, requires, irequires or }}",
                    shortened(text)
                ))
            }
        };
        let line = self.line;
        let Some(block) = &mut self.block else { return Err("no rank has begun".into()) };
        let number = block.operations.len() as u32;
        block.operations.push(operation);
        block.lines.push(line);
        if let Some(label) = label {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if label.is_empty() || !label.chars().all(plain) {
                return Err(format!("{} is no label", shortened(label)));
            }
            if block.labels.insert(label.into(), number).is_some() {
                return Err(format!(
                    "rank {} has a label {} already",
                    block.rank,
                    shortened(label)
                ));
            }
        }
        Ok(())
    }

    /// Count a message to or from another rank; returns its length.
    fn message(&mut self, bytes: &str, peer: u32, tag: u32, sends: bool) -> Result<u64> {
        let Some(digits) = bytes.strip_suffix('b') else {
            return Err(format!("{}: a number of bytes is written Nb", shortened(bytes)));
        };
        let bytes = number(digits, "number of bytes", 0, MAX_BYTES)?;
        let rank = self.block.as_ref().map_or(0, |block| block.rank);
        if peer == rank {
            return Err(format!("rank {rank} is its own peer"));
        }
        let key = if sends { (rank, peer, tag) } else { (peer, rank, tag) };
        let fresh = Balance { line: self.line, ..Balance::default() };
        let balance = self.balances.entry(key).or_insert(fresh);
        let counted = if sends { &mut balance.sent } else { &mut balance.received };
        *counted = (counted.0 + 1, counted.1 + bytes);
        // A message has at least one byte.
        Ok(bytes.max(1))
    }

    fn rank(&self, text: &str) -> Result<u32> {
        let rank = number(text, "rank", 0, u64::from(u32::MAX))?;
        if rank >= self.count() {
            return Err(format!("rank {rank} is not one of 0 to {}", self.count() - 1));
        }
        Ok(rank as u32)
    }

    fn grow(&mut self) -> Result<()> {
        self.size += 1;
        if self.size > MOST {
            return Err(format!("more than {MOST} operations and requirements"));
        }
        Ok(())
    }
}

/// The values of `tag`, `cpu` and `nic`, those of which are allowed.
fn attributes(words: &[&str], allowed: &[&str]) -> Result<[u32; 3]> {
    let mut values = [0; 3];
    for pair in words.chunks(2) {
        let [name, value] = pair else {
            return Err(format!("{} has no value", shortened(pair[0])));
        };
        let place = ["tag", "cpu", "nic"].iter().position(|known| known == name);
        let Some(place) = place.filter(|_| allowed.contains(name)) else {
            return Err(format!("{}: may only be {}", shortened(name), allowed.join(", ")));
        };
        values[place] = number(value, name, 0, u64::from(u32::MAX))? as u32;
    }
    if values[2] != 0 {
        return Err(format!("nic {}: hosts have one interface, nic 0", values[2]));
    }
    Ok(values)
}

fn number(text: &str, quantity: &str, least: u64, most: u64) -> Result<u64> {
    let digits = !text.is_empty() && text.len() < 20 && text.bytes().all(|b| b.is_ascii_digit());
    let value = if digits { text.parse::<u64>().ok() } else { None };
    match value.filter(|value| (least..=most).contains(value)) {
        Some(value) => Ok(value),
        None => Err(format!("{} is not a {quantity} of {least} to {most}", shortened(text))),
    }
}

/// A part of the file in a message: short, and nothing that a terminal would obey.
fn shortened(text: &str) -> String {
    let text: String = text.chars().take(40).collect();
    format!("{text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<RankSchedule>> {
        let mut reader = GoalReader::new(4);
        for piece in text.as_bytes().chunks(7) {
            reader.feed(piece)?;
        }
        reader.finish()
    }

    fn block(lines: &str) -> String {
        format!("num_ranks 3\nrank 0 {{\n{lines}\n}}\n")
    }

    #[test]
    fn a_program_is_read_whatever_its_pieces_and_comments() {
        let text = "/* of\n two lines */ num_ranks 2 // two\nrank 0 {\r\nl2 requires l1\nl1: calc 5 cpu 1\n\
                    l2 : send 3b to 1 tag 9 cpu 0 nic 0\ncalc 7 /* no label */\nl2 irequires l1\n}\n\
                    rank 1 { // of\nrecv 3b from 0 tag 9\n}";
        let ranks = read(text).unwrap();
        assert_eq!(ranks.iter().map(RankSchedule::len).collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn mistakes_name_their_line() {
        let cases = [
            ("", "line 1: must be num_ranks"),
            ("rank 0 {", "line 1: must be num_ranks"),
            ("num_ranks 5", "line 1: 5 ranks, but 4 hosts"),
            ("num_ranks 0", "line 1: \"0\" is not a number of ranks"),
            ("num_ranks 2\nl1: calc 5", "line 2: \"l1: calc 5\": must be rank N {"),
            ("num_ranks 2\nrank 2 {", "line 2: rank 2 is not one of 0 to 1"),
            ("num_ranks 2\nrank 0 {\n}\nrank 0 {", "line 4: rank 0 has a block already"),
            ("num_ranks 2\nrank 0 {\ncalc 1", "line 3: the block of rank 0 has no end"),
            ("num_ranks 2\n}", "line 2: no rank has begun"),
        ];
        for (text, expected) in cases {
            let told = read(text).unwrap_err();
            assert!(told.starts_with(expected), "{text:?}: {told}");
        }
        let lines = [
            ("l1: jump 3", "line 3: \"l1: jump 3\": must be calc"),
            ("send 3 to 1", "line 3: \"3\": a number of bytes is written Nb"),
            ("send -3b to 1", "line 3: \"-3\" is not a number of bytes"),
            ("send 3b to 0", "line 3: rank 0 is its own peer"),
            ("send 3b to 1 tag", "line 3: \"tag\" has no value"),
            ("send 3b to 1 nic 1", "line 3: nic 1: hosts have one interface"),
            ("calc 3 tag 1", "line 3: \"tag\": may only be cpu, nic"),
            ("calc 99999999999999999999", "line 3: \"99999999999999999999\" is not a time"),
            ("a: calc 1\na: calc 1", "line 4: rank 0 has a label \"a\" already"),
            ("a-b: calc 1", "line 3: \"a-b\" is no label"),
            ("a: calc 1\na requires b", "line 4 names \"b\", no label of this rank"),
            ("a: calc 1\nb: calc 1\na requires b\nb irequires a", "the operation of line 3"),
            ("send 3b to 1 tag 4", "line 3: with tag 4, rank 0 sends 1 messages of 3 bytes"),
            ("recv 3b from 1", "line 3: with tag 0, rank 1 sends 0 messages"),
        ];
        for (text, expected) in lines {
            let told = read(&block(text)).unwrap_err();
            assert!(told.contains(expected), "{text:?}: {told}");
        }
        let told = read(&format!("num_ranks 1\n{}", "x".repeat(2000))).unwrap_err();
        assert!(told.starts_with("line 2: more than 1000 bytes"), "{told}");
        let mut reader = GoalReader::new(1);
        assert!(reader.feed(b"\xff\n").unwrap_err().contains("UTF-8"));
    }
}
