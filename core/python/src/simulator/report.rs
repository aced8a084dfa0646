//! The results of a simulation, as arrays.

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use simulator::{
    FlowReport, Histogram, PriorityCounters, Report, RetryCount, VirtualChannel, PRIORITIES,
};

use super::convert::array;

type Numbers = Py<PyArray1<u64>>;

/// See the `.pyi`.
#[pyclass(name = "Report", module = "knotless._core.simulator", get_all)]
pub struct PyReport {
    now_ps: u64,
    measured_ps: u64,
    events: u64,
    packet_hops: u64,
    in_network: u64,
    messages_under_way: u64,
    last_arrival_ps: u64,
    last_complete_ps: u64,
    flow_packets: Numbers,
    flow_bytes: Numbers,
    flow_messages: Numbers,
    flow_lost: Numbers,
    flow_marked: Numbers,
    flow_notifications: Numbers,
    flow_retransmitted: Numbers,
    flow_latency_mean_ps: Py<PyArray1<f64>>,
    flow_latency_min_ps: Numbers,
    flow_latency_max_ps: Numbers,
    flow_latency_p50_ps: Numbers,
    flow_latency_p99_ps: Numbers,
    latency: Py<PyHistogram>,
    completion: Py<PyHistogram>,
    channel_tx_frames: Numbers,
    channel_tx_bytes: Numbers,
    channel_rx_frames: Numbers,
    channel_pauses: Numbers,
    channel_paused_ps: Numbers,
    channel_queue_peak_bytes: Numbers,
    channel_ingress_peak_bytes: Numbers,
    channel_drops: Vec<Numbers>,
    channel_broadcasts_over: Numbers,
    channel_marked_frames: Py<PyArray2<u64>>,
    channel_storms: Vec<Numbers>,
    channel_pause_frames: Numbers,
    channel_retries: Vec<Numbers>,
    channel_replay_peak_bytes: Numbers,
    channel_replay_mean_bytes: Py<PyArray1<f64>>,
    pools: Vec<Pool>,
    deadlock: Option<PyDeadlock>,
    deadlocks: u64,
    answered: u64,
    station_collisions: Numbers,
    station_given_up: Numbers,
    first_pauses: Vec<(u64, Pair, Option<Pair>, bool)>,
}

/// See the `.pyi`.
#[pyclass(name = "Histogram", module = "knotless._core.simulator", get_all)]
pub struct PyHistogram {
    total: u64,
    mean_ps: f64,
    min_ps: u64,
    max_ps: u64,
    p50_ps: u64,
    p99_ps: u64,
    floors_ps: Numbers,
    counts: Numbers,
}

impl PyHistogram {
    fn new(py: Python<'_>, histogram: &Histogram) -> PyResult<Py<PyHistogram>> {
        let made = PyHistogram {
            total: histogram.total(),
            mean_ps: histogram.mean(),
            min_ps: histogram.least(),
            max_ps: histogram.most(),
            p50_ps: histogram.quantile(0.5),
            p99_ps: histogram.quantile(0.99),
            floors_ps: array(py, histogram.buckets().map(|(floor, _)| floor)),
            counts: array(py, histogram.buckets().map(|(_, count)| count)),
        };
        Py::new(py, made)
    }
}

/// A pool as Python sees it: (switch, name, peak, peak of its headroom).
type Pool = (u32, String, u64, u64);

/// A virtual channel as Python sees it: (channel, class).
type Pair = (u32, u8);

/// See the `.pyi`.
#[pyclass(name = "Deadlock", module = "knotless._core.simulator", get_all)]
#[derive(Clone)]
pub struct PyDeadlock {
    since_ps: u64,
    members: Vec<Pair>,
    cycle: Vec<Pair>,
    frames: Vec<Vec<(u32, u32)>>,
    broken_ps: Option<u64>,
}

