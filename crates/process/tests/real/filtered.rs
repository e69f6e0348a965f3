//! Under a container engine's system call filter, which answers `clone3` with `ENOSYS`.

#![expect(unsafe_code, reason = "installing a filter")]

use placement_contract::Exit;
use placement_process::{ProbeState, SpawnError, become_subreaper, spawn_probe};

use crate::support::{PATIENCE, Shell, all, exit_of, finish, in_own_process, leaf};

/// Makes this thread, and what it starts, see no `clone3`.
fn refuse_clone3() {
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const ANSWER: u16 = 0x06;
    let clone3 = u32::try_from(libc::SYS_clone3).expect("a system call number");
    let no_such_call = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let filter = [
        libc::sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        libc::sock_filter { code: JUMP_IF_EQUAL, jt: 0, jf: 1, k: clone3 },
        libc::sock_filter { code: ANSWER, jt: 0, jf: 0, k: no_such_call },
        libc::sock_filter { code: ANSWER, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_ptr().cast_mut() };
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
            let refused = spawn_probe(Some(&leaf)).unwrap_err();
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
        let probe = spawn_probe(None).unwrap();
        assert_eq!(probe.wait(PATIENCE), ProbeState::Escaped);
        let (leader, lifeline) = probe.into_parts();
        assert_eq!(exit_of(&leader), Exit::Code { code: 0 });
        drop(lifeline);
        finish(leader);
    });
}
