//! A wall clock that a test sets, for programs that it starts: a library before the system's own, which
//! adds what a file says.

use camino::Utf8PathBuf;
use placement_testkit::TempRoot;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

/// Adds the seconds in a file to every reading of the wall clock; waiting goes by other clocks.
const LIBRARY: &str = r"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long step(void) {
    char text[32] = {0};
    int file = open(STEP_FILE, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? strtol(text, NULL, 10) : 0;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int answer = syscall(SYS_clock_gettime, clock, now);
    if (answer == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += step();
    return answer;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
";

/// The wall clock of the programs that are started with it.
#[derive(Debug)]
pub(crate) struct Clock {
    directory: TempRoot,
}

impl Clock {
    /// Makes a clock that shows the time.
    ///
    /// # Errors
    /// Says why there is none: no C compiler, or one that makes no libraries.
    #[expect(clippy::disallowed_methods, reason = "a test runs the compiler")]
    pub(crate) fn make() -> Result<Self, String> {
        let clock = Self { directory: TempRoot::new() };
        let source = clock.directory.join("clock.c");
        fs::write(&source, LIBRARY).map_err(|error| error.to_string())?;
        let file = format!("-DSTEP_FILE=\"{}\"", clock.directory.join("step"));
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", &file, "-o", clock.library().as_str()]);
        let output = compiler.arg(source.as_str()).stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => Ok(clock),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(format!("no C compiler: {error}")),
        }
    }

    /// Sets it so many seconds off the time, at once for every program.
    pub(crate) fn step(&self, seconds: i64) {
        let next = self.directory.join("next");
        fs::write(&next, seconds.to_string()).expect("the directory is ours");
        fs::rename(&next, self.directory.join("step")).expect("the directory is ours");
    }

    pub(crate) fn library(&self) -> Utf8PathBuf {
        self.directory.join("clock.so")
    }

    /// Makes a program that becomes another one under this clock.
    pub(crate) fn program(&self, program: &str) -> Utf8PathBuf {
        let path = self.directory.join("under-this-clock");
        let script = format!("#!/bin/sh\nLD_PRELOAD={} exec {program} \"$@\"\n", self.library());
        fs::write(&path, script).expect("the directory is ours");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("it is ours");
        path
    }
}
