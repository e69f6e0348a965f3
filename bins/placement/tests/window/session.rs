//! Waiting for a session at a terminal.

use crate::seat::Seat;
use crate::world;
use placement::StopMode;
use placement_world::shell;

#[test]
fn it_says_whom_it_waits_for_and_the_first_interrupt_ends_the_wait() {
    let world = world();
    let holder = world.launch(shell("exec sleep 300").session("issue-12"));
    let seat = Seat::new(200, 24);
    let waiting = ["run", "--session", "issue-12", "--wait-session", "1h", "--", "true"];
    let mut waits = seat.start(&world.program(), &waiting);
    let id = holder.id();
    seat.wait_for(&format!("waiting: session \"issue-12\" is held by attempt {id} (running, "));
    seat.type_in("\x03");
    assert_eq!(waits.code(), 130, "{}", seat.said());
    assert_eq!(world.host().attempts().all().unwrap().attempts.len(), 1);
    world.host().stop(holder.id(), StopMode::Forced).unwrap();
    world.assert_clean(&holder.finish().unwrap());
}
