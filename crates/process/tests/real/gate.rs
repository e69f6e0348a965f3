//! The exec gate and what becomes of a process that is not let through.

use std::ffi::CString;
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Shell, all, exit_of, finish, line, until, wait_for};
use placement_contract::Exit;
use placement_identity::{Pid, Presence, ProcessIdentity};
use placement_process::{
    Birthplace, ChildStep, ExecFailed, ExecOutcome, ExecWay, OnParentDeath, Opened, Program,
    Session, Spawn, SpawnError, dev_null, spawn,
};

fn is_absent(identity: &ProcessIdentity) -> bool {
    matches!(identity.observe(), Presence::Absent(_))
}

/// Opens the gate of one program with no arguments but its name.
fn open(program: Program<'_>) -> Result<Opened, ExecFailed> {
    let null = dev_null().expect("a null device");
    let root = std::fs::File::open("/").expect("a root directory");
    let guard = crate::support::forking();
    let gated = spawn(&Spawn {
        program,
        argv: vec![c"program".into()],
        environment: vec![c"PATH=/usr/bin:/bin".into()],
        working_directory: root.as_fd(),
        stdin: null.as_fd(),
        stdout: null.as_fd(),
        stderr: null.as_fd(),
        birthplace: Birthplace::Here,
        on_parent_death: OnParentDeath::Die,
        session: Session::Inherited,
    })
    .expect("the process is created");
    drop(guard);
    gated.open_gate()
}

fn file(directory: &std::path::Path, name: &str, text: &str, mode: u32) -> CString {
    let path = directory.join(name);
    let _guard = crate::support::forking();
    std::fs::write(&path, text).expect("the file is written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("its mode");
    CString::new(path.to_str().expect("a text path")).expect("a path without NUL")
}

#[test]
fn the_program_does_not_run_before_the_gate_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let marker = directory.path().join("ran");
    let script = format!("echo ran > {}; echo done", marker.display());
    let shell = Shell::new(&script);
    let (gated, output) = shell.gated();
    let identity = gated.identity().unwrap();
    assert_eq!(identity.pgid, gated.pid());
    assert!(matches!(identity.observe(), Presence::Present(_)));
    assert!(!marker.exists());
    let leader = gated.open_gate().unwrap().leader;
    assert_eq!(line(&output), "done");
    assert!(marker.exists());
    finish(leader);
}

#[test]
fn a_dropped_gate_means_that_the_program_never_runs() {
    let directory = tempfile::tempdir().unwrap();
    let marker = directory.path().join("ran");
    let script = format!("echo ran > {}", marker.display());
    let (gated, output) = Shell::new(&script).gated();
    let identity = gated.identity().unwrap();
    drop(gated);
    assert!(is_absent(&identity));
    assert_eq!(all(output), "");
    assert!(!marker.exists());
}

#[test]
fn the_identity_is_the_same_before_and_after_exec() {
    let (gated, _output) = Shell::new("exec sleep 300").gated();
    let before = gated.identity().unwrap();
    let leader = gated.open_gate().unwrap().leader;
    assert_eq!(leader.identity().unwrap(), before);
    finish(leader);
}

#[test]
fn a_runner_that_dies_before_the_release_leaves_no_program() {
    let directory = tempfile::tempdir().unwrap();
    let marker = directory.path().join("ran");
    let told = directory.path().join("told");
    // A second process makes the gated child, tells its number and is killed.
    let script = format!("echo ran > {}", marker.display());
    let guard = crate::support::forking();
    #[expect(clippy::disallowed_methods, reason = "the test starts itself again")]
    let mut runner = std::process::Command::new("/proc/self/exe")
        .args(["gate::gated_and_told", "--exact", "--nocapture", "--test-threads=1"])
        .env("PLACEMENT_TEST_SCRIPT", &script)
        .env("PLACEMENT_TEST_TOLD", &told)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    drop(guard);
    let number = until("the number of the gated process", || {
        std::fs::read_to_string(&told).ok()?.strip_suffix('\n')?.parse::<u32>().ok()
    });
    let identity = ProcessIdentity::of(Pid::try_from(number).unwrap()).unwrap();
    runner.kill().unwrap();
    runner.wait().unwrap();
    until("the end of the gated process", || is_absent(&identity).then_some(()));
    assert!(!marker.exists());
}

/// The runner of the test above; without its variables it has nothing to do.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test above tells it what to do")]
fn gated_and_told() {
    let Some(script) = std::env::var_os("PLACEMENT_TEST_SCRIPT") else { return };
    let told = std::env::var_os("PLACEMENT_TEST_TOLD").unwrap();
    let shell =
        Shell { on_parent_death: OnParentDeath::Live, ..Shell::new(script.to_str().unwrap()) };
    let (gated, _output) = shell.gated();
    std::fs::write(told, format!("{}\n", gated.pid())).unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn a_missing_program_is_named_and_nothing_is_left() {
    let failed = open(Program::Path(c"/nonexistent/program")).unwrap_err();
    assert_eq!(failed.step, ChildStep::Exec);
    assert_eq!(failed.errno.name(), "ENOENT");
    assert_eq!(failed.exit, Some(Exit::Code { code: 127 }));
}

#[test]
fn a_file_without_execute_permission_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "plain", "#!/bin/sh\n", 0o600);
    assert_eq!(open(Program::Path(&path)).unwrap_err().errno.name(), "EACCES");
}

