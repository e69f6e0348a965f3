//! `soak`: thousands of short attempts by one host, and what they leave: no zombie, no descriptor, no
//! thread, no home, a store that grows evenly, memory that does not grow.
//!
//! Before it begins it leaves a descriptor, a thread and a zombie behind on purpose, and fails unless
//! each is seen.

use crate::command::{Failure, capture, program};
use crate::crash::processes::{children, runs};
use crate::own_cgroup::own_directory;
use crate::proving_ground::{ProvingGround, told};
use camino::{Utf8DirEntry, Utf8Path, Utf8PathBuf};
use clap::Args;
use placement::{Exit, Launch};
use placement_testkit::wait_until;
use std::fs::{self, File};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a soak is.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How many attempts there are
    #[arg(long, default_value_t = 10_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(100..))]
    attempts: u64,
    /// Takes in the log of the store at a path, and tells how long its file is
    #[arg(long, hide = true, value_name = "PATH")]
    measure: Option<Utf8PathBuf>,
}

/// Attempts after which everything that is made once is there.
const WARM_UP: u64 = 20;
/// Of so many attempts one leaves a process in a session of its own behind.
const LEAVES_EACH: u64 = 10;
/// How much more an attempt of the last half may take in the store than one of the first.
const STORE_GROWTH_MAX: f64 = 1.1;
/// How much memory the last half may add: pages of the allocator and of the store's cache.
const RSS_GROWTH_MAX_KIB: u64 = 4 * 1024;
/// How long what has ended may take to be reaped.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a host holds and has left at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Figures {
    descriptors: usize,
    threads: usize,
    zombies: usize,
    living_children: usize,
    rss_kib: u64,
    store_bytes: u64,
    /// Homes, temporary directories and leaves.
    places: usize,
}

/// Runs a soak.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(path) = &arguments.measure {
        println!("{}", store_length(path)?);
        return Ok(());
    }
    let ground = ProvingGround::open(None)?;
    let script = "echo out; case $1 in *0) setsid sleep 300 & esac; exit 3";
    let one = |number: u64| -> Result<(), Failure> {
        let launch = Launch::program("/bin/sh").args(["-c", script, "sh", &number.to_string()]);
        let attempt = ground.host().launch(launch.write(ground.work()));
        let attempt = attempt.map_err(|error| told("launch", &error))?;
        for chunk in attempt.output() {
            chunk.map_err(|error| told("read", &error))?;
        }
        let end = attempt.finish().map_err(|error| told("finish", &error))?;
        match end.exit() {
            Some(Exit::Code { code: 3 }) => Ok(()),
            other => Err(Failure::found(format!("soak: attempt {number} ended as {other:?}"))),
        }
    };
    let begun = Instant::now();
    for number in 0..WARM_UP {
        one(number)?;
    }
    let warm = look(&ground)?;
    see_what_is_planted(&ground, &warm)?;
    let half = arguments.attempts / 2;
    for number in 0..half {
        one(number)?;
    }
    let middle = look(&ground)?;
    for number in half..half * 2 {
        one(number)?;
    }
    let end = look(&ground)?;
    println!(
        "soak: {} attempts in {} s, one of {LEAVES_EACH} with a process left behind: {} descriptors, \
         {} threads, {} zombies, {} children, {} places left; store {} bytes an attempt in the first \
         half, {} in the last; memory {} KiB, then {} KiB",
        half * 2,
        begun.elapsed().as_secs(),
        end.descriptors,
        end.threads,
        end.zombies,
        end.living_children,
        end.places,
        (middle.store_bytes - warm.store_bytes) / half,
        (end.store_bytes - middle.store_bytes) / half,
        middle.rss_kib,
        end.rss_kib,
    );
    let broken = judge(&warm, &middle, &end);
    if broken.is_empty() {
        Ok(())
    } else {
        Err(Failure::found(format!("soak: {}", broken.join("; "))))
    }
}

/// Says what grew that must not.
fn judge(warm: &Figures, middle: &Figures, end: &Figures) -> Vec<String> {
    let mut broken = Vec::new();
    for (what, before, after) in [
        ("descriptors", warm.descriptors, end.descriptors),
        ("threads", warm.threads, end.threads),
        ("zombies", 0, end.zombies),
        ("living children", 0, end.living_children),
        ("places", 0, end.places),
    ] {
        if before != after {
            broken.push(format!("{after} {what} instead of {before}"));
        }
    }
    let grown = |from: &Figures, to: &Figures| to.store_bytes.saturating_sub(from.store_bytes);
    let (first, last) = (figure(grown(warm, middle)), figure(grown(middle, end)));
    if last > first * STORE_GROWTH_MAX {
        broken.push(format!("the store grew by {last} bytes after {first}"));
    }
    let memory = end.rss_kib.saturating_sub(middle.rss_kib);
    if memory > RSS_GROWTH_MAX_KIB {
        broken.push(format!("memory grew by {memory} KiB in the last half"));
    }
    broken
}

fn figure(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes / 1024).unwrap_or(u32::MAX)) * 1024.0
}

