//! A process of the same user that exchanges a name with a link to the canary, all the time.

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Exchanges two names until it is dropped, and puts them right then.
#[derive(Debug)]
pub(super) struct Attacker {
    pair: Pair,
    is_over: Arc<AtomicBool>,
    exchanges: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// A name under attack, and the one of a link that takes its place.
#[derive(Debug, Clone)]
struct Pair {
    at: Utf8PathBuf,
    link: Utf8PathBuf,
    to: Utf8PathBuf,
}

impl Attacker {
    /// Begins; `link` is a name on the same file system that nobody has.
    pub(super) fn start(at: Utf8PathBuf, link: Utf8PathBuf, to: Utf8PathBuf) -> Self {
        let pair = Pair { at, link, to };
        let (is_over, exchanges) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let thread = {
            let (pair, is_over, exchanges) =
                (pair.clone(), Arc::clone(&is_over), Arc::clone(&exchanges));
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    if pair.exchange() {
                        exchanges.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        };
        // What is looked at meanwhile is under attack.
        while exchanges.load(Ordering::Relaxed) < 2 {
            std::thread::yield_now();
        }
        Self { pair, is_over, exchanges, thread: Some(thread) }
    }

    /// Counts the exchanges so far.
    pub(super) fn exchanges(&self) -> u64 {
        self.exchanges.load(Ordering::Relaxed)
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("an attacker does not fail");
        }
        self.pair.put_right();
    }
}

impl Pair {
    /// Exchanges both names; where one of them was removed, a link takes its place.
    fn exchange(&self) -> bool {
        match renameat_with(CWD, self.at.as_str(), CWD, self.link.as_str(), RenameFlags::EXCHANGE) {
            Ok(()) => true,
            Err(Errno::NOENT) => {
                // Those that are there stay.
                symlink(&self.to, &self.link).ok();
                symlink(&self.to, &self.at).ok();
                false
            }
            Err(_) => {
                std::thread::yield_now();
                false
            }
        }
    }

    fn put_right(&self) {
        if is_link(&self.at) && self.link.symlink_metadata().is_ok() && !is_link(&self.link) {
            self.exchange();
        }
        for link in [&self.at, &self.link] {
            if is_link(link) {
                fs::remove_file(link).ok();
            }
        }
    }
}

fn is_link(path: &Utf8Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink())
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_testkit::TempRoot;

    #[test]
    fn it_exchanges_and_puts_right() {
        let root = TempRoot::new();
        fs::create_dir(root.join("at")).unwrap();
        fs::create_dir(root.join("to")).unwrap();
        let attacker = Attacker::start(root.join("at"), root.join("link"), root.join("to"));
        while attacker.exchanges() < 1_000 {
            std::thread::yield_now();
        }
        drop(attacker);
        assert!(root.join("at").is_dir() && !is_link(&root.join("at")));
        assert!(root.join("link").symlink_metadata().is_err());
    }

    #[test]
    fn what_is_removed_is_replaced_by_a_link_and_that_goes_at_the_end() {
        let root = TempRoot::new();
        fs::create_dir(root.join("at")).unwrap();
        fs::create_dir(root.join("to")).unwrap();
        let attacker = Attacker::start(root.join("at"), root.join("link"), root.join("to"));
        // Whichever of both is the directory.
        let mut removed = false;
        while !removed {
            removed = ["at", "link"].iter().any(|name| fs::remove_dir(root.join(name)).is_ok());
        }
        let so_far = attacker.exchanges();
        while attacker.exchanges() < so_far + 10 {
            std::thread::yield_now();
        }
        drop(attacker);
        assert!(["at", "link"].iter().all(|name| root.join(name).symlink_metadata().is_err()));
        assert!(root.join("to").is_dir());
    }
}
