//! Sockets in a directory, and who is at the other end.

use placement_identity::{Pid, ProcessIdentity};
use placement_testkit::{ORDINARY_ID, TempRoot, is_root};
use placement_transport::{
    AcceptError, BindError, ConnectError, Listener, PeerError, Stream, StreamError, bind, connect,
    pair,
};
use std::fs::{self, File, Permissions};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

/// The listener is not blocking; waits until somebody has connected.
fn accept(listener: &Listener) -> Result<Stream, AcceptError> {
    let deadline = soon();
    loop {
        if let Some(stream) = listener.accept()? {
            return Ok(stream);
        }
        assert!(Instant::now() < deadline, "nobody connected");
        std::thread::yield_now();
    }
}

#[test]
fn a_socket_in_a_directory_with_a_long_path_can_be_reached() {
    let root = TempRoot::new();
    let deep = root.join(["x".repeat(100).as_str(); 4].join("/"));
    fs::create_dir_all(&deep).unwrap();
    assert!(deep.as_str().len() > 3 * 108);
    let dir = File::open(&deep).unwrap();
    let listener = bind(dir.as_fd(), "control").unwrap();
    let near = connect(dir.as_fd(), "control", soon()).unwrap();
    let far = accept(&listener).unwrap();
    assert_eq!(near.peer(), far.peer());
}

#[test]
fn nobody_waits_when_nobody_connected() {
    let root = TempRoot::new();
    let dir = File::open(root.path()).unwrap();
    let listener = bind(dir.as_fd(), "control").unwrap();
    assert!(listener.accept().unwrap().is_none());
}

#[test]
fn a_name_that_is_taken_is_left_alone() {
    let root = TempRoot::new();
    let dir = File::open(root.path()).unwrap();
    fs::write(root.join("control"), "mine").unwrap();
    assert_eq!(bind(dir.as_fd(), "control").unwrap_err(), BindError::Taken);
    assert_eq!(fs::read_to_string(root.join("control")).unwrap(), "mine");
}

#[test]
fn a_name_with_a_slash_is_refused() {
    let root = TempRoot::new();
    let dir = File::open(root.path()).unwrap();
    assert!(matches!(bind(dir.as_fd(), "../control"), Err(BindError::Name(_))));
    assert!(matches!(connect(dir.as_fd(), "../control", soon()), Err(ConnectError::Name(_))));
}

#[test]
fn a_socket_that_was_never_bound_is_missing() {
    let root = TempRoot::new();
    let dir = File::open(root.path()).unwrap();
    assert_eq!(connect(dir.as_fd(), "control", soon()).unwrap_err(), ConnectError::Missing);
}

#[test]
fn a_socket_whose_owner_ended_refuses() {
    let root = TempRoot::new();
    let dir = File::open(root.path()).unwrap();
    drop(bind(dir.as_fd(), "control").unwrap());
    assert_eq!(connect(dir.as_fd(), "control", soon()).unwrap_err(), ConnectError::Refused);
}

#[test]
fn a_full_queue_is_waited_for_no_longer_than_the_deadline() {
    let root = TempRoot::new();
    let dir = File::open(root.path()).unwrap();
    let _listener = bind(dir.as_fd(), "control").unwrap();
    let mut waiting = Vec::new();
    let started = Instant::now();
    let error = loop {
        assert!(waiting.len() < 1_000, "the queue is bounded");
        match connect(dir.as_fd(), "control", Instant::now() + Duration::from_millis(50)) {
            Ok(stream) => waiting.push(stream),
            Err(error) => break error,
        }
    };
    assert_eq!(error, ConnectError::Deadline);
    assert!(started.elapsed() >= Duration::from_millis(50));
}

#[test]
fn each_end_knows_the_process_at_the_other() {
    let root = TempRoot::new();
    let dir = File::open(root.path()).unwrap();
    let listener = bind(dir.as_fd(), "control").unwrap();
    let near = connect(dir.as_fd(), "control", soon()).unwrap();
    let far = accept(&listener).unwrap();
    for end in [near, far] {
        assert_eq!(end.same_user_peer().unwrap().pid, Some(Pid::this_process()));
        match end.peer_pidfd().unwrap() {
            Some(pidfd) => {
                let seen = ProcessIdentity::of_pidfd(pidfd.as_fd(), Pid::this_process()).unwrap();
                assert_eq!(seen, ProcessIdentity::this_process().unwrap());
            }
            None => println!("this kernel has no SO_PEERPIDFD"),
        }
    }
}

#[test]
fn a_connection_of_another_user_is_closed() {
    if !is_root() {
        println!("only root can connect as another user; the comparison has a test of its own");
        return;
    }
    let root = TempRoot::new();
    let dir = File::open(root.path()).unwrap();
    let listener = bind(dir.as_fd(), "control").unwrap();
    // Every other barrier is taken down, so that the credentials alone decide.
    fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(root.join("control"), Permissions::from_mode(0o666)).unwrap();
    let path = root.join("control");
    let mut other = std::thread::spawn(move || {
        // The user of one thread only: the kernel's ids belong to threads.
        let id = rustix::process::Uid::from_raw(ORDINARY_ID);
        rustix::thread::set_thread_res_uid(id, id, id).unwrap();
        UnixStream::connect(path).unwrap()
    })
    .join()
    .unwrap();
    assert_eq!(accept(&listener).unwrap_err(), AcceptError::Peer(PeerError::OtherUser));
    let mut nothing = Vec::new();
    other.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert_eq!(std::io::Read::read_to_end(&mut other, &mut nothing).unwrap(), 0);
}

#[test]
fn only_a_unix_stream_socket_is_a_stream() {
    let (near, _far) = pair().unwrap();
    assert!(Stream::adopt(near).is_ok());
    let file = File::open("/dev/null").unwrap();
    assert_eq!(Stream::adopt(file.into()).unwrap_err(), StreamError::NotAStream);
    let (datagram, _) = std::os::unix::net::UnixDatagram::pair().unwrap();
    assert_eq!(Stream::adopt(datagram.into()).unwrap_err(), StreamError::NotAStream);
}
