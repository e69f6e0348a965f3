//! Whoever has no business at the sockets of an attempt: nobody of them gets anything, and nobody
//! disturbs who has.

use crate::living::{Living, RECIPIENT};
use crate::world;
use placement::{AttemptId, ExecutionState, Generation};
use placement_testkit::{ORDINARY_ID, is_root, wait_until};
use placement_world::protocol::{ControlAnswer, ControlCall, FromRecipient, RefusedWhy};
use placement_world::{Door, PATIENCE, Shut, Socket, World};
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Within this a runner answers.
const FENCE: Duration = Duration::from_secs(2);
/// Connections that a runner holds, and that wait at its two sockets.
const SEATS: usize = 32 + 2 * 16;
/// How many come to each socket at once, and how often: more than a runner holds connections for.
const CROWD: (usize, usize) = (20, 5);

/// Asserts that the runner says nothing more and closes the connection.
#[track_caller]
fn assert_shut(mut stream: &UnixStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        // What it had not read when it closed is a reset.
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    assert_eq!(said, b"");
}

/// Reads the welcome that answers a hello, to its last byte.
#[track_caller]
fn welcomed(stream: &mut UnixStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut header = [0; 32];
    stream.read_exact(&mut header).unwrap();
    assert_eq!(header[4], 2, "it is welcome");
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    stream.read_exact(&mut vec![0; usize::try_from(length).unwrap()]).unwrap();
}

/// Asserts that a runner answers within the fence, and has not moved on.
#[track_caller]
fn assert_answers(door: &Door, generation: u64) {
    let asked = Instant::now();
    let answer = door.control().expect("the token is right").ask(ControlCall::Status, None);
    assert!(asked.elapsed() < FENCE, "{:?}", asked.elapsed());
    let Some(ControlAnswer::Status(status)) = answer else { panic!("{answer:?}") };
    assert_eq!(status.execution, ExecutionState::Running);
    assert_eq!(status.generation, Generation::new(generation));
}

/// How many descriptors a runner holds; only root is told.
fn descriptors(world: &World, id: &AttemptId) -> Option<usize> {
    let listed = fs::read_dir(format!("/proc/{}/fd", world.runner_pid(id)));
    listed.ok().map(Iterator::count)
}

/// Opens a directory and everything above it, up to the temporary root, to others; closes it again
/// when dropped.
struct Opened(Vec<(camino::Utf8PathBuf, u32)>);

impl Opened {
    fn way_to(directory: &camino::Utf8Path, root: &camino::Utf8Path) -> Self {
        let way = directory.ancestors().take_while(|it| it.starts_with(root.parent().unwrap()));
        let mut opened = Self(Vec::new());
        for path in way {
            opened.open(path.to_owned(), 0o755);
        }
        opened
    }

    fn open(&mut self, path: camino::Utf8PathBuf, mode: u32) {
        let former = fs::metadata(&path).unwrap().permissions().mode();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        self.0.push((path, former));
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        for (path, mode) in &self.0 {
            fs::set_permissions(path, Permissions::from_mode(*mode)).ok();
        }
    }
}

#[test]
fn another_user_gets_nothing_though_the_way_is_open_and_the_token_is_known() {
    if !is_root() {
        return println!("not shown: only root can connect as another user");
    }
    let world = world();
    let mut living = Living::start(&world);
    let directory = world.home(living.attempt.id()).parent().unwrap().to_owned();
    // Every other barrier is taken down, so that the credentials alone decide.
    let mut opened = Opened::way_to(&directory, &world.root());
    for socket in Socket::ALL {
        let path = directory.join(socket.name());
        opened.open(path.clone(), 0o666);
        let hello = living.door.hello(socket, RECIPIENT, 2);
        let stream = std::thread::spawn(move || {
            // The user of one thread only: the kernel's ids belong to threads.
            let id = rustix::process::Uid::from_raw(ORDINARY_ID);
            rustix::thread::set_thread_res_uid(id, id, id).unwrap();
            let mut stream = UnixStream::connect(path).unwrap();
            // It may be closed already.
            stream.write_all(&hello).ok();
            stream
        });
        assert_shut(&stream.join().unwrap());
        living.echo();
        assert_answers(&living.door, 2);
    }
}

