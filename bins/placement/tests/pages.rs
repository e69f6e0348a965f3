//! What the program writes for shells and for readers of manuals.

use placement_world::Program;

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_placement"))
}

/// What is known only to be refused by name.
const NOT_OFFERED: [&str; 2] = ["worktree", "wait-login"];

#[test]
fn every_shell_gets_completions_of_what_is_offered() {
    let program = program();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = program.run(["completions", shell]);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{shell}");
        for word in ["close-stdin", "prune", "resolve", "leftovers", "window"] {
            assert!(said.stdout.contains(word), "{shell}: {word}");
        }
        for word in NOT_OFFERED {
            assert!(!said.stdout.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(program.run(["completions", "tcsh"]).code, 2);
    assert!(!program.root().exists());
}

#[test]
fn a_manual_page_of_the_program_and_of_each_command() {
    let program = program();
    let page = |arguments: &[&str]| {
        let said = program.run([&["man"], arguments].concat());
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{arguments:?}");
        assert!(said.stdout.contains(".SH NAME"), "{arguments:?}");
        said.stdout
    };
    let whole = page(&[]);
    assert!(whole.contains("placement\\-prune(1)"), "{whole}");
    for word in NOT_OFFERED {
        assert!(!whole.contains(&word.replace('-', "\\-")), "{word}");
    }
    assert!(page(&["prune"]).contains("older\\-than"));
    assert_eq!(program.run(["man", "profile"]).code, 125);
    assert!(!program.root().exists());
}
