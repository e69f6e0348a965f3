//! A root that two machines see: it is of one of them, until somebody says that it was moved.

use crate::places::Covered;
use crate::{WAITS, assert_refused, let_go, refused, world};
use placement_testkit::in_own_mounts;
use std::fs;

#[test]
fn a_root_is_of_one_machine_and_of_another_only_once_nothing_lives_in_it() {
    let test = "machines::a_root_is_of_one_machine_and_of_another_only_once_nothing_lives_in_it";
    in_own_mounts(test, || {
        let id_file = camino::Utf8Path::new("/etc/machine-id");
        if fs::read_to_string(id_file).unwrap_or_default().trim().is_empty() {
            println!("not tested here: this machine has no id");
            return;
        }
        let world = world();
        let program = world.program();
        let id = program.run(["start", "--", "/bin/sh", "-c", WAITS]).stdout.trim().to_owned();
        let other_id = world.work().join("machine-id");
        fs::write(&other_id, "0123456789abcdef0123456789abcdef\n").unwrap();

        let on_the_other = || Covered::by(id_file, &other_id);
        let there = on_the_other();
        for command in [&["run", "--", "true"][..], &["sweep"], &["stop", &id], &["ps"]] {
            let words = "the store belongs to another machine";
            assert_refused(&refused(&program, command), "CONFLICT", words, "adopt-root");
        }
        let words = "a runner lives in the attempt directory";
        assert_refused(&refused(&program, &["adopt-root"]), "CONFLICT", words, "was not moved");
        drop(there);

        assert_eq!(program.run(["verify", &id]).code, 0, "nothing was changed from there");
        let_go(&world);
        assert_eq!(program.run(["wait", &id]).code, 7);

        let there = on_the_other();
        assert_eq!(program.run(["adopt-root"]).code, 0);
        assert_eq!(program.run(["verify", "--all"]).code, 0);
        assert_eq!(program.run(["run", "--", "true"]).code, 0);
        drop(there);
        let words = "the store belongs to another machine";
        assert_refused(&refused(&program, &["ps"]), "CONFLICT", words, "adopt-root");
        assert_eq!(program.run(["adopt-root"]).code, 0);
    });
}
