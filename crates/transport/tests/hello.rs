//! The first exchange, both roles.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use placement_contract::{AttemptId, Generation, RecipientId};
use placement_protocol::{
    ControlCall, ControlRequest, Hello, HelloRefused, Kind, LinkKind, RefusedWhy, Token,
    VersionRange, Welcome,
};
use placement_transport::{
    Admitted, Gate, HelloError, Link, LinkError, Silence, Stream, Verdict, open, pair,
};
use std::time::{Duration, Instant};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

fn attempt() -> AttemptId {
    AttemptId::parse("build-17").unwrap()
}

fn recipient() -> RecipientId {
    RecipientId::parse("host-1").unwrap()
}

fn token() -> Token {
    Token::new([7; 32])
}

fn control() -> Hello {
    Hello::control(attempt(), token())
}

/// Runs the exchange against a runner of `build-17` that serves one kind of link.
fn exchange(
    served: LinkKind,
    spoken: LinkKind,
    hello: &Hello,
) -> (Result<Welcome, HelloError>, Result<Admitted, HelloError>) {
    let (near, far) = pair().unwrap();
    let runner = std::thread::spawn(move || {
        let mut link = Link::new(Stream::adopt(far).unwrap(), served);
        let (attempt, token) = (attempt(), token());
        let gate = match served {
            LinkKind::HostPort => Gate::host_port(),
            LinkKind::Control | LinkKind::Data => Gate::attempt(served, &attempt, &token),
        };
        gate.admit(&mut link, soon())
    });
    let mut link = Link::new(Stream::adopt(near).unwrap(), spoken);
    let opened = open(&mut link, hello, soon());
    (opened, runner.join().unwrap())
}

fn refused(served: LinkKind, spoken: LinkKind, hello: &Hello) -> RefusedWhy {
    let (opened, admitted) = exchange(served, spoken, hello);
    let (Err(HelloError::Refused(near)), Err(HelloError::Refused(far))) = (opened, admitted) else {
        panic!("a refusal is told to both");
    };
    assert_eq!(near, far);
    near.reason
}

/// Asserts that the hello got no answer and returns why.
fn silent(hello: &Hello) -> Silence {
    let (opened, admitted) = exchange(LinkKind::Control, LinkKind::Control, hello);
    assert_eq!(opened, Err(HelloError::Link(LinkError::Closed)));
    let Err(HelloError::Silent(silence)) = admitted else { panic!("the gate knows why") };
    silence
}

#[test]
fn the_right_hello_is_welcome_on_every_link() {
    let data = Hello::data(attempt(), token(), Generation::new(3), recipient());
    for (link, hello) in [
        (LinkKind::HostPort, Hello::host_port()),
        (LinkKind::Control, control()),
        (LinkKind::Data, data),
    ] {
        let (opened, admitted) = exchange(link, link, &hello);
        assert_eq!(opened.unwrap().version, 1);
        let admitted = admitted.unwrap();
        assert_eq!(admitted.generation, hello.generation);
        assert_eq!(admitted.recipient, hello.recipient);
    }
}

#[test]
fn a_wrong_token_gets_no_answer() {
    let mut near_miss = [7; 32];
    near_miss[31] = 6;
    for token in [[0; 32], near_miss] {
        let hello = Hello::control(attempt(), Token::new(token));
        assert_eq!(silent(&hello), Silence::Token);
    }
}

#[test]
fn a_wrong_token_is_not_told_about_versions_or_attempts() {
    let other = AttemptId::parse("build-18").unwrap();
    let versions = VersionRange { min: 2, max: 3 };
    let hello = Hello { versions, ..Hello::control(other, Token::new([0; 32])) };
    assert_eq!(silent(&hello), Silence::Token);
}

#[test]
fn a_hello_without_a_token_gets_no_answer() {
    assert_eq!(silent(&Hello::host_port()), Silence::Token);
    let bare = Hello { token: None, ..control() };
    assert!(matches!(silent(&bare), Silence::Malformed(_)));
}

#[test]
fn another_attempt_is_refused() {
    let other = AttemptId::parse("build-18").unwrap();
    let hello = Hello::control(other, token());
    assert_eq!(refused(LinkKind::Control, LinkKind::Control, &hello), RefusedWhy::Attempt);
}

#[test]
fn a_hello_for_the_other_link_is_refused() {
    assert_eq!(refused(LinkKind::Data, LinkKind::Data, &control()), RefusedWhy::Link);
}

#[test]
fn a_peer_without_a_common_version_is_told_ours() {
    for versions in [VersionRange { min: 2, max: 9 }, VersionRange { min: 9, max: 9 }] {
        let hello = Hello { versions, ..control() };
        let (opened, _) = exchange(LinkKind::Control, LinkKind::Control, &hello);
        let expected = HelloRefused::new(RefusedWhy::Version);
        assert_eq!(opened, Err(HelloError::Refused(expected)));
        assert_eq!(expected.versions, VersionRange { min: 1, max: 1 });
    }
}

#[test]
fn a_newer_peer_that_still_speaks_our_version_is_welcome() {
    let hello = Hello { versions: VersionRange { min: 1, max: 7 }, ..control() };
    let (opened, _) = exchange(LinkKind::Control, LinkKind::Control, &hello);
    assert_eq!(opened.unwrap().version, 1);
}

#[test]
fn a_call_before_the_hello_gets_no_answer() {
    let request = ControlRequest { attempt_id: attempt(), probe: 1, call: ControlCall::Status };
    let (attempt, token) = (attempt(), token());
    let gate = Gate::attempt(LinkKind::Control, &attempt, &token);
    assert!(matches!(
        gate.judge(&request.to_frame().unwrap()),
        Verdict::Silent(Silence::Malformed(_))
    ));
}

#[test]
fn judging_makes_the_frames_that_a_loop_queues() {
    let (attempt, token) = (attempt(), token());
    let gate = Gate::attempt(LinkKind::Control, &attempt, &token);
    let Verdict::Admitted(admitted) = gate.judge(&control().to_frame().unwrap()) else {
        panic!("it is the right hello");
    };
    assert_eq!(admitted.welcome().kind(), Kind::Welcome);
}

#[test]
fn a_peer_that_says_nothing_is_waited_for_until_the_deadline() {
    let (near, far) = pair().unwrap();
    let mut link = Link::new(Stream::adopt(far).unwrap(), LinkKind::Control);
    let (attempt, token) = (attempt(), token());
    let deadline = Instant::now() + Duration::from_millis(60);
    let gate = Gate::attempt(LinkKind::Control, &attempt, &token);
    let silent = gate.admit(&mut link, deadline);
    assert_eq!(silent, Err(HelloError::Link(LinkError::Deadline)));
    assert!(Instant::now() >= deadline);
    drop(near);
}
