//! Roots that earlier versions of the program have left.

use crate::{assert_refused, program, refused};
use placement_world::{load_store, store::SCHEMA};

fn dump(schema: u32) -> String {
    let stores = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/stores");
    std::fs::read_to_string(format!("{stores}/v{schema}.sql")).unwrap()
}

#[test]
fn the_command_line_goes_on_with_the_root_of_every_earlier_version() {
    for schema in 1..=SCHEMA {
        let program = program();
        load_store(&program.root(), &dump(schema));
        let words = "the store belongs to another machine";
        assert_refused(&refused(&program, &["ps"]), "CONFLICT", words, "adopt-root");
        assert_eq!(program.run(["adopt-root"]).code, 0);
        let before = program.attempts().len();
        assert!(before >= 10, "schema {schema}: {before}");
        assert_eq!(program.run(["verify", "--all"]).code, 0);

        // Nothing of there can be seen from here.
        assert_eq!(program.run(["reconcile", "--all"]).code, 0);
        let is_open = |attempt: &serde_json::Value| {
            let state = attempt["execution_state"].as_str().unwrap();
            ["starting", "running", "stopping"].contains(&state)
        };
        assert!(!program.attempts().iter().any(is_open), "{:#?}", program.attempts());
        assert_eq!(program.run(["verify", "--all"]).code, 0);

        let said = program.run(["run", "--", "/bin/sh", "-c", "echo out; exit 3"]);
        assert_eq!((said.code, said.stdout.as_str()), (3, "out\n"), "{said:?}");
        if schema > 1 {
            let again = ["run", "--key", "pruned", "--", "/bin/sh", "-c", "exit 5"];
            let said = program.run(again);
            assert!([5, 125].contains(&said.code), "{said:?}");
            assert!(said.code == 5 || said.stderr.contains("CONFLICT"), "it ran again: {said:?}");
        }
        assert_eq!(program.run(["prune", "--older-than", "0s"]).code, 0);
        assert!(program.attempts().len() < before, "schema {schema}");
    }
}
