//! Real processes: running, ended, reaped, reused, in groups and with markers.

#![expect(clippy::disallowed_methods, reason = "these tests need children")]

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use placement_identity::{
    GroupPresence, Marker, MarkerScan, Observer, Pid, Presence, ProcView, ProcessIdentity, Signal,
    SignalError, UnknownWhy, observe_group, proc_view, scan_marker,
};

/// Kills and reaps its child however the test ends.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        if self.0.kill().is_ok() {
            self.0.wait().expect("a child of ours can be waited for");
        }
    }
}

fn sleeper() -> Sleeper {
    let mut command = Command::new("sleep");
    command.arg("300").stdin(Stdio::null()).process_group(0);
    Sleeper(command.spawn().expect("sleep is installed"))
}

/// Looks again and again until the answer fits or a deadline passes.
fn until<T>(mut look: impl FnMut() -> T, fits: impl Fn(&T) -> bool) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let seen = look();
        if fits(&seen) || Instant::now() > deadline {
            return seen;
        }
        std::thread::yield_now();
    }
}

fn because(presence: Presence) -> &'static str {
    match presence {
        Presence::Present(_) => "present",
        Presence::Absent(proof) => proof.because(),
        Presence::Unknown(why) => why.because(),
    }
}

#[test]
fn a_running_process_is_present() {
    let child = sleeper();
    let seen = ProcessIdentity::of(child.0.id()).unwrap();
    let Presence::Present(it) = seen.observe() else { panic!("not present") };
    assert_eq!(it.pid().get(), child.0.id());
}

#[test]
fn an_identity_survives_storage() {
    let seen = ProcessIdentity::this_process().unwrap();
    let text = serde_json::to_string(&seen).unwrap();
    assert!(text.contains(&format!("\"start_ticks\":\"{}\"", seen.start_ticks)), "{text}");
    assert_eq!(serde_json::from_str::<ProcessIdentity>(&text).unwrap(), seen);
}

#[test]
fn a_stored_number_in_another_form_is_refused() {
    let text = serde_json::to_string(&ProcessIdentity::this_process().unwrap()).unwrap();
    let padded = text.replace("\"start_ticks\":\"", "\"start_ticks\":\"0");
    assert!(serde_json::from_str::<ProcessIdentity>(&padded).is_err());
}

#[test]
fn a_zombie_is_absent_because_it_has_ended() {
    let mut child = sleeper();
    let seen = ProcessIdentity::of(child.0.id()).unwrap();
    child.0.kill().unwrap();
    let answer = until(|| because(seen.observe()), |answer| *answer != "present");
    assert_eq!(answer, "it has ended");
}

#[test]
fn a_reaped_process_is_absent() {
    let mut child = sleeper();
    let seen = ProcessIdentity::of(child.0.id()).unwrap();
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    assert_eq!(because(seen.observe()), "no process has its number");
}

#[test]
fn a_number_with_another_start_stamp_belongs_to_another_process() {
    let child = sleeper();
    let mut seen = ProcessIdentity::of(child.0.id()).unwrap();
    seen.start_ticks -= 1;
    seen.pidfd_inode = None;
    assert_eq!(because(seen.observe()), "its number belongs to another process");
}

#[test]
fn a_number_with_another_pidfd_inode_belongs_to_another_process() {
    let child = sleeper();
    let mut seen = ProcessIdentity::of(child.0.id()).unwrap();
    let Some(inode) = seen.pidfd_inode else {
        println!("not looked at: this kernel has no pidfd inodes");
        return;
    };
    seen.pidfd_inode = Some(inode + 1);
    assert_eq!(because(seen.observe()), "its number belongs to another process");
}

#[test]
fn the_number_of_a_thread_is_no_process() {
    let (tell, told) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let link = std::fs::read_link("/proc/thread-self").unwrap();
        let number: u32 = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
        tell.send(number).unwrap();
        released.recv().unwrap_err();
    });
    let mut seen = ProcessIdentity::this_process().unwrap();
    seen.pid = Pid::try_from(told.recv().unwrap()).unwrap();
    assert_eq!(because(seen.observe()), "its number belongs to a thread of another process");
    drop(release);
    thread.join().unwrap();
}

#[test]
fn an_earlier_boot_of_this_machine_proves_absence() {
    let mut seen = ProcessIdentity::this_process().unwrap();
    seen.boot_id = "00000000-0000-4000-8000-000000000001".to_owned();
    let expected = match seen.observer.machine_id {
        Some(_) => "the machine was started again",
        None => "another boot, and the machine is not known to be the same",
    };
    assert_eq!(because(seen.observe()), expected);
}

#[test]
fn a_process_of_another_pid_namespace_is_unknown() {
    let mut seen = ProcessIdentity::this_process().unwrap();
    seen.observer.pid_namespace += 1;
    assert_eq!(because(seen.observe()), "it was recorded in another process namespace");
}

#[test]
fn a_verified_handle_signals_its_process() {
    let mut child = sleeper();
    let seen = ProcessIdentity::of(child.0.id()).unwrap();
    let Presence::Present(it) = seen.observe() else { panic!("not present") };
    it.signal(Signal::Term).unwrap();
    assert_eq!(child.0.wait().unwrap().signal(), Some(15));
}

#[test]
fn a_verified_handle_reaches_nobody_after_the_reaping() {
    let mut child = sleeper();
    let seen = ProcessIdentity::of(child.0.id()).unwrap();
    let Presence::Present(it) = seen.observe() else { panic!("not present") };
    child.0.kill().unwrap();
    child.0.wait().unwrap();
    assert_eq!(it.signal(Signal::Term), Err(SignalError::Gone));
}