/// Leaves something of each kind behind, and fails unless it is seen.
fn see_what_is_planted(ground: &ProvingGround, warm: &Figures) -> Result<(), Failure> {
    let planted = |error: std::io::Error| Failure::new(format!("soak: plant: {error}"));
    let file = File::open("/dev/null").map_err(planted)?;
    let (release, released) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || released.recv().is_err());
    let mut ended = program("true");
    let mut ended = ended.stdin(Stdio::null()).spawn().map_err(planted)?;
    wait_until(PATIENCE, "the end of a process", || !runs(ended.id()));
    let place = ground.root().join("attempts/planted/home");
    fs::create_dir_all(&place).map_err(planted)?;
    let seen = look_once(ground)?;
    fs::remove_dir(&place).map_err(planted)?;
    fs::remove_dir(place.parent().expect("it lies in a directory")).map_err(planted)?;
    ended.wait().map_err(planted)?;
    drop((file, release));
    thread.join().map_err(|_| Failure::new("soak: a thread failed"))?;
    let found = judge(warm, &seen, &seen).len();
    if found == 4 {
        Ok(())
    } else {
        Err(Failure::new(format!("soak: {found} of 4 planted: {seen:?}")))
    }
}

/// Looks once everything that has ended is reaped.
fn look(ground: &ProvingGround) -> Result<Figures, Failure> {
    let own = std::process::id();
    wait_until(PATIENCE, "the end of all children", || children(own).is_empty());
    look_once(ground)
}

fn look_once(ground: &ProvingGround) -> Result<Figures, Failure> {
    let own = std::process::id();
    let (living, zombies): (Vec<u32>, Vec<u32>) =
        children(own).into_iter().partition(|pid| runs(*pid));
    Ok(Figures {
        // One of them lists the others.
        descriptors: entries("/proc/self/fd") - 1,
        threads: entries("/proc/self/task"),
        zombies: zombies.len(),
        living_children: living.len(),
        rss_kib: rss_kib()?,
        store_bytes: store_bytes(&ground.root())?,
        places: places(ground),
    })
}

fn entries(directory: impl AsRef<Utf8Path>) -> usize {
    directory.as_ref().read_dir_utf8().map_or(0, Iterator::count)
}

fn rss_kib() -> Result<u64, Failure> {
    let status = crate::workspace::read("/proc/self/status".into())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let figure = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    figure.ok_or_else(|| Failure::new("soak: /proc tells no VmRSS"))
}

/// Asks a process of its own: SQLite keeps the descriptor of a second connection open as long as the
/// first one has a lock.
fn store_bytes(root: &Utf8Path) -> Result<u64, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::new(format!("soak: find this program: {error}")))?;
    let mut measure = program(own);
    let length = capture(measure.args(["soak", "--measure"]).arg(root.join("placement.db")))?;
    length.trim().parse().map_err(|_| Failure::new("soak: a length is a number"))
}

/// Takes the log in first, so that the file is all of it.
fn store_length(path: &Utf8Path) -> Result<u64, Failure> {
    let failed = |error: rusqlite::Error| Failure::new(format!("soak: take the log in: {error}"));
    let connection = rusqlite::Connection::open(path).map_err(failed)?;
    let taken = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    taken.map_err(failed)?;
    drop(connection);
    let metadata = fs::metadata(path).map_err(|error| Failure::io("look at", path, &error))?;
    Ok(metadata.len())
}

fn places(ground: &ProvingGround) -> usize {
    let attempts = ground.root().join("attempts");
    let homes = attempts.read_dir_utf8().into_iter().flatten().flatten();
    let homes = homes.flat_map(|it| [it.path().join("home"), it.path().join("tmp")]);
    let homes = homes.filter(|path| path.exists()).count();
    let base = ground.root().with_file_name("tmp");
    let users = base.read_dir_utf8().into_iter().flatten().flatten();
    let temporary: usize = users.map(|user| entries(user.path())).sum();
    let attempts = attempts.read_dir_utf8().into_iter().flatten().flatten();
    let prefixes: Vec<String> =
        attempts.map(|attempt| format!("placement-{}-", attempt.file_name())).collect();
    let leaves = own_directory().ok().and_then(|directory| directory.read_dir_utf8().ok());
    let leaves = leaves.into_iter().flatten().flatten();
    let is_ours =
        |leaf: &Utf8DirEntry| prefixes.iter().any(|prefix| leaf.file_name().starts_with(prefix));
    let leaves = leaves.filter(is_ours);
    homes + temporary + leaves.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARM: Figures = Figures {
        descriptors: 12,
        threads: 3,
        zombies: 0,
        living_children: 0,
        rss_kib: 20_000,
        store_bytes: 100_000,
        places: 0,
    };

    #[test]
    fn even_growth_is_no_finding() {
        let middle = Figures { store_bytes: 10_100_000, rss_kib: 25_000, ..WARM };
        let end = Figures { store_bytes: 20_500_000, rss_kib: 27_000, ..WARM };
        assert_eq!(judge(&WARM, &middle, &end), Vec::<String>::new());
    }

    #[test]
    fn each_kind_of_growth_is_found() {
        let middle = Figures { store_bytes: 10_100_000, ..WARM };
        let end = Figures { store_bytes: 20_100_000, ..WARM };
        for grown in [
            Figures { descriptors: 13, ..end },
            Figures { threads: 4, ..end },
            Figures { zombies: 1, ..end },
            Figures { living_children: 1, ..end },
            Figures { places: 1, ..end },
            Figures { store_bytes: 22_000_000, ..end },
            Figures { rss_kib: WARM.rss_kib + RSS_GROWTH_MAX_KIB + 1, ..end },
        ] {
            assert_eq!(judge(&WARM, &middle, &grown).len(), 1, "{grown:?}");
        }
    }
}
