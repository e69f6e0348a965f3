//! libFuzzer for one target: the one that the program's file is named after.
//!
//! `cargo xtask fuzz` builds it, names it and runs it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use placement_fuzz::{ALLOCATED_MAX, Target, target};
use std::alloc::System;
use std::sync::LazyLock;

#[global_allocator]
static ALLOCATED: cap::Cap<System> = cap::Cap::new(System, ALLOCATED_MAX);

static TARGET: LazyLock<&'static Target> = LazyLock::new(|| {
    let file = std::env::current_exe().expect("a process knows its program");
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    target(name).expect("the program's file is named after a target")
});

fuzz_target!(|bytes: &[u8]| TARGET.feed(bytes));
