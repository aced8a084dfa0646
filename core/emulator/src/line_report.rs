//! What lines are, and what they do to frames at random, in the answers to `line` and `status`.

use serde_json::{json, Value};
use switch_model::{ChannelId, DropCause, Time};

use crate::engine::Engine;
use crate::fabric::Fabric;

/// The line of a channel.
pub fn line(fabric: &Fabric, channel: ChannelId) -> Value {
    let settings = fabric.settings(channel);
    let mut line = json!({
        "channel": fabric.channels[channel.index()].name,
        "rate_mbps": settings.rate_mbps,
        "delay_us": settings.delay_us,
    });
    if let (Value::Object(line), Ok(Value::Object(faults))) =
        (&mut line, serde_json::to_value(settings.faults))
    {
        line.extend(faults);
    }
    line
}

/// The lines that do anything to frames at random, and how many frames they have lost, corrupted
/// and duplicated.
pub fn faulty_lines(engine: &Engine, now: Time) -> Value {
    let fabric = &engine.state().fabric;
    let channels = (0..fabric.channels.len()).map(|index| ChannelId(index as u32));
    let lines = channels.filter_map(|channel| {
        let counted = engine.model().counters(now, channel);
        let [lost, corrupted] =
            [DropCause::Loss, DropCause::Corrupt].map(|cause| counted.drops[cause as usize]);
        let happened = lost + corrupted + counted.duplicated > 0;
        if fabric.settings(channel).faults == crate::config::FaultsConfig::default() && !happened {
            return None;
        }
        let mut line = line(fabric, channel);
        line["lost_frames"] = lost.into();
        line["corrupted_frames"] = corrupted.into();
        line["duplicated_frames"] = counted.duplicated.into();
        Some(line)
    });
    Value::Array(lines.collect())
}
