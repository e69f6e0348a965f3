//! The host's configuration file.

use crate::exact::refused;
use placement_contract::{Code, Refusal};
use placement_policy::Config;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Config::decode(text) {
        Ok(config) => {
            let written = toml::to_string(&config).expect("what was decoded can be written");
            assert_eq!(Config::decode(&written).as_ref(), Ok(&config), "{written}");
            // What it admits is looked at on the disk, which is nobody's input.
            if config.resources.admitted.is_empty() {
                let snapshot = config.snapshot();
                let codes = [Code::Invalid, Code::Unsupported];
                snapshot.map_or_else(|refusal| refused(&refusal, &codes), drop);
            }
        }
        Err(error) => {
            // The end of the text is behind its last line feed.
            let lines = text.matches('\n').count() + 1;
            assert!(error.line.is_none_or(|line| (1..=lines).contains(&line)), "{error}");
            refused(&Refusal::from(error), &[Code::Invalid]);
        }
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.example.toml");
    let example = std::fs::read_to_string(path).unwrap_or_default();
    vec![example.into_bytes(), b"[host]\nowner = \"o\"\n".to_vec()]
}