#[test]
fn a_leader_whose_first_thread_ended_is_present() {
    let script = "import ctypes,threading,time\nthreading.Thread(target=time.sleep,args=(300,)).start()\nctypes.CDLL(None).pthread_exit(None)";
    let spawned = Command::new("python3").args(["-c", script]).stdin(Stdio::null()).spawn();
    let Ok(child) = spawned else {
        println!("not looked at: there is no python3");
        return;
    };
    let child = Sleeper(child);
    let pid = Pid::try_from(child.0.id()).unwrap();
    let seen = ProcessIdentity::of(pid).unwrap();
    let stat = until(
        || placement_identity::read_stat(pid).unwrap().state,
        |state| *state == placement_identity::ProcessState::Ended,
    );
    assert_eq!(stat, placement_identity::ProcessState::Ended);
    assert_eq!(because(seen.observe()), "present");
}

#[test]
fn a_group_has_members_then_zombies_then_nobody() {
    let mut child = sleeper();
    let seen = ProcessIdentity::of(child.0.id()).unwrap();
    let look = || observe_group(seen.pgid, &seen.boot_id, &seen.observer);
    assert!(matches!(look(), GroupPresence::Members(1)));
    child.0.kill().unwrap();
    if proc_view() == ProcView::Restricted {
        child.0.wait().unwrap();
        let answer = look();
        assert!(matches!(answer, GroupPresence::Unknown(UnknownWhy::ProcRestricted)), "{answer:?}");
        println!("only the refusal was looked at: /proc is restricted");
        return;
    }
    let ended = until(look, |answer| matches!(answer, GroupPresence::ZombiesOnly));
    assert!(matches!(ended, GroupPresence::ZombiesOnly), "{ended:?}");
    child.0.wait().unwrap();
    let GroupPresence::Absent(proof) = look() else { panic!("not absent") };
    assert_eq!(proof.pgid(), seen.pgid);
    assert_eq!(proof.because(), "no process belongs to the group and the kernel does not know it");
}

#[test]
fn a_group_of_an_earlier_boot_is_absent_on_a_known_machine() {
    let observer = Observer::here().unwrap();
    let answer =
        observe_group(Pid::this_process(), "00000000-0000-4000-8000-000000000001", &observer);
    match observer.machine_id {
        Some(_) => assert!(matches!(answer, GroupPresence::Absent(_)), "{answer:?}"),
        None => assert!(matches!(answer, GroupPresence::Unknown(_)), "{answer:?}"),
    }
}

fn found(scan: MarkerScan) -> Vec<ProcessIdentity> {
    match scan {
        MarkerScan::Found(found) | MarkerScan::Unknown { found, .. } => found,
        MarkerScan::None => Vec::new(),
    }
}

/// A value that no other run of these tests uses.
fn value() -> String {
    format!("run-{}", std::process::id())
}

fn marked(name: &str, value: &str) -> Sleeper {
    let mut command = Command::new("sleep");
    command.arg("300").env(name, value).stdin(Stdio::null());
    Sleeper(command.spawn().expect("sleep is installed"))
}

#[test]
fn a_marked_process_is_found() {
    let own = ProcessIdentity::this_process().unwrap();
    let child = marked("PLACEMENT_TEST_FOUND", &value());
    let marker = Marker {
        name: "PLACEMENT_TEST_FOUND",
        value: &value(),
        not_older_than_start_ticks: own.start_ticks,
        except: &[],
    };
    let found = found(scan_marker(&marker));
    assert_eq!(found.iter().map(|it| it.pid.get()).collect::<Vec<_>>(), [child.0.id()]);
}

#[test]
fn a_longer_value_and_an_older_process_are_not_found() {
    let longer = format!("{}-and-more", value());
    let child = marked("PLACEMENT_TEST_OTHER", &longer);
    let stamp = ProcessIdentity::of(child.0.id()).unwrap().start_ticks;
    let shorter = Marker {
        name: "PLACEMENT_TEST_OTHER",
        value: &value(),
        not_older_than_start_ticks: 0,
        except: &[],
    };
    assert!(found(scan_marker(&shorter)).is_empty());
    let later = Marker { value: &longer, not_older_than_start_ticks: stamp + 1, ..shorter };
    assert!(found(scan_marker(&later)).is_empty());
}

#[test]
fn a_zombie_and_an_excepted_process_do_not_count() {
    let mut child = marked("PLACEMENT_TEST_GONE", &value());
    let identity = ProcessIdentity::of(child.0.id()).unwrap();
    let marker = Marker {
        name: "PLACEMENT_TEST_GONE",
        value: &value(),
        not_older_than_start_ticks: identity.start_ticks,
        except: &[],
    };
    let known = [identity.clone()];
    assert!(found(scan_marker(&Marker { except: &known, ..marker })).is_empty());
    child.0.kill().unwrap();
    until(|| because(identity.observe()), |answer| *answer == "it has ended");
    assert!(found(scan_marker(&marker)).is_empty());
}

#[test]
fn a_process_without_an_environment_does_not_make_the_scan_doubtful_() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        println!("not looked at: other users' processes may hide their environment");
        return;
    }
    let mut command = Command::new("sleep");
    command.arg("300").env_clear().stdin(Stdio::null());
    let child = Sleeper(command.spawn().unwrap());
    let stamp = ProcessIdentity::of(child.0.id()).unwrap().start_ticks;
    let marker = Marker {
        name: "PLACEMENT_TEST_EMPTY",
        value: &value(),
        not_older_than_start_ticks: stamp,
        except: &[],
    };
    // Other tests of this process start children all the time; only a quiet moment's answer counts.
    let quiet = until(|| scan_marker(&marker), |scan| matches!(scan, MarkerScan::None));
    assert!(matches!(quiet, MarkerScan::None), "{quiet:?}");
}
