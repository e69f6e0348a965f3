//! What holds for any configuration file: it is read, or refused with a key, a line and a rule.
//!
//! Every run takes the same values, so that a failure is seen again.

use placement_policy::Config;
use proptest::collection::vec;
use proptest::prelude::*;

const EXAMPLE: &str = include_str!("../../../docs/config.example.toml");
/// A value that no error may repeat.
const CANARY: &str = "canary-5d1f";

/// Pieces of which a configuration file may be made, and some of which it may not.
const PIECES: &[&str] = &[
    "[host]\n",
    "[[resources.admitted]]\n",
    "[policies.a]\n",
    "[policies.'a.b'.profile_options]\n",
    "[environment]\n",
    "root = ",
    "pass = ",
    "access = ",
    "executables = ",
    "a.b.c = ",
    "'canary-5d1f'\n",
    "['canary-5d1f']\n",
    "{ kind = 'canary-5d1f' }\n",
    "[[[[",
    "\"\\u0000\"\n",
    "\"\"\"canary-5d1f\n\"\"\"\n",
    "2030-01-01\n",
    "0xffff_ffff_ffff_ffff\n",
    "-inf\n",
    "1e400\n",
    "true\n",
    "# canary-5d1f\n",
    "\r\n",
    "é = 1\n",
];

/// Reads a text, and reads again what was read; an error must say where and why and show no value.
fn read(text: &str) {
    match Config::decode(text) {
        Ok(config) => {
            assert_eq!(Config::decode(text), Ok(config.clone()), "it is read twice alike");
            // It may still name what is not defined; the attempt must not panic.
            config.snapshot().map(drop).ok();
        }
        Err(error) => {
            let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
            assert!(error.line.is_some_and(|line| (1..=lines).contains(&line)), "{error}");
            assert!(!error.key.is_empty(), "{error}");
            assert!(!error.rule.is_empty() && error.rule.len() < 200, "{error}");
            assert!(!error.rule.contains(CANARY), "{error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused_with_a_line_and_a_reason(characters in vec(any::<char>(), 0..64)) {
        read(&characters.into_iter().collect::<String>());
    }

    #[test]
    fn any_pieces_are_read_or_refused_with_a_line_and_a_reason(
        pieces in vec(any::<prop::sample::Index>(), 0..16),
    ) {
        read(&pieces.iter().map(|piece| *piece.get(PIECES)).collect::<String>());
    }

    #[test]
    fn a_changed_example_is_read_or_refused_with_a_line_and_a_reason(
        changes in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
    ) {
        let mut lines: Vec<&str> = EXAMPLE.split_inclusive('\n').collect();
        let count = lines.len();
        for (at, piece) in changes {
            lines[at.index(count)] = PIECES[piece.index(PIECES.len())];
        }
        read(&lines.concat());
    }

    #[test]
    fn an_example_cut_anywhere_is_read_or_refused_with_a_line_and_a_reason(
        at in any::<prop::sample::Index>(),
    ) {
        let places: Vec<usize> = EXAMPLE.char_indices().map(|(place, _)| place).collect();
        read(EXAMPLE.get(..*at.get(&places)).unwrap());
    }
}
