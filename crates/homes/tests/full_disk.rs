//! A disk that is full. The process runs itself again under a file size limit, which answers EFBIG
//! where a full disk answers ENOSPC and needs no privilege.

use placement_contract::{AttemptId, OwnerId, StreamName};
use placement_homes::{
    AppendError, HomeKey, LogItem, LogLimits, LogReader, LogWriter, ReadLogError, Root,
};
use placement_testkit::TempRoot;
use rustix::mount::{MountFlags, UnmountFlags};
use std::io::Write as _;

const INNER: &str = "a_refused_record_leaves_the_log_as_it_was";

/// Does its work only under the limit, which the other test sets.
#[test]
fn a_refused_record_leaves_the_log_as_it_was() {
    if rustix::process::getrlimit(rustix::process::Resource::Fsize).current.is_none() {
        println!("not limited: the other test runs this one under a limit");
        return;
    }
    let scratch = TempRoot::new();
    let root = Root::open(scratch.join("root")).unwrap();
    let key = HomeKey::of(&OwnerId::parse("ci").unwrap(), &AttemptId::parse("a").unwrap());
    let attempt = root.create_attempt(&key).unwrap();
    let mut writer = LogWriter::create(&attempt, LogLimits::default()).unwrap();
    let mut reader = LogReader::open(&attempt).unwrap();
    let mut appended = 0;
    let refused = loop {
        match writer.append(StreamName::Stdout, &vec![7; 10_000]) {
            Ok(sequence) => appended = sequence,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, AppendError::DiskFull(_)), "{refused}");
    assert!(appended > 0);
    assert_eq!(count(&mut reader), appended);
    assert!(matches!(
        writer.append(StreamName::Stdout, &vec![7; 10_000]),
        Err(AppendError::DiskFull(_))
    ));
    // What fits goes on with the next sequence, at the place of the refused one.
    assert_eq!(writer.append(StreamName::Stderr, b"small").unwrap(), appended + 1);
    assert_eq!(count(&mut reader), 1);
    writer.acknowledge(appended + 1).unwrap();
    assert_eq!(writer.unacknowledged_bytes(), 0);
    println!("refused under the limit");
}

fn count(reader: &mut LogReader) -> u64 {
    let mut records = 0;
    while let Some(item) = reader.next_item().expect("the log is consistent") {
        assert!(matches!(item, LogItem::Record(_)));
        records += 1;
    }
    records
}

#[test]
fn a_full_disk_is_named_under_a_file_size_limit() {
    let program = std::env::current_exe().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a shell sets the limit for a second process")]
    let output = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 128; exec \"$0\" --exact \"$1\" --nocapture"])
        .arg(program)
        .arg(INNER)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("refused under the limit"), "{text}");
}

/// A mount that goes with the test.
struct Mounted(camino::Utf8PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        rustix::mount::unmount(self.0.as_str(), UnmountFlags::DETACH).ok();
    }
}

/// Mounts a small file system of its own, where this user may.
fn small_disk(scratch: &TempRoot) -> rustix::io::Result<Mounted> {
    let path = scratch.join("disk");
    std::fs::create_dir(&path).expect("the scratch is empty");
    let options = c"size=256k,mode=700";
    rustix::mount::mount("tmpfs", path.as_str(), "tmpfs", MountFlags::empty(), options)?;
    Ok(Mounted(path))
}

fn fill(disk: &Mounted, name: &str) {
    let mut file = std::fs::File::create(disk.0.join(name)).expect("a name takes no room");
    while file.write_all(&[1; 4_096]).is_ok() {}
}

#[test]
fn an_exit_record_finds_room_on_a_full_disk_once() {
    let scratch = TempRoot::new();
    let disk = match small_disk(&scratch) {
        Ok(disk) => disk,
        Err(errno) => {
            println!("nothing shown: this user may not mount ({errno})");
            return;
        }
    };
    let root = Root::open(disk.0.join("root")).unwrap();
    let key = HomeKey::of(&OwnerId::parse("ci").unwrap(), &AttemptId::parse("a").unwrap());
    let attempt = root.create_attempt(&key).unwrap();
    attempt.reserve_exit_record();
    fill(&disk, "first");
    let record = vec![b'x'; 8_192];
    attempt.write_exit_record(&record).unwrap();
    assert_eq!(attempt.read_exit_record(10_000).unwrap(), Some(record.clone()));
    // What was set aside is spent: the next one finds no room, and leaves the first as it is.
    fill(&disk, "second");
    attempt.write_exit_record(b"another").unwrap_err();
    assert_eq!(attempt.read_exit_record(10_000).unwrap(), Some(record));
}

#[test]
fn a_log_that_finds_no_room_leaves_none_that_passes_for_damaged() {
    let scratch = TempRoot::new();
    let disk = match small_disk(&scratch) {
        Ok(disk) => disk,
        Err(errno) => {
            println!("nothing shown: this user may not mount ({errno})");
            return;
        }
    };
    let root = Root::open(disk.0.join("root")).unwrap();
    let key = HomeKey::of(&OwnerId::parse("ci").unwrap(), &AttemptId::parse("a").unwrap());
    let attempt = root.create_attempt(&key).unwrap();
    fill(&disk, "all");
    LogWriter::create(&attempt, LogLimits::default()).unwrap_err();
    let looked = LogReader::open(&attempt);
    assert!(matches!(looked, Err(ReadLogError::Missing)), "{looked:?}");
}
