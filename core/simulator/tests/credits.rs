//! Credits of frames that enter no buffer.

mod common;

use common::{channel, channels, config, run, settings, MICROSECOND};
use simulator::{
    Arrivals, ChannelConfig, DropCause, Fabric, Flow, FlowControl, Node, Tables, Target, Traffic,
};

#[test]
fn a_frame_that_its_switch_cannot_forward_returns_its_credit() {
    let mut line = config(0);
    line.flow_control = FlowControl::Credits;
    line.buffer.credit_bytes = 1536;
    let line = ChannelConfig { delay: 5 * MICROSECOND, ..line };
    let rows = channels(2, &[(0, 1)], &[0, 1], line);
    let from_host = channel(&rows, Node::Host(0), Node::Switch(0)) as usize;
    let fabric = Fabric::new(2, 2, rows).expect("a fabric");
    let tables = Tables::without_routes(&fabric);
    let flows = vec![Flow { from: 0, to: Target::Host(1) }];
    let traffic = Traffic::Flows { flows, arrivals: Arrivals::Saturate, message_bytes: 1500 };
    let end = 124_040 * MICROSECOND;
    let report = run(fabric, tables, traffic, simulator::Settings { end, ..settings(1) });
    // A frame takes 1,230.4 us, and there is room for one in the buffer: the next may follow after an
    // update has come back, 5 us there and 5 us back.
    let counted = &report.channels[from_host];
    assert_eq!(counted.drops[DropCause::Unforwarded as usize], 100);
    assert_eq!(counted.dropped(), 100);
    assert!(report.deadlock.is_none());
}
