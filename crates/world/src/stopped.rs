//! A process that stands still with the store in its hands.

use crate::PATIENCE;
use camino::Utf8Path;
use placement_testkit::wait_until;
use std::fs::File;
use std::process::{Child, Command, Stdio};

/// A stopped process that holds the lock of a store; ends with this value.
#[derive(Debug)]
pub struct StoppedWriter(Child);

impl StoppedWriter {
    /// Takes the lock of the store below a root and hands it to a process that stops itself.
    ///
    /// # Panics
    /// When there is no store, or the process does not stop.
    #[expect(clippy::disallowed_methods, reason = "a test makes a process to stand still")]
    #[track_caller]
    pub fn below(root: &Utf8Path) -> Self {
        let lock = File::open(root.join("placement.lock")).expect("the store has a lock");
        lock.lock().expect("whoever writes now ends soon");
        // The lock is of the open file, which is only the process's from here on.
        let child = Command::new("/bin/sh")
            .args(["-c", "kill -STOP $$"])
            .stdin(Stdio::from(lock))
            .spawn()
            .expect("there is a shell");
        let stat = format!("/proc/{}/stat", child.id());
        let writer = Self(child);
        wait_until(PATIENCE, "the stop of the process", || {
            let text = std::fs::read_to_string(&stat).unwrap_or_default();
            text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        });
        writer
    }
}

impl Drop for StoppedWriter {
    fn drop(&mut self) {
        // One that has ended takes no signal; that is what is wanted.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
