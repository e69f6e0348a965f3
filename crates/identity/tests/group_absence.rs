//! A group is never called absent while it has a member: not a relay whose members fork and end all
//! the time, and not one that a restricted `/proc` hides.

#![expect(clippy::disallowed_methods, reason = "these tests need children")]
#![expect(clippy::print_stdout, reason = "a test says what it does not cover here")]

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use placement_identity::{
    GroupPresence, Marker, MarkerDoubt, MarkerScan, Observer, Pid, ProcView, UnknownWhy, boot_id,
    list_processes, observe_group, proc_view, scan_marker,
};
use placement_testkit::{TempRoot, demoted, is_root, wait_until};

/// How long a broken run may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a relay is looked at.
const LOOKS: usize = 200;
/// How often it is to have escaped a scan by then: a relay that every scan sees shows nothing.
const ESCAPES: usize = 5;

/// Each member starts the next one as a copy of itself, whose stack is deeper: so every now and then one
/// begins anew. Numbers go up and down by turns where they can be chosen, and so a reader that goes by
/// them misses who is behind it. The last member says that it was there until the end.
const RELAY: &str = "n=0; f() { [ -e stop ] && { : > stopped; exit; }; n=$((n+1)); \
     [ $n -gt 200 ] && exec /bin/sh relay; \
     [ -e choose ] && echo $((n % 2 * 3000 + 1000 + n)) > /proc/sys/kernel/ns_last_pid; f & }; f";
/// Said to the inner test that it is where numbers can be chosen.
const APART: &str = "PLACEMENT_TEST_APART";

/// The group that the inner test looks at, and what it is to find there.
const GROUP: &str = "PLACEMENT_TEST_GROUP";
/// The marker that the hidden process carries.
const MARKER: &str = "PLACEMENT_TEST_HIDDEN";
/// The boot, which `/proc` does not tell where it shows processes only.
const BOOT: &str = "PLACEMENT_TEST_BOOT";

fn look_at(group: Pid, boot: &str) -> GroupPresence {
    observe_group(group, boot, &Observer::here().expect("namespaces are told"))
}

/// Members that each start the next one and end: at every moment there is one, and few live for long.
struct Relay {
    first: Child,
    group: Pid,
    directory: TempRoot,
}

impl Relay {
    fn start(chooses: bool) -> Self {
        let directory = TempRoot::new();
        if chooses {
            std::fs::write(directory.join("choose"), "").expect("it is ours");
        }
        std::fs::write(directory.join("relay"), RELAY).expect("it is ours");
        let mut command = Command::new("/bin/sh");
        command.arg("relay").current_dir(directory.path()).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let first = command.spawn().expect("there is a shell");
        let group = Pid::try_from(first.id()).expect("a process has a number");
        Self { first, group, directory }
    }

    fn look(&self) -> GroupPresence {
        look_at(self.group, &boot_id().expect("the boot is told"))
    }

    fn stop(&self) {
        std::fs::write(self.directory.join("stop"), "").expect("it is ours");
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // Its directory stays as long as a member looks for the file in it.
        self.stop();
        let deadline = Instant::now() + PATIENCE;
        while !self.directory.join("stopped").exists() && Instant::now() < deadline {
            std::thread::yield_now();
        }
    }
}

/// Looks at a relay, which must never be absent, until it has escaped so many scans.
fn watch_relay(escapes_wanted: usize) {
    let mut relay = Relay::start(escapes_wanted > 0);
    relay.first.wait().expect("it is our child");
    let (mut looks, mut escapes) = (0, 0);
    let deadline = Instant::now() + PATIENCE;
    while looks < LOOKS || escapes < escapes_wanted {
        match relay.look() {
            GroupPresence::Absent(proof) => {
                panic!("a relay runs, and {} is said to be gone: {}", proof.pgid(), proof.because())
            }
            GroupPresence::Unknown(UnknownWhy::GroupProbe) => escapes += 1,
            GroupPresence::Members(_) | GroupPresence::ZombiesOnly | GroupPresence::Unknown(_) => {}
        }
        looks += 1;
        assert!(Instant::now() < deadline, "{looks} looks and {escapes} escapes only");
    }
    relay.stop();
    let stopped = relay.directory.join("stopped");
    wait_until(PATIENCE, "the last member", || stopped.exists());
    if proc_view() == ProcView::Full {
        let is_gone = || matches!(relay.look(), GroupPresence::Absent(_));
        wait_until(PATIENCE, "the end of the relay", is_gone);
    }
    println!("{looks} looks, {escapes} of them saw no member of a group that has one");
}

/// Looks where numbers can be chosen; the other test brings it there.
#[test]
fn an_apart_relay_is_watched() {
    if std::env::var_os(APART).is_some() {
        watch_relay(ESCAPES);
    } else {
        println!("numbers are not chosen here: the other test runs this one");
    }
}

#[test]
fn a_relay_of_forking_members_is_never_absent_though_it_escapes_scans() {
    let mut unshare = unshare();
    unshare.args(["--mount-proc", "/bin/sh", "-c"]);
    unshare.args(["echo 1000 > /proc/sys/kernel/ns_last_pid || exit 77; \"$@\"; exit $?", "sh"]);
    unshare.arg(own_program()).env(APART, "1");
    if said_by(&mut unshare, "an_apart_relay_is_watched").is_none() {
        println!("it is watched here, where it escapes no scan");
        watch_relay(0);
    }
}