#[test]
fn a_token_opens_its_own_attempt_alone() {
    let world = world();
    let ended = Living::start(&world);
    ended.attempt.stop_forced().unwrap();
    let old = ended.door;
    world.assert_clean(&ended.attempt.finish().unwrap());
    let (mut one, mut other) = (Living::start(&world), Living::start(&world));
    for strange in [&old, &other.door] {
        let door = one.door.with_the_token_of(strange);
        assert_eq!(door.control().err(), Some(Shut::Silently));
        assert_eq!(door.data(RECIPIENT, 2).err(), Some(Shut::Silently));
        // Whose token it is does not matter either.
        let door = one.door.in_the_name_of(strange);
        assert_eq!(door.control().err(), Some(Shut::Silently));
        assert_eq!(door.data(RECIPIENT, 2).err(), Some(Shut::Silently));
    }
    let misled = other.door.in_the_name_of(&one.door).with_the_token_of(&other.door);
    assert_eq!(misled.control().err(), Some(Shut::Because(RefusedWhy::Attempt)));
    for living in [&mut one, &mut other] {
        living.echo();
        assert_answers(&living.door, 2);
    }
}

#[test]
fn what_is_no_hello_is_closed_without_a_word() {
    let world = world();
    let mut living = Living::start(&world);
    for socket in Socket::ALL {
        let right = living.door.hello(socket, RECIPIENT, 2);
        let mut endless = right.clone();
        endless[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        let mut too_long = right.clone();
        too_long[..4].copy_from_slice(&65_537_u32.to_le_bytes());
        let mut another_kind = right.clone();
        another_kind[4] = 32;
        let mut no_kind = right.clone();
        no_kind[4] = 0;
        for words in [endless, too_long, another_kind, no_kind, vec![0xff; 1024], vec![0; 1024]] {
            let mut stream = living.door.knock(socket).unwrap();
            // It may be closed before everything is said.
            stream.write_all(&words).ok();
            assert_shut(&stream);
        }
        living.echo();
    }
    assert_answers(&living.door, 2);
}

#[test]
fn a_hello_that_does_not_end_is_closed_in_time() {
    let world = world();
    let mut living = Living::start(&world);
    let cut_off: Vec<UnixStream> = Socket::ALL
        .into_iter()
        .flat_map(|socket| {
            let right = living.door.hello(socket, RECIPIENT, 2);
            [0, 1, 31, 32, right.len() - 1].map(|said| {
                let mut stream = living.door.knock(socket).unwrap();
                stream.write_all(&right[..said]).unwrap();
                stream
            })
        })
        .collect();
    living.echo();
    cut_off.iter().for_each(assert_shut);
    living.echo();
    assert_answers(&living.door, 2);
}

#[test]
fn a_message_that_is_none_closes_the_link_and_nothing_else() {
    let world = world();
    let mut living = Living::start(&world);
    // Over the link of the bound recipient itself: half a frame, then its end.
    let mut again = living.door.knock(Socket::Data).unwrap();
    again.write_all(&living.door.hello(Socket::Data, RECIPIENT, 2)).unwrap();
    welcomed(&mut again);
    again.write_all(&[9; 20]).unwrap();
    drop(again);
    living.data = living.door.data(RECIPIENT, 2).unwrap();
    living.echo();
    // Input above its bound: not a byte of it is written.
    let whole = placement_world::protocol::Input {
        write_id: 2,
        generation: Generation::new(2),
        end: false,
        bytes: vec![b'x'; 65_536],
    };
    let whole = FromRecipient::Input(whole).into_frame().unwrap();
    let mut header = whole.header_bytes();
    header[..4].copy_from_slice(&65_537_u32.to_le_bytes());
    let mut again = living.door.knock(Socket::Data).unwrap();
    again.write_all(&living.door.hello(Socket::Data, RECIPIENT, 2)).unwrap();
    welcomed(&mut again);
    // It may be closed before everything is said.
    again.write_all(&header).and_then(|()| again.write_all(whole.payload())).ok();
    assert_shut(&again);
    living.data = living.door.data(RECIPIENT, 2).unwrap();
    living.echo();
    assert_answers(&living.door, 2);
}

#[test]
fn a_crowd_that_says_nothing_disturbs_nobody() {
    let world = world();
    let (mut living, mut other) = (Living::start(&world), Living::start(&world));
    let id = living.attempt.id().clone();
    let (before, knocks) = (descriptors(&world, &id), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let (many, often) = CROWD;
        for number in 0..2 * many {
            let (door, knocks) = (&living.door, &knocks);
            scope.spawn(move || {
                let knock = |_| {
                    let stream = door.knock(Socket::ALL[number % 2]);
                    knocks.fetch_add(1, Ordering::Relaxed);
                    stream
                };
                let crowd: Vec<_> = (0..often).map(knock).collect();
                crowd.iter().flatten().for_each(assert_shut);
            });
        }
        wait_until(PATIENCE, "a crowd", || knocks.load(Ordering::Relaxed) > SEATS);
        for _ in 0..5 {
            assert_answers(&living.door, 2);
        }
        match (before, descriptors(&world, &id)) {
            // Those that are held are bounded, whatever waits outside.
            (Some(before), Some(now)) => assert!(now <= before + 40, "{before}, then {now}"),
            _ => println!("the descriptors of a runner are shown to root alone"),
        }
        other.echo();
        assert_answers(&other.door, 2);
    });
    living.echo();
    assert_answers(&living.door, 2);
}

