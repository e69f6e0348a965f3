//! Limits: set and enforced where a leaf has the controllers, and refused by name where it has not.

use placement::{Code, Controller, EvidenceKind, Exit, Launch, Mechanism};
use placement_world::{Said, World, shell};

/// Holds 200 MB in a variable of the leader.
const GREEDY: &str = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo held ${#x}";

fn world() -> World {
    World::new(env!("CARGO_BIN_EXE_placement"))
}

/// What a leaf can be limited by here.
fn controllers(world: &World) -> Vec<Controller> {
    let measured = world.host().capabilities().expect("the machine can be measured");
    measured.report.controllers
}

fn limited(controller: Controller) -> Launch {
    match controller {
        Controller::Memory => shell("exit 0").memory_bytes(64 << 20),
        Controller::Pids => shell("exit 0").pids(32),
        Controller::Cpu => shell("exit 0").cpu_millis(500),
    }
}

#[test]
fn each_limit_is_set_or_refused_with_the_name_of_its_controller() {
    let world = world();
    let found = controllers(&world);
    for controller in Controller::ALL {
        let launch = limited(*controller).write(world.work());
        if found.contains(controller) {
            let attempt = world.launch(launch);
            assert_eq!(attempt.attempt().unwrap().mechanism, Some(Mechanism::Cgroup));
            world.assert_clean(&attempt.finish().unwrap());
            continue;
        }
        println!("a limit of {controller} is not seen enforced here");
        let refused = world.host().launch(launch).unwrap_err();
        assert_eq!(refused.code(), Code::UnsupportedCapability);
        let named = format!("a limit of {controller} needs that controller in a cgroup leaf");
        assert!(refused.to_string().contains(&named), "{refused}");
    }
    let attempts = world.host().attempts().all().unwrap().attempts;
    assert_eq!(attempts.len(), found.len(), "nothing is recorded of what was refused");
}

#[test]
fn what_uses_more_memory_than_it_may_is_killed_and_told() {
    let world = world();
    let run = ["run", "--memory", "64MiB", "--", "/bin/sh", "-c", GREEDY];
    let Said { code, stdout, stderr } = world.program().run(run);
    if !controllers(&world).contains(&Controller::Memory) {
        println!("the kill by the kernel was not seen here");
        assert_eq!((code, stdout.as_str()), (125, ""), "{stderr}");
        assert!(
            stderr.starts_with("placement: UNSUPPORTED_CAPABILITY: a limit of memory "),
            "{stderr}"
        );
        world.program().assert_nothing_is_left();
        return;
    }
    assert_ne!(code, 0, "{stdout}");
    assert!(!stdout.contains("held"), "{stdout}");
    let [attempt] = &world.host().attempts().all().unwrap().attempts[..] else { panic!("not one") };
    let rows = world.host().evidence(&attempt.attempt_id, 0, None).unwrap();
    let place = |kind| rows.iter().position(|row| row.kind == kind);
    assert!(place(EvidenceKind::ChildOomKilled).is_some(), "{}", world.told(&attempt.attempt_id));
    assert!(place(EvidenceKind::ChildExited) < place(EvidenceKind::ChildOomKilled));
    assert!(place(EvidenceKind::ChildOomKilled) < place(EvidenceKind::TreeGone));
    world.assert_nothing_left(&attempt.attempt_id);
}

#[test]
fn more_processes_than_allowed_cannot_be_made() {
    let world = world();
    if !controllers(&world).contains(&Controller::Pids) {
        println!("the limit of processes was not seen enforced here");
        return;
    }
    let script = "for n in 1 2 3 4 5 6 7 8 9; do sleep 300 & done; exit 0";
    let attempt = world.launch(shell(script).pids(4));
    let end = attempt.finish().unwrap();
    assert_ne!(end.exit(), Some(Exit::Code { code: 0 }), "a shell that cannot fork gives up");
    assert_eq!(end.first(EvidenceKind::ChildOomKilled), None);
    world.assert_clean(&end);
}

#[test]
fn a_limit_that_a_mechanism_cannot_set_is_refused_and_not_ignored() {
    let world = world();
    for mechanism in world.mechanisms() {
        if mechanism == Mechanism::Cgroup {
            continue;
        }
        let launch = limited(Controller::Pids).write(world.work()).mechanism(mechanism);
        let refused = world.host().launch(launch).unwrap_err();
        assert_eq!(refused.code(), Code::UnsupportedCapability);
        assert!(refused.to_string().contains(&format!("{mechanism} has none")), "{refused}");
    }
    assert!(world.host().attempts().all().unwrap().attempts.is_empty());
}

#[test]
fn a_limit_that_makes_no_sense_is_refused_before_anything_is_measured() {
    let world = world();
    let program = world.program();
    for (option, value, code, named) in [
        ("--memory", "1KiB", 125, "INVALID: supervision.limits.memory_bytes"),
        ("--pids", "0", 125, "INVALID: supervision.limits.pids"),
        ("--cpu", "0.001", 125, "INVALID: supervision.limits.cpu_millis"),
        ("--memory", "much", 2, "--memory"),
        ("--cpu", "1.2345", 2, "--cpu"),
    ] {
        let said = program.run(["run", option, value, "--", "true"]);
        assert_eq!(said.code, code, "{option} {value}: {said:?}");
        assert!(said.stderr.contains(named), "{said:?}");
    }
    program.assert_nothing_is_left();
}
