//! The fence around a living attachment: who is refused, what comes again, what is written once, and
//! who may look on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attaching;
mod disk;
mod living;
mod observers;
mod strangers;
mod writes;

use placement_world::World;

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}