#[test]
fn whoever_says_its_hello_byte_by_byte_holds_nobody_up() {
    let world = world();
    let mut living = Living::start(&world);
    let door = &living.door;
    let (is_over, knocks) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..96 {
            let (is_over, knocks) = (&is_over, &knocks);
            scope.spawn(move || {
                let socket = Socket::ALL[number % 2];
                let hello = door.hello(socket, RECIPIENT, 2);
                while !is_over.load(Ordering::Relaxed) {
                    let Ok(mut stream) = door.knock(socket) else { continue };
                    knocks.fetch_add(1, Ordering::Relaxed);
                    // Never the last byte.
                    for byte in &hello[..hello.len() - 1] {
                        let is_shut = stream.write_all(&[*byte]).is_err();
                        if is_shut || is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        std::thread::sleep(Duration::from_millis(10));
                    }
                }
            });
        }
        let asked = std::panic::catch_unwind(|| {
            wait_until(PATIENCE, "a crowd", || knocks.load(Ordering::Relaxed) > SEATS);
            for _ in 0..5 {
                assert_answers(door, 2);
            }
        });
        is_over.store(true, Ordering::Relaxed);
        asked.unwrap();
    });
    living.echo();
}

/// Everything that lies below a directory, but the store, which alone has the token.
fn files_below(directory: &camino::Utf8Path) -> Vec<(camino::Utf8PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in directory.read_dir_utf8().unwrap() {
        let path = entry.unwrap().into_path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else if path.is_file() && !path.file_name().unwrap().starts_with("placement.db") {
            let bytes = fs::read(&path).unwrap();
            found.push((path, bytes));
        }
    }
    found
}

#[test]
fn nothing_of_a_token_is_told_anywhere_but_in_the_store() {
    let world = world();
    let mut living = Living::start(&world);
    let id = living.attempt.id().clone();
    let token = living.door.token_bytes().to_vec();
    let hexadecimal: Vec<String> = token.iter().map(|byte| format!("{byte:02x}")).collect();
    let hexadecimal = hexadecimal.concat();
    let stranger = living.door.without_the_token();
    assert_eq!(stranger.control().err(), Some(Shut::Silently));
    for socket in Socket::ALL {
        let right = living.door.hello(socket, RECIPIENT, 2);
        let mut stream = living.door.knock(socket).unwrap();
        stream.write_all(&right[..right.len() - 1]).unwrap();
    }
    // A refusal that is recorded, and one that is told.
    world.another_host().attach(&id).unwrap_err();
    living.echo();

    let mut told: Vec<(String, Vec<u8>)> = Vec::new();
    let program = world.program();
    for arguments in [
        &["--json", "status", id.as_str()][..],
        &["--json", "evidence", id.as_str()],
        &["--json", "verify", id.as_str()],
        &["--json", "ps", "--all"],
        &["logs", id.as_str()],
    ] {
        let said = program.run(arguments.iter().copied());
        told.push((arguments.join(" "), [said.stdout, said.stderr].concat().into_bytes()));
    }
    let runner = world.runner_pid(&id);
    for name in ["cmdline", "environ"] {
        // Another user than root is told nothing of a runner.
        let bytes = fs::read(format!("/proc/{runner}/{name}")).unwrap_or_default();
        told.push((name.to_owned(), bytes));
    }
    living.attempt.stop_forced().unwrap();
    living.attempt.wait().unwrap();
    told.extend(files_below(&world.root()).into_iter().map(|(path, it)| (path.to_string(), it)));
    assert!(told.iter().any(|(_, bytes)| !bytes.is_empty()));
    for (place, bytes) in told {
        let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        assert!(!has(&token) && !has(hexadecimal.as_bytes()), "the token is in {place}");
        assert!(!has(&hexadecimal.as_bytes()[..16]), "a part of the token is in {place}");
    }
}
