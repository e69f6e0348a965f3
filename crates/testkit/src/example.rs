//! Programs that cargo builds beside a test.

use std::path::PathBuf;

/// Returns the path of an example: cargo builds it beside the folder in which it puts a test.
///
/// # Panics
///
/// When it is not there, as when tests of one package run without those that own the example.
#[track_caller]
pub fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its own path");
    let folder = own.ancestors().nth(2).expect("a test lies two folders deep");
    let path = folder.join("examples").join(name);
    assert!(path.exists(), "build the examples first: cargo build --workspace --examples");
    path
}