/// Looks at a group that `/proc` hides; the other test starts it where that is so.
#[test]
fn a_hidden_member_looks() {
    let Ok(group) = std::env::var(GROUP) else {
        println!("nothing is hidden here: the other test runs this one");
        return;
    };
    let group = Pid::try_from(group.parse::<u32>().unwrap()).unwrap();
    wait_until(PATIENCE, "the group", || {
        let number = rustix::process::Pid::from_raw(i32::try_from(group.get()).unwrap());
        let probe = rustix::process::test_kill_process_group(number.unwrap());
        probe != Err(rustix::io::Errno::SRCH)
    });
    assert_eq!(proc_view(), ProcView::Restricted);
    let boot = std::env::var(BOOT).unwrap();
    let look = |group| look_at(group, &boot);
    let seen = list_processes();
    let is_seen = seen.seen().iter().any(|stat| stat.pgid == Some(group));
    match look(group) {
        GroupPresence::Members(_) => assert!(is_seen),
        GroupPresence::Unknown(UnknownWhy::ProcRestricted) => assert!(!is_seen),
        // Without the boot nothing is told of anybody.
        GroupPresence::Unknown(_) if boot_id().is_err() => {}
        other @ (GroupPresence::ZombiesOnly
        | GroupPresence::Absent(_)
        | GroupPresence::Unknown(_)) => panic!("{other:?}"),
    }
    // Nobody has this number, and yet nobody can tell.
    match look(Pid::try_from(i32::MAX).unwrap()) {
        GroupPresence::Unknown(UnknownWhy::ProcRestricted) => {}
        GroupPresence::Unknown(_) if boot_id().is_err() => {}
        other @ (GroupPresence::Members(_)
        | GroupPresence::ZombiesOnly
        | GroupPresence::Absent(_)
        | GroupPresence::Unknown(_)) => panic!("{other:?}"),
    }
    let value = std::env::var(MARKER).unwrap();
    let marker = Marker { name: MARKER, value: &value, not_older_than_start_ticks: 0, except: &[] };
    match scan_marker(&marker) {
        MarkerScan::Unknown { why: MarkerDoubt::ProcRestricted, .. } => {}
        other @ (MarkerScan::Found(_) | MarkerScan::None | MarkerScan::Unknown { .. }) => {
            panic!("{other:?}")
        }
    }
    println!("the member is {}", if is_seen { "seen" } else { "hidden" });
}

/// Runs the inner test in a PID and a mount namespace of its own, with these options of `/proc`, as
/// a user who is not the one of the group; nothing where that cannot be had.
fn looked_under(options: &str) -> Option<String> {
    // A user of a namespace with one user sees its own processes whatever is hidden.
    let other_user: Vec<String> = match demoted("true") {
        Ok(command) => {
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            let mut words: Vec<_> = words.map(|it| it.to_string_lossy().into_owned()).collect();
            words.pop();
            words
        }
        Err(reason) => {
            println!("the member is of the same user: {reason}");
            Vec::new()
        }
    };
    let script = format!(
        "mount -t proc -o {options} proc /proc || exit 77; setsid sleep 300 & \
         export {GROUP}=$!; \"$@\"; code=$?; kill $!; exit $code"
    );
    let mut unshare = unshare();
    unshare.args(["/bin/sh", "-c", &script, "sh"]).args(other_user);
    unshare.arg(own_program());
    unshare
        .env(MARKER, format!("hidden-{}", std::process::id()))
        .env(BOOT, boot_id().expect("the boot is told"));
    said_by(&mut unshare, "a_hidden_member_looks")
}

/// Makes a command in a mount and a PID namespace of its own.
fn unshare() -> Command {
    let mut unshare = Command::new("unshare");
    if !is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    unshare.args(["--mount", "--pid", "--fork", "--kill-child"]);
    unshare
}

fn own_program() -> PathBuf {
    std::env::current_exe().expect("this program has a path")
}

/// Runs an inner test by a command that ends with this program; nothing where it does not come so far.
fn said_by(command: &mut Command, test: &str) -> Option<String> {
    let output = match command.args(["--exact", test, "--nocapture"]).output() {
        Ok(output) => output,
        Err(error) => {
            println!("{test} looks at nothing: unshare: {error}");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    if !said.contains("running 1 test") {
        println!("{test} looks at nothing here: {}", complained.trim());
        return None;
    }
    assert!(output.status.success(), "{test}: {said}{complained}");
    println!("{said}");
    Some(said)
}

#[test]
fn a_group_that_proc_hides_is_unknown() {
    for (options, hides) in
        [("hidepid=invisible", true), ("hidepid=noaccess", false), ("hidepid=ptraceable", true)]
    {
        let Some(said) = looked_under(options) else { continue };
        if is_root() && hides {
            assert!(said.contains("the member is hidden"), "{options}: {said}");
        }
    }
}

#[test]
fn a_group_is_unknown_where_proc_shows_processes_only() {
    if let Some(said) = looked_under("subset=pid") {
        assert!(said.contains("the member is seen"), "{said}");
    }
}
