//! Taking descriptor 0 over, alone in its process since there is only one.

use placement_transport::{Stream, StreamError, pair};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::net::UnixStream;

#[test]
fn descriptor_0_is_taken_over_and_null_is_left_in_its_place() {
    rustix::stdio::dup2_stdin(File::open("/dev/zero").unwrap()).unwrap();
    assert_eq!(Stream::take_stdin().unwrap_err(), StreamError::NotAStream);
    let mut byte = [1];
    assert_eq!(std::io::stdin().read(&mut byte).unwrap(), 1, "it was left alone");

    let (near, far) = pair().unwrap();
    rustix::stdio::dup2_stdin(&far).unwrap();
    drop(far);
    let taken = Stream::take_stdin().unwrap();
    assert_eq!(std::fs::read_link("/proc/self/fd/0").unwrap().to_str(), Some("/dev/null"));
    drop(taken);
    assert_eq!(UnixStream::from(near).read(&mut byte).unwrap(), 0, "no other copy is left");
}
