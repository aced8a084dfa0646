//! Loss, time-outs and acknowledgements of a stream.

use super::*;

fn stream(messages: usize) -> Outgoing {
    let mut stream = Outgoing::new(7, MILLISECOND);
    stream.restart();
    for id in 0..messages {
        stream.post(id as u64, Arc::from(vec![0; 10]), MessageKind::Plain);
    }
    stream
}

fn sent(stream: &mut Outgoing, now: Time) -> Vec<u64> {
    let mut sequences = Vec::new();
    while let Some(frame) = stream.next_frame(now, 100) {
        sequences.push(frame.sequence);
    }
    sequences
}

fn acknowledge(stream: &mut Outgoing, now: Time, next: u64, further: u64) -> Vec<SendId> {
    let mut complete = Vec::new();
    let ack = Ack { session: 7, next, further };
    stream.acknowledged(now, &ack, |id| complete.push(id));
    complete
}

#[test]
fn frames_overtaken_by_three_later_ones_are_sent_again() {
    let mut stream = stream(6);
    assert_eq!(sent(&mut stream, 0), [0, 1, 2, 3, 4, 5]);
    assert_eq!(acknowledge(&mut stream, 10, 1, 0b11), [0]);
    assert_eq!(sent(&mut stream, 10), []);
    assert_eq!(acknowledge(&mut stream, 20, 1, 0b111), []);
    assert_eq!(sent(&mut stream, 20), [1]);
    assert_eq!(acknowledge(&mut stream, 30, 6, 0), [1, 2, 3, 4, 5]);
    assert!(stream.is_idle());
}

#[test]
fn a_timeout_resends_one_frame_and_doubles() {
    let mut stream = stream(3);
    sent(&mut stream, 0);
    assert_eq!(stream.deadline(1 << 40), Some(MILLISECOND));
    assert!(stream.expire(MILLISECOND, 1 << 40));
    assert_eq!(sent(&mut stream, MILLISECOND), [0]);
    assert_eq!(stream.deadline(1 << 40), Some(3 * MILLISECOND));
    // The answer to it tells that the other two are lost.
    acknowledge(&mut stream, 2 * MILLISECOND, 1, 0);
    assert_eq!(sent(&mut stream, 2 * MILLISECOND), [1, 2]);
}

#[test]
fn a_silent_peer_is_given_up_and_a_new_stream_begins() {
    let mut stream = stream(3);
    sent(&mut stream, 5);
    assert!(stream.expire(104, 100));
    assert!(!stream.expire(105, 100));
    let mut failed = Vec::new();
    stream.fail(Failure::PeerLost, 8, |id, _| failed.push(id));
    assert_eq!((failed, stream.session), (vec![0, 1, 2], 8));
    assert!(stream.is_idle() && stream.deadline(100).is_none());
}

#[test]
fn acknowledgements_of_frames_never_sent_are_ignored() {
    let mut stream = stream(100);
    assert_eq!(sent(&mut stream, 0).len(), WINDOW_FRAMES);
    assert_eq!(acknowledge(&mut stream, 1, 65, 0), []);
    assert_eq!(acknowledge(&mut stream, 1, 0, u64::MAX), []);
    assert_eq!(acknowledge(&mut stream, 1, 64, 0).len(), 64);
}
