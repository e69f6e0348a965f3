//! Under a container engine's system call filter, which answers `clone3` with `ENOSYS`.

#![expect(unsafe_code, reason = "installing a filter")]

use placement_contract::Exit;
use placement_process::{
    Birthplace, Containment, ProbeState, SpawnError, Tree, become_subreaper, spawn_probe,
};

use crate::support::{
    PATIENCE, Shell, all, end_with_proof, exit_of, finish, in_own_process, leaf, line,
};

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_ANY: u16 = 0x45;
const ANSWER: u16 = 0x06;

const NO_SUCH_CALL: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
const NOT_PERMITTED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();

/// Makes this thread, and what it starts, see no `clone3`.
fn refuse_clone3() {
    install(&[
        load(0),
        jump(JUMP_IF_EQUAL, number(libc::SYS_clone3), 0, 1),
        answer(NO_SUCH_CALL),
        answer(libc::SECCOMP_RET_ALLOW),
    ]);
}

/// Makes this thread, and what it starts, see no `clone3` and no new namespaces, as a container
/// engine does.
fn refuse_namespaces() {
    let namespaces = (libc::CLONE_NEWUSER | libc::CLONE_NEWPID).unsigned_abs();
    install(&[
        load(0),
        jump(JUMP_IF_EQUAL, number(libc::SYS_clone3), 0, 1),
        answer(NO_SUCH_CALL),
        jump(JUMP_IF_EQUAL, number(libc::SYS_clone), 0, 3),
        // The lower half of the first argument.
        load(16),
        jump(JUMP_IF_ANY, namespaces, 0, 1),
        answer(NOT_PERMITTED),
        answer(libc::SECCOMP_RET_ALLOW),
    ]);
}

fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).expect("a system call number")
}

fn load(offset: u32) -> libc::sock_filter {
    libc::sock_filter { code: LOAD, jt: 0, jf: 0, k: offset }
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

fn answer(k: u32) -> libc::sock_filter {
    libc::sock_filter { code: ANSWER, jt: 0, jf: 0, k }
}

fn install(filter: &[libc::sock_filter]) {
    let length = u16::try_from(filter.len()).expect("a short filter");
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    // SAFETY: this option takes numbers.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: the program and its filter live through the call, which copies them.
    let answer =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(answer, 0);
}

#[test]
fn a_program_starts_without_clone3() {
    in_own_process("filtered::a_program_starts_without_clone3", || {
        refuse_clone3();
        let (gated, output) = Shell::new("echo here").gated();
        assert_eq!(gated.identity().unwrap().pgid, gated.pid());
        let leader = gated.open_gate().unwrap().leader;
        assert_eq!(all(output), "here\n");
        finish(leader);
    });
}

#[test]
fn a_leaf_cannot_be_entered_without_clone3_and_the_error_says_so() {
    in_own_process(
        "filtered::a_leaf_cannot_be_entered_without_clone3_and_the_error_says_so",
        || {
            let Some(leaf) = leaf("filtered") else { return };
            refuse_clone3();
            let refused = spawn_probe(Birthplace::Leaf(&leaf)).unwrap_err();
            let SpawnError::Clone(errno) = refused else { panic!("{refused}") };
            assert_eq!(errno.name(), "ENOSYS");
            drop(leaf.remove().unwrap());
        },
    );
}

#[test]
fn the_probe_escapes_without_clone3() {
    in_own_process("filtered::the_probe_escapes_without_clone3", || {
        become_subreaper().unwrap();
        refuse_clone3();
        let probe = spawn_probe(Birthplace::Here).unwrap();
        assert_eq!(probe.wait(PATIENCE), ProbeState::Escaped);
        let (leader, lifeline, _) = probe.into_parts();
        assert_eq!(exit_of(&leader), Exit::Code { code: 0 });
        drop(lifeline);
        finish(leader);
    });
}

#[test]
fn a_namespace_is_made_without_clone3() {
    in_own_process("filtered::a_namespace_is_made_without_clone3", || {
        let shell = Shell { birthplace: Birthplace::PidNamespace, ..Shell::new("echo $$") };
        if let Err(error) = shell.try_gated() {
            println!("not looked at: {error}");
            return;
        }
        refuse_clone3();
        let (gated, output) = shell.gated();
        let opened = gated.open_gate().unwrap();
        assert_eq!(line(&output), "2");
        let namespace = Containment::PidNamespace(opened.namespace.unwrap());
        drop(end_with_proof(&mut Tree::new(namespace, opened.leader)));
    });
}

#[test]
fn a_container_that_refuses_namespaces_is_named_and_nothing_is_left() {
    in_own_process(
        "filtered::a_container_that_refuses_namespaces_is_named_and_nothing_is_left",
        || {
            refuse_namespaces();
            let refused = spawn_probe(Birthplace::PidNamespace).unwrap_err();
            let SpawnError::Clone(errno) = refused else { panic!("{refused}") };
            assert_eq!(errno.name(), "EPERM");
            assert_eq!(std::fs::read_to_string("/proc/thread-self/children").unwrap(), "");
        },
    );
}
