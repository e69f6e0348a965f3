//! The mode of a socket, alone in its process since the umask is the process's.

use placement_testkit::TempRoot;
use placement_transport::bind;
use rustix::fs::Mode;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn a_socket_is_for_its_owner_only_whatever_the_umask_is() {
    let root = TempRoot::new();
    let dir = File::open(root.path()).unwrap();
    for (name, umask) in [("open", 0o000), ("usual", 0o022), ("closed", 0o777)] {
        rustix::process::umask(Mode::from_bits_truncate(umask));
        let _listener = bind(dir.as_fd(), name).unwrap();
        let mode = std::fs::metadata(root.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}
