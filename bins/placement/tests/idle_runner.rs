//! What a runner holds while its child has nothing to say.

use placement::{AttemptHandle, Exit};
use placement_testkit::wait_until;
use placement_world::{PATIENCE, World, shell};
use std::path::Path;

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

/// Launches a child that waits for the end of its input, and waits until its runner has put the
/// store down; says why that cannot be seen here.
fn idle(world: &World) -> Result<AttemptHandle, String> {
    let attempt = world.launch(shell("read go; exit 7").stdin_pipe());
    let descriptors = format!("/proc/{}/fd", world.runner_pid(attempt.id()));
    if std::fs::read_dir(&descriptors).is_err() {
        return Err("the descriptors of a runner are shown to root alone".to_owned());
    }
    wait_until(PATIENCE, "a runner without its store", || {
        let opened = std::fs::read_dir(&descriptors).into_iter().flatten().flatten();
        opened.filter_map(|entry| entry.path().read_link().ok()).all(|target| {
            target.file_name().is_none_or(|name| !name.to_string_lossy().starts_with("placement."))
        })
    });
    Ok(attempt)
}

#[test]
fn a_runner_puts_the_store_down_while_nothing_happens_and_records_the_exit_all_the_same() {
    let world = world();
    let attempt = match idle(&world) {
        Ok(attempt) => attempt,
        Err(reason) => return println!("not seen here: {reason}"),
    };
    attempt.close_input().unwrap();
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 7 }), "{end}");
    world.assert_clean(&end);
}

#[test]
fn an_exit_for_which_the_store_does_not_open_again_is_taken_in_afterwards() {
    let world = world();
    let attempt = match idle(&world) {
        Ok(attempt) => attempt,
        Err(reason) => return println!("not seen here: {reason}"),
    };
    let runner = world.runner_pid(attempt.id());
    let (store, away) = (world.root().join("placement.db"), world.root().join("away"));
    std::fs::rename(&store, &away).unwrap();
    attempt.close_input().unwrap();
    wait_until(PATIENCE, "the end of the runner", || {
        !Path::new(&format!("/proc/{runner}/exe")).exists()
    });
    std::fs::rename(&away, &store).unwrap();
    let end = attempt.finish().unwrap();
    assert_eq!(end.exit(), Some(Exit::Code { code: 7 }), "{end}");
    world.assert_clean(&end);
}
