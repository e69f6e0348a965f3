//! The configuration file and the launch policies in it.

use placement_world::{Program, Running, Said};
use std::fs;

/// A program whose user has this configuration file.
fn configured(text: &str) -> Program {
    let program = Program::new(env!("CARGO_BIN_EXE_placement"));
    let directory = program.user_home().join(".config/placement");
    fs::create_dir_all(&directory).expect("the home is writable");
    let text = text.replace("WORK", program.work().as_str());
    fs::write(directory.join("config.toml"), text).expect("the home is writable");
    program
}

#[track_caller]
fn refused(said: &Said, code: &str, words: &str) {
    assert_eq!((said.code, said.stdout.as_str()), (125, ""), "{said:?}");
    assert!(said.stderr.starts_with(&format!("placement: {code}: ")), "{said:?}");
    assert!(said.stderr.contains(words), "{words}: {said:?}");
}

#[track_caller]
fn listed(program: &Program) -> String {
    let said = program.run(["ps", "--all"]);
    assert_eq!(said.code, 0, "{said:?}");
    said.stdout
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_nothing_is_made() {
    let program = configured("[host]\nowner = \"a\"\nowners = \"b\"\n");
    let said = Running::start(&mut program.bare_command(["run", "--", "true"])).said();
    refused(&said, "INVALID", "config.toml\": line 3: host.owners: is not a known key");
    assert!(!program.user_home().join(".local").exists());
}

#[test]
fn a_named_file_must_be_there() {
    let program = Program::new(env!("CARGO_BIN_EXE_placement"));
    refused(&program.run(["--config", "nowhere.toml", "ps"]), "INVALID", "nowhere.toml");
    fs::write(program.work().join("other.toml"), b"\xff").unwrap();
    refused(&program.run(["--config", "other.toml", "ps"]), "INVALID", "is not UTF-8");
    refused(&program.run(["--config", ".", "ps"]), "INVALID", "is a directory");
    refused(&program.run(["--config", "/dev/null", "ps"]), "INVALID", "is not a regular file");
    fs::write(program.work().join("large.toml"), "é".repeat(600_000)).unwrap();
    refused(&program.run(["--config", "large.toml", "ps"]), "INVALID", "is larger than 1 MiB");
}

#[test]
fn a_named_file_counts_instead_of_the_usual_one() {
    let program = configured("this is no configuration");
    fs::write(program.work().join("other.toml"), "").unwrap();
    let said = program.run(["--config", "other.toml", "run", "--", "echo", "fine"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "fine\n"), "{said:?}");
}

#[test]
fn an_option_counts_before_the_file() {
    let program = configured("[host]\nroot = \"WORK/of-the-file\"\nowner = \"of-the-file\"\n");
    let of_file = program.work().join("of-the-file");
    assert_eq!(program.run(["run", "--", "true"]).code, 0);
    assert!(!of_file.exists(), "the root that was named is used");
    let mut plain = program.bare_command(["run", "--", "true"]);
    assert_eq!(Running::start(&mut plain).said().code, 0);
    assert!(of_file.join("placement.db").exists());
}

#[test]
fn the_search_path_of_the_file_is_that_of_the_child() {
    let program = configured("[host]\nsearch_path = \"/bin\"\n");
    let said = program.run(["run", "--", "sh", "-c", "echo $PATH"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "/bin\n"), "{said:?}");
}

#[test]
fn a_policy_lists_the_programs_that_may_be_launched() {
    let program = configured("[policies.strict]\nexecutables = [\"echo\"]\n");
    let said = program.run(["run", "--policy", "strict", "--", "echo", "fine"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "fine\n"), "{said:?}");
    let said = program.run(["run", "--policy", "strict", "--", "touch", "harm"]);
    refused(&said, "DENIED", "does not list the program");
    assert!(!program.work().join("harm").exists());
    assert_eq!(listed(&program).lines().filter(|line| line.contains("touch")).count(), 0);
    assert_eq!(program.run(["run", "--", "touch", "fine"]).code, 0, "the default one lists none");
}

#[test]
fn a_policy_that_is_not_defined_is_refused() {
    let said = configured("").run(["run", "--policy", "another", "--", "true"]);
    refused(&said, "DENIED", "is not one of this host");
}

#[test]
fn a_policy_passes_its_own_names_of_the_environment() {
    let program = configured(
        "[environment]\npass = [\"EVERYWHERE\"]\n[policies.own]\nenvironment_pass = [\"OWN\"]\n",
    );
    let under = |policy: &[&str]| {
        let script = ["--", "sh", "-c", "echo $EVERYWHERE/$OWN/$LANG/$OTHER"];
        let mut command = program.command([&["run"], policy, &script[..]].concat());
        for name in ["EVERYWHERE", "OWN", "LANG", "OTHER"] {
            command.env(name, name);
        }
        let said = Running::start(&mut command).said();
        assert_eq!(said.code, 0, "{said:?}");
        said.stdout
    };
    assert_eq!(under(&[]), "EVERYWHERE//LANG/\n");
    assert_eq!(under(&["--policy", "own"]), "EVERYWHERE/OWN//\n");
}

#[test]
fn the_default_policy_of_the_file_is_that_of_who_names_none() {
    let program =
        configured("[host]\ndefault_policy = \"strict\"\n[policies.strict]\nexecutables = []\n");
    refused(&program.run(["run", "--", "true"]), "DENIED", "does not list the program");
    assert_eq!(program.run(["run", "--policy", "placement.default", "--", "true"]).code, 0);
}

#[test]
fn a_retry_is_the_same_launch_after_the_default_policy_and_the_list_have_changed() {
    let program = configured("");
    let launch = ["run", "--key", "k", "--", "sh", "-c", "echo once"];
    let first = program.run(launch);
    assert_eq!((first.code, first.stdout.as_str()), (0, "once\n"), "{first:?}");
    let file = program.user_home().join(".config/placement/config.toml");
    let changed = "[host]\ndefault_policy = \"strict\"\n[policies.strict]\nexecutables = []\n\
                   [[resources.admitted]]\ndirectory = \"/nowhere\"\naccess = \"read\"\n";
    fs::write(file, changed).unwrap();
    let again = program.run(launch);
    assert_eq!((again.code, again.stdout.as_str()), (0, "once\n"), "{again:?}");
    assert!(again.stderr.contains("replayed"), "{again:?}");
    refused(&program.run(["run", "--", "true"]), "FORBIDDEN", "that the configuration admits");
}

#[test]
fn listed_directories_and_what_is_in_them_are_all_that_launches_may_use() {
    let program = configured(
        "[[resources.admitted]]\ndirectory = \"WORK/open\"\naccess = \"write\"\n\
         [[resources.admitted]]\ndirectory = \"WORK/open/closed\"\naccess = \"read\"\n",
    );
    for name in ["open/one", "open/closed", "beside"] {
        fs::create_dir_all(program.work().join(name)).unwrap();
    }
    std::os::unix::fs::symlink("../beside", program.work().join("open/link")).unwrap();
    let in_directory = |directory: &str, options: &[&str]| {
        program.run([&["run", "--cwd", directory], options, &["--", "pwd"]].concat())
    };
    let said = in_directory("open/one", &[]);
    assert_eq!((said.code, said.stdout), (0, format!("{}/open/one\n", program.work())));
    for directory in [".", "beside", "open/link"] {
        refused(&in_directory(directory, &[]), "FORBIDDEN", "lies in no directory");
    }
    let said = in_directory("open/closed", &[]);
    refused(&said, "FORBIDDEN", "admits for reading only");
    let said = in_directory("open/closed", &["--write", "open/one"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn an_authority_that_nobody_asks_is_refused_by_name() {
    let program = configured("[resources]\nmode = \"granted\"\n");
    refused(&program.run(["run", "--", "true"]), "UNSUPPORTED", "resources.mode");
    assert!(!program.root().exists());
}

#[test]
fn the_doctor_tells_what_is_in_effect() {
    let program = configured(
        "[host]\noperators = [\"team:ops\"]\ndefault_policy = \"strict\"\n[policies.strict]\n",
    );
    let said = program.run(["doctor"]);
    assert_eq!(said.code, 0, "{said:?}");
    for words in ["config.toml", "team:ops", "strict", "/usr/local/bin:/usr/bin:/bin"] {
        assert!(said.stdout.contains(words), "{words}: {said:?}");
    }
    let said = program.run(["--json", "doctor"]);
    let told: serde_json::Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    assert_eq!(told["configuration"]["host"]["default_policy"], "strict");
    assert_eq!(told["configuration"]["host"]["root"], program.root().as_str());
    assert!(told["capability"].is_string(), "{said:?}");
}

#[test]
fn who_is_no_named_operator_settles_nothing() {
    let program = configured("[host]\noperators = [\"team:ops\"]\n");
    let id = program.run(["start", "--", "true"]).stdout.trim().to_owned();
    let words = ["resolve", &id, "--operator", "--as", "exited", "--reason", "r"];
    refused(&program.run(words), "DENIED", "is no operator of this host");
}