#[test]
fn a_file_of_no_format_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "noise", "no interpreter line\n", 0o700);
    assert_eq!(open(Program::Path(&path)).unwrap_err().errno.name(), "ENOEXEC");
}

#[test]
fn a_binary_runs_through_its_descriptor() {
    let binary = std::fs::File::open("/bin/true").unwrap();
    let program = Program::Descriptor { file: binary.as_fd(), fallback: Some(c"/bin/true") };
    let Opened { mut leader, way, .. } = open(program).unwrap();
    assert_eq!(way, ExecWay::AsGiven);
    assert_eq!(exit_of(&leader), Exit::Code { code: 0 });
    leader.reap().unwrap();
}

#[test]
fn a_script_falls_back_to_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "script", "#!/bin/sh\nexit 7\n", 0o700);
    let script = std::fs::File::open(path.to_str().unwrap()).unwrap();
    let program = Program::Descriptor { file: script.as_fd(), fallback: Some(&path) };
    let Opened { mut leader, way, .. } = open(program).unwrap();
    let ExecWay::FellBack(errno) = way else { panic!("{way:?}") };
    assert_eq!(errno.name(), "ENOENT");
    assert_eq!(exit_of(&leader), Exit::Code { code: 7 });
    leader.reap().unwrap();
}

#[test]
fn a_script_without_a_fallback_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "script", "#!/bin/sh\nexit 7\n", 0o700);
    let script = std::fs::File::open(path.to_str().unwrap()).unwrap();
    let program = Program::Descriptor { file: script.as_fd(), fallback: None };
    assert_eq!(open(program).unwrap_err().errno.name(), "ENOENT");
}

#[test]
fn a_path_that_names_another_file_is_not_fallen_back_to() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "script", "#!/bin/sh\nexit 7\n", 0o700);
    let other = file(directory.path(), "other", "#!/bin/sh\nexit 7\n", 0o700);
    let script = std::fs::File::open(path.to_str().unwrap()).unwrap();
    let program = Program::Descriptor { file: script.as_fd(), fallback: Some(&other) };
    assert_eq!(open(program).unwrap_err().step, ChildStep::Changed);
}

#[test]
fn a_path_that_failed_after_the_fallback_reports_the_second_failure() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "script", "#!/nonexistent/interpreter\n", 0o700);
    let script = std::fs::File::open(path.to_str().unwrap()).unwrap();
    let program = Program::Descriptor { file: script.as_fd(), fallback: Some(&path) };
    let failed = open(program).unwrap_err();
    assert_eq!((failed.step, failed.errno.name().as_str()), (ChildStep::Exec, "ENOENT"));
}

#[test]
fn a_failure_before_the_gate_names_its_step() {
    let null = dev_null().unwrap();
    let _guard = crate::support::forking();
    let failed = spawn(&Spawn {
        program: Program::Path(c"/bin/true"),
        argv: vec![c"true".into()],
        environment: vec![],
        working_directory: null.as_fd(),
        stdin: null.as_fd(),
        stdout: null.as_fd(),
        stderr: null.as_fd(),
        birthplace: Birthplace::Here,
        on_parent_death: OnParentDeath::Die,
        session: Session::Inherited,
    })
    .unwrap()
    .open_gate()
    .unwrap_err();
    assert_eq!(failed.step, ChildStep::WorkingDirectory);
    assert_eq!(failed.errno.name(), "ENOTDIR");
}

#[test]
fn a_launch_without_arguments_is_refused() {
    let null = dev_null().unwrap();
    let _guard = crate::support::forking();
    let refused = spawn(&Spawn {
        program: Program::Path(c"/bin/true"),
        argv: vec![],
        environment: vec![],
        working_directory: null.as_fd(),
        stdin: null.as_fd(),
        stdout: null.as_fd(),
        stderr: null.as_fd(),
        birthplace: Birthplace::Here,
        on_parent_death: OnParentDeath::Die,
        session: Session::Inherited,
    });
    assert_eq!(refused.unwrap_err(), SpawnError::NoArguments);
}

#[test]
fn the_outcome_can_be_awaited_by_polling() {
    let (gated, output) = Shell::new("echo here").gated();
    let mut released = gated.release();
    let opened = loop {
        wait_for("the exec", released.descriptor(), rustix::event::PollFlags::IN);
        released = match released.outcome() {
            ExecOutcome::Opened(opened) => break opened,
            ExecOutcome::Pending(released) => released,
            ExecOutcome::Failed(failed) => panic!("{failed}"),
        };
    };
    assert_eq!(line(&output), "here");
    finish(opened.leader);
}

#[test]
fn a_killed_gated_process_shows_as_a_signal_and_not_as_a_started_program() {
    let (gated, output) = Shell::new("echo ran").gated();
    let identity = gated.identity().unwrap();
    let Presence::Present(it) = identity.observe() else { panic!("not there") };
    it.signal(placement_process::Signal::Kill).unwrap();
    wait_for("the end", gated.pidfd(), rustix::event::PollFlags::IN);
    let mut leader = gated.open_gate().unwrap().leader;
    assert_eq!(exit_of(&leader), Exit::Signal { signal: 9, core: false });
    leader.reap().unwrap();
    assert_eq!(all(output), "");
}
