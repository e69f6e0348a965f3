//! Looking on in numbers: everybody sees the same, in order, whoever stands still.

use crate::world;
use placement::{AttemptId, StreamName};
use placement_world::service::{Item, Observer};
use placement_world::{PATIENCE, World};
use std::sync::Barrier;
use std::sync::mpsc;
use std::time::Instant;

const OBSERVERS: usize = 32;

/// A chunk, or the end of a stream without bytes.
type Piece = (u64, StreamName, Vec<u8>);

#[track_caller]
fn observe(world: &World, id: &AttemptId) -> Observer {
    world.stage().service().observe(id).expect("the launch keeps a log")
}

/// Reads the next piece; nothing at the end.
#[track_caller]
fn next(observer: &mut Observer) -> Option<Piece> {
    let item = observer.next(Some(Instant::now() + PATIENCE)).expect("the log is whole");
    match item.expect("something comes in time") {
        Item::Chunk { stream, sequence, bytes, .. } => Some((sequence, stream, bytes)),
        Item::Eof { stream, sequence, .. } => Some((sequence, stream, Vec::new())),
        Item::End => None,
        other @ (Item::Gap { .. }
        | Item::Exit { .. }
        | Item::Input { .. }
        | Item::Resized { .. }
        | Item::Taken) => panic!("{other:?}"),
    }
}

#[test]
fn many_observers_see_the_same_without_a_gap_while_one_of_them_stands_still() {
    let world = world();
    let script = "while [ ! -e go ]; do sleep 0.01; done
        seq 200000 | tee all; seq 50000 | tee errors >&2; seq 200000 | tee -a all; exit 2";
    let attempt = world.launch_shell(script);
    let id = attempt.id().clone();
    let before = attempt.attempt().unwrap();
    let mut observers: Vec<_> = (0..=OBSERVERS).map(|_| observe(&world, &id)).collect();
    let mut still = observers.pop().unwrap();
    let all_look = Barrier::new(OBSERVERS + 1);
    let (told, heard) = mpsc::channel();
    std::thread::scope(|scope| {
        for mut observer in observers {
            let (all_look, told) = (&all_look, told.clone());
            scope.spawn(move || {
                all_look.wait();
                let pieces: Vec<Piece> = std::iter::from_fn(|| next(&mut observer)).collect();
                told.send(pieces).unwrap();
            });
        }
        all_look.wait();
        std::fs::write(world.work().join("go"), "").unwrap();
        let first = next(&mut still).unwrap();
        // From here on it stands still; neither the child nor anybody else waits for it.
        assert_eq!(first.0, 1);
        let read = world.bytes(&attempt);
        assert_eq!(attempt.is_truncated(StreamName::Stdout), Some(false));
        attempt.wait().unwrap();
        let seen: Vec<Vec<Piece>> = (0..OBSERVERS).map(|_| heard.recv().unwrap()).collect();
        let pieces = &seen[0];
        let numbers: Vec<u64> = pieces.iter().map(|piece| piece.0).collect();
        assert_eq!(numbers, (1..=pieces.len() as u64).collect::<Vec<_>>());
        assert!(seen.iter().all(|other| other == pieces), "the others see something else");
        let of = |stream: StreamName| {
            let own = pieces.iter().filter(|piece| piece.1 == stream);
            own.flat_map(|piece| piece.2.iter().copied()).collect::<Vec<u8>>()
        };
        for (stream, file) in [(StreamName::Stdout, "all"), (StreamName::Stderr, "errors")] {
            assert!(of(stream) == std::fs::read(world.work().join(file)).unwrap(), "{stream}");
        }
        assert_eq!(read.len(), pieces.iter().map(|piece| piece.2.len()).sum::<usize>());
        // And it sees the same once it goes on.
        let rest = std::iter::once(first).chain(std::iter::from_fn(|| next(&mut still)));
        assert!(rest.collect::<Vec<_>>() == *pieces);
    });
    let after = attempt.attempt().unwrap();
    assert_eq!(after.attachment_generation, before.attachment_generation);
    world.assert_clean(&attempt.finish().unwrap());
}
