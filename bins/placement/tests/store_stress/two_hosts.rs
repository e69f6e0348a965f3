//! Several hosts on one root: a server, the command line and a sweep.

use crate::world;
use placement::Exit;
use placement_world::{World, shell};
use std::sync::atomic::{AtomicBool, Ordering};

const KEYS: usize = 8;

/// Launches under every key, and returns the attempts.
fn launches(host: &placement::Placement, world: &World) -> Vec<String> {
    let one = |number: usize| {
        let launch = shell(&format!("echo {number} >> ran; exit 5"))
            .write(world.work())
            .key(format!("two-hosts-{number}"));
        let end = host.launch(launch).unwrap().finish().unwrap();
        assert_eq!(end.exit(), Some(Exit::Code { code: 5 }), "{end}");
        end.attempt().attempt_id.to_string()
    };
    (0..KEYS).map(one).collect()
}

#[test]
fn two_servers_and_a_sweep_give_each_key_one_child() {
    let world = world();
    let other = world.another_host();
    let program = world.program();
    let is_over = AtomicBool::new(false);
    let (of_one, of_other) = std::thread::scope(|scope| {
        let sweeps = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(program.run(["sweep"]).code, 0);
                assert_eq!(program.run(["reconcile", "--all"]).code, 0);
            }
        });
        let one = scope.spawn(|| launches(world.host(), &world));
        let other = scope.spawn(|| launches(&other, &world));
        let told = (one.join(), other.join());
        is_over.store(true, Ordering::Relaxed);
        sweeps.join().unwrap();
        (told.0.unwrap(), told.1.unwrap())
    });
    assert_eq!(of_one, of_other, "both followed the same attempts");
    let ran = std::fs::read_to_string(world.work().join("ran")).unwrap();
    assert_eq!(ran.lines().count(), KEYS, "{ran}");
    assert_eq!(program.run(["verify", "--all"]).code, 0);
    program.assert_nothing_is_left();
}
