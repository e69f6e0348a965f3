use crate::testing::*;
use crate::*;
use placement_contract::request::Argument;
use placement_contract::*;
use std::time::{Duration, Instant};

fn world() -> World {
    World::with_runner("/tmp/t/service/debug/placement-runner")
}
fn sh(id: &str, line: &str, scope: CleanupScope, mech: Option<Mechanism>) -> LaunchRequest {
    let mut r = LaunchRequest { required_cleanup: scope, ..request(id, id) };
    r.launch.executable = Argument::parse("sh").unwrap();
    r.launch.argv = vec![Argument::parse("-c").unwrap(), Argument::parse(line).unwrap()];
    r.supervision.mechanism = mech;
    r.timeouts = Timeouts::default();
    r
}
fn all(streams: &mut Streams) -> Vec<Item> {
    let mut v = vec![];
    loop {
        let item =
            streams.next(Some(Instant::now() + Duration::from_secs(20))).unwrap().expect("in time");
        if let Item::Chunk { sequence, .. } | Item::Eof { sequence, .. } = &item {
            streams.acknowledge(*sequence).unwrap();
        }
        let end = matches!(item, Item::End | Item::Taken);
        v.push(item);
        if end {
            return v;
        }
    }
}
fn dump(w: &World, id: &AttemptId) {
    for e in w.service.evidence(id, 0, 64).unwrap().evidence {
        println!("{:2} {} {} {}", e.sequence, e.kind, e.to, e.detail);
    }
}
#[test]
fn real_run() {
    for (n, (scope, mech)) in [
        (CleanupScope::ContainedTree, Some(Mechanism::Cgroup)),
        (CleanupScope::ContainedTree, Some(Mechanism::Subreaper)),
        (CleanupScope::ProcessGroup, None),
        (CleanupScope::DirectProcess, None),
    ]
    .into_iter()
    .enumerate()
    {
        let w = world();
        let id = format!("r{n}");
        let t = Instant::now();
        let a = match w.service.prepare(&sh(
            &id,
            "echo hello; (setsid sleep 30 &) ; echo err >&2; exit 3",
            scope,
            mech,
        )) {
            Ok(a) => a,
            Err(e) => {
                println!("{scope} {mech:?}: {e}");
                continue;
            }
        };
        println!("prepare {:?}", t.elapsed());
        let t = Instant::now();
        let mut started = w.service.start(&a.attempt_id, &recipient("me")).unwrap();
        println!("start {:?} {}", t.elapsed(), started.attempt.execution_state);
        let items = all(started.streams.as_mut().unwrap());
        println!("{items:?} {:?}", t.elapsed());
        println!(
            "{:?} {:?}",
            w.service.wait_ended(&a.attempt_id, Some(Instant::now() + Duration::from_secs(20))),
            t.elapsed()
        );
        let c = w.service.cleanup(&a.attempt_id);
        println!("{c:?} {:?}", t.elapsed());
        dump(&w, &a.attempt_id);
        let v = w.service.verify(&a.attempt_id, None).unwrap();
        assert!(v.sound, "{v:?}");
    }
}
#[test]
fn real_kill_runner() {
    for (n, (scope, mech)) in [
        (CleanupScope::ContainedTree, Some(Mechanism::Cgroup)),
        (CleanupScope::ContainedTree, Some(Mechanism::Subreaper)),
        (CleanupScope::ProcessGroup, None),
    ]
    .into_iter()
    .enumerate()
    {
        let w = world();
        let id = format!("k{n}");
        let Ok(a) =
            w.service.prepare(&sh(&id, "echo hello; (setsid sleep 33 &) ; sleep 30", scope, mech))
        else {
            continue;
        };
        let mut started = w.service.start(&a.attempt_id, &recipient("me")).unwrap();
        let mut s = started.streams.take().unwrap();
        println!("{:?}", s.next(Some(Instant::now() + Duration::from_secs(5))).unwrap());
        let pid = w.row(&a.attempt_id).runner.unwrap().identity.pid.get();
        let t = Instant::now();
        std::fs::write("/dev/null", "").unwrap();
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(pid as i32).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
        println!("{:?} {:?}", all(&mut s), t.elapsed());
        println!("{:?}", w.service.wait_ended(&a.attempt_id, None));
        println!(
            "{:?}",
            w.service.reconcile(&a.attempt_id).map(|a| (a.execution_state, a.tree_gone_by))
        );
        println!("{:?}", w.service.cleanup(&a.attempt_id).map(|a| a.cleanup_state));
        println!(
            "{:?}",
            w.service
                .stop(&a.attempt_id, StopMode::Forced, IfUncertain::EndSurvivors)
                .map(|a| a.execution_state)
        );
        dump(&w, &a.attempt_id);
        assert!(w.service.verify(&a.attempt_id, None).unwrap().sound);
    }
}
#[test]
fn real_stop_attach() {
    let w = world();
    let mut r = sh(
        "s",
        "trap '' TERM; echo one; read x; echo got $x; sleep 30",
        CleanupScope::ProcessGroup,
        None,
    );
    r.supervision.stdin = StdinMode::Pipe;
    r.timeouts.stop_grace_ms = 300;
    let a = w.service.prepare(&r).unwrap();
    let mut started = w.service.start(&a.attempt_id, &recipient("me")).unwrap();
    let mut s = started.streams.take().unwrap();
    println!("{:?}", s.next(Some(Instant::now() + Duration::from_secs(5))).unwrap());
    let mut at = w.service.attach(&a.attempt_id, &recipient("two"), HostPlace::Adopt).unwrap();
    println!("{:?}", s.next(Some(Instant::now() + Duration::from_secs(5))).unwrap());
    println!("{:?}", at.streams.next(Some(Instant::now() + Duration::from_secs(5))).unwrap());
    at.streams.acknowledge(1).unwrap();
    let i = at.streams.input_sender().unwrap();
    i.send(b"hi\n").unwrap();
    println!("{:?}", at.streams.next(Some(Instant::now() + Duration::from_secs(5))).unwrap());
    println!("{:?}", at.streams.next(Some(Instant::now() + Duration::from_secs(5))).unwrap());
    println!("{:?}", w.service.status(&a.attempt_id).unwrap());
    let t = Instant::now();
    println!(
        "{:?} {:?}",
        w.service
            .stop(&a.attempt_id, StopMode::Cooperative, IfUncertain::Leave)
            .unwrap()
            .execution_state,
        t.elapsed()
    );
    println!("{:?} {:?}", all(&mut at.streams), t.elapsed());
    println!("{:?} {:?}", w.service.cleanup(&a.attempt_id).map(|a| a.cleanup_state), t.elapsed());
    dump(&w, &a.attempt_id);
    let mut again = w.service.attach(&a.attempt_id, &recipient("three"), HostPlace::Keep).unwrap();
    println!("{:?}", all(&mut again.streams));
    let mut o = w.service.observe(&a.attempt_id).unwrap();
    loop {
        let i = o.next(None).unwrap().unwrap();
        println!("{i:?}");
        if i == Item::End {
            break;
        }
    }
    // missing program
    let mut r = sh("m", "", CleanupScope::ProcessGroup, None);
    r.launch.executable = Argument::parse("no-such-program").unwrap();
    let a = w.service.prepare(&r).unwrap();
    println!("{:?}", w.service.start(&a.attempt_id, &recipient("me")).map(|_| ()));
    println!("{:?}", w.service.cleanup(&a.attempt_id).map(|a| a.cleanup_state));
    dump(&w, &a.attempt_id);
    println!("{:?}", w.service.capabilities().unwrap().report);
}