impl PyReport {
    pub fn new(py: Python<'_>, report: Report) -> PyResult<PyReport> {
        let flows = |of: fn(&FlowReport) -> u64| array(py, report.flows.iter().map(of));
        let channels = &report.channels;
        let sum = |of: fn(&PriorityCounters) -> u64| {
            array(py, channels.iter().map(move |c| c.priorities.iter().map(of).sum()))
        };
        let most = |of: fn(&PriorityCounters) -> u64| {
            array(py, channels.iter().map(move |c| c.priorities.iter().map(of).max().unwrap_or(0)))
        };
        let pair = |vc: &VirtualChannel| (vc.channel.0, vc.class);
        Ok(PyReport {
            now_ps: report.now,
            measured_ps: report.measured,
            events: report.events,
            packet_hops: report.packet_hops,
            in_network: report.in_network,
            messages_under_way: report.messages_under_way,
            last_arrival_ps: report.last_arrival,
            last_complete_ps: report.last_complete,
            flow_packets: flows(|flow| flow.packets),
            flow_bytes: flows(|flow| flow.bytes),
            flow_messages: flows(|flow| flow.messages),
            flow_lost: flows(|flow| flow.lost),
            flow_marked: flows(|flow| flow.marked),
            flow_notifications: flows(|flow| flow.notifications),
            flow_retransmitted: flows(|flow| flow.retransmitted),
            flow_latency_mean_ps: array(py, report.flows.iter().map(|flow| flow.latency.mean())),
            flow_latency_min_ps: flows(|flow| flow.latency.least()),
            flow_latency_max_ps: flows(|flow| flow.latency.most()),
            flow_latency_p50_ps: flows(|flow| flow.latency.quantile(0.5)),
            flow_latency_p99_ps: flows(|flow| flow.latency.quantile(0.99)),
            latency: PyHistogram::new(py, &report.latency)?,
            completion: PyHistogram::new(py, &report.completion)?,
            channel_tx_frames: sum(|counted| counted.tx_frames),
            channel_tx_bytes: sum(|counted| counted.tx_bytes),
            channel_rx_frames: array(py, channels.iter().map(|channel| channel.rx_frames)),
            channel_pauses: most(|counted| counted.pauses),
            channel_paused_ps: most(|counted| counted.paused),
            channel_queue_peak_bytes: most(|counted| counted.queue_peak_bytes),
            channel_ingress_peak_bytes: most(|counted| counted.ingress_peak_bytes),
            channel_drops: (0..simulator::drop_causes().len())
                .map(|cause| array(py, channels.iter().map(move |channel| channel.drops[cause])))
                .collect(),
            channel_broadcasts_over: array(
                py,
                channels.iter().map(|channel| channel.broadcasts_over),
            ),
            channel_marked_frames: {
                let marked = channels.iter().flat_map(|channel| &channel.priorities);
                let marked = marked.map(|counted| counted.marked_frames).collect();
                PyArray1::from_vec(py, marked).reshape([channels.len(), PRIORITIES])?.unbind()
            },
            channel_storms: vec![
                array(py, channels.iter().map(|channel| channel.storms_detected)),
                array(py, channels.iter().map(|channel| channel.storms_restored)),
                array(py, channels.iter().map(|channel| channel.storm_alerts)),
            ],
            channel_pause_frames: array(py, channels.iter().map(|channel| channel.pause_frames)),
            channel_retries: (0..RetryCount::ALL.len())
                .map(|count| array(py, report.retries.iter().map(move |of| of.counts[count])))
                .collect(),
            channel_replay_peak_bytes: array(py, report.retries.iter().map(|of| of.peak_bytes)),
            channel_replay_mean_bytes: {
                let measured = report.measured.max(1) as f64;
                array(py, report.retries.iter().map(|of| of.byte_time as f64 / measured))
            },
            pools: report
                .pools
                .iter()
                .map(|pool| {
                    let name = pool.name.clone();
                    (pool.switch, name, pool.peak_bytes, pool.headroom_peak_bytes)
                })
                .collect(),
            deadlock: report.deadlock.map(|found| PyDeadlock {
                since_ps: found.since,
                members: found.members.iter().map(pair).collect(),
                cycle: found.cycle.iter().map(pair).collect(),
                frames: found.frames,
                broken_ps: found.broken,
            }),
            deadlocks: report.deadlocks,
            answered: report.answered,
            station_collisions: array(py, report.stations.iter().map(|station| station.collisions)),
            station_given_up: array(py, report.stations.iter().map(|station| station.given_up)),
            first_pauses: report
                .first_pauses
                .iter()
                .map(|first| {
                    let cause = first.cause.as_ref().map(pair);
                    (first.at, pair(&first.paused), cause, first.cause_paused)
                })
                .collect(),
        })
    }
}
