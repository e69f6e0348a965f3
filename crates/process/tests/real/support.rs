//! What the tests of real processes share.

#![expect(clippy::print_stdout, reason = "a test says why it did not look")]

use std::ffi::CString;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use placement_contract::Exit;
use placement_process::{
    Birthplace, CgroupLeaf, CgroupSite, Gated, Leader, LeafError, OnParentDeath, Pipe, Program,
    Session, Signal, Spawn, SpawnError, Tree, TreeGone, TreeState, dev_null, spawn,
};
pub(crate) use placement_testkit::in_own_process;
use rustix::event::{PollFd, PollFlags, Timespec};

/// How long anything may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Held while a process is made and while a program file is written: a process that is born with the
/// file open for writing would make its exec fail with `ETXTBSY`.
pub(crate) static FORKING: Mutex<()> = Mutex::new(());

pub(crate) fn forking() -> MutexGuard<'static, ()> {
    FORKING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a test child is made of; the output pipe is returned with it.
pub(crate) struct Shell<'a> {
    pub(crate) script: &'a str,
    pub(crate) birthplace: Birthplace<'a>,
    pub(crate) on_parent_death: OnParentDeath,
}

impl<'a> Shell<'a> {
    pub(crate) fn new(script: &'a str) -> Self {
        Self { script, birthplace: Birthplace::Here, on_parent_death: OnParentDeath::Die }
    }

    pub(crate) fn gated(&self) -> (Gated, OwnedFd) {
        self.try_gated().expect("the process is created")
    }

    pub(crate) fn try_gated(&self) -> Result<(Gated, OwnedFd), SpawnError> {
        let output = Pipe::from_child().expect("a pipe");
        let null = dev_null().expect("a null device");
        let root = std::fs::File::open("/").expect("a root directory");
        let script = CString::new(self.script).expect("a script without NUL");
        let _guard = forking();
        let gated = spawn(&Spawn {
            program: Program::Path(c"/bin/sh"),
            argv: vec![c"sh".into(), c"-c".into(), script],
            environment: vec![c"PATH=/usr/bin:/bin".into()],
            working_directory: root.as_fd(),
            stdin: null.as_fd(),
            stdout: output.theirs.as_fd(),
            stderr: null.as_fd(),
            birthplace: self.birthplace,
            on_parent_death: self.on_parent_death,
            session: Session::Inherited,
        })?;
        Ok((gated, output.ours))
    }

    pub(crate) fn start(&self) -> (Leader, OwnedFd) {
        let (gated, output) = self.gated();
        (gated.open_gate().expect("the program starts").leader, output)
    }
}

/// Asks again and again until the answer is there or patience ends.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what} did not happen in time");
        std::thread::yield_now();
    }
}

/// Waits for an event on a descriptor.
pub(crate) fn wait_for(what: &str, descriptor: BorrowedFd<'_>, flags: PollFlags) {
    let limit = Timespec::try_from(PATIENCE).expect("patience fits");
    let mut polled = [PollFd::from_borrowed_fd(descriptor, flags)];
    let ready = rustix::event::poll(&mut polled, Some(&limit)).expect("poll works");
    assert!(ready > 0, "{what} did not happen in time");
}

/// Waits for the exit, which is observed and not yet reaped.
pub(crate) fn exit_of(leader: &Leader) -> Exit {
    wait_for("the exit", leader.exit_descriptor(), PollFlags::IN);
    leader.observe_exit().expect("the exit is observable").expect("the descriptor said so")
}

/// Reads up to the end of the line, waiting for it.
pub(crate) fn line(output: &OwnedFd) -> String {
    let mut text = Vec::new();
    loop {
        wait_for("a line", output.as_fd(), PollFlags::IN);
        let mut byte = [0_u8; 1];
        match rustix::io::read(output, &mut byte) {
            Ok(1) if byte != *b"\n" => text.extend(byte),
            Ok(_) => return String::from_utf8(text).expect("text"),
            Err(error) => panic!("reading a line: {error:?}"),
        }
    }
}

/// Reads to the end, waiting for it.
pub(crate) fn all(output: OwnedFd) -> String {
    let flags = rustix::fs::fcntl_getfl(&output).expect("flags");
    rustix::fs::fcntl_setfl(&output, flags & !rustix::fs::OFlags::NONBLOCK).expect("blocking");
    let mut text = String::new();
    std::fs::File::from(output).read_to_string(&mut text).expect("text");
    text
}

/// Makes a leaf, or says why this machine lets nobody make one here.
pub(crate) fn leaf(name: &str) -> Option<CgroupLeaf> {
    let site = match CgroupSite::find() {
        Ok(site) => site,
        Err(error) => {
            println!("not looked at: {error}");
            return None;
        }
    };
    match site.create(&format!("pl-test-{}-{name}", std::process::id())) {
        Ok(leaf) => Some(leaf),
        Err(LeafError::Create(errno)) => {
            assert!(
                ["EACCES", "EROFS", "EPERM"].contains(&errno.name().as_str()),
                "refused with {errno}"
            );
            println!("not looked at: no control group can be made here ({errno})");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Kills and reaps until the proof is there, as a runner's loop would.
pub(crate) fn end(tree: &mut Tree) {
    drop(end_with_proof(tree));
}

pub(crate) fn end_with_proof(tree: &mut Tree) -> TreeGone {
    until("the end of the tree", || {
        tree.kill().expect("the tree can be killed");
        if tree.state() != TreeState::Empty {
            return None;
        }
        tree.reap_leader().ok()?;
        tree.prove_gone().ok()
    })
}

/// Ends a leader that has no tree to speak of.
pub(crate) fn finish(mut leader: Leader) -> Exit {
    // It may have ended by itself.
    leader.signal(Signal::Kill).ok();
    exit_of(&leader);
    leader.reap().expect("it has ended")
}
