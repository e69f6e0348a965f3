//! A root with a retained home, and logins as a broker gives them.

use std::fs;

use camino::Utf8PathBuf;
use placement_contract::Secret;
use placement_contract::authority::{LoginFile, MaterializedCredential};
use placement_contract::request::RelativePath;
use placement_homes::{HomeFiles, LoginSeed, Root};
use placement_testkit::TempRoot;
use serde_json::{Value, json};

/// Bytes that no error may repeat.
pub(crate) const CANARY: &str = "{\"t\":\"canary-91af\"}";
pub(crate) const LOGIN: &str = ".codex/auth.json";
pub(crate) const BASE: &str = ".codex/base.toml";

/// A root with a home below it, and something outside that must stay as it is.
pub(crate) struct Place {
    pub(crate) scratch: TempRoot,
    pub(crate) root: Root,
}

impl Place {
    pub(crate) fn new() -> Self {
        let scratch = TempRoot::new();
        fs::create_dir(scratch.join("outside")).unwrap();
        fs::write(scratch.join("outside/file"), "theirs").unwrap();
        let root = Root::open(scratch.join("root")).unwrap();
        root.dir().ensure_dir(&paths("sessions/k/home"), 0o700).unwrap();
        Self { scratch, root }
    }

    /// The files of the home for one start.
    pub(crate) fn files(&self, login: Option<&LoginFile>) -> HomeFiles {
        let home = self.root.dir().open_dir(&paths("sessions/k/home")).unwrap();
        HomeFiles::of(&self.root, home, login).unwrap()
    }

    pub(crate) fn at(&self, path: &str) -> Utf8PathBuf {
        self.scratch.join("root/sessions/k/home").join(path)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    /// Everything in the home, each with its content, in order.
    pub(crate) fn listing(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut waiting = vec![self.at("")];
        while let Some(directory) = waiting.pop() {
            for entry in directory.read_dir_utf8().unwrap() {
                let entry = entry.unwrap();
                let name = entry.path().strip_prefix(self.at("")).unwrap().to_string();
                if entry.file_type().unwrap().is_dir() {
                    waiting.push(entry.path().to_owned());
                } else {
                    found.push((name, fs::read_to_string(entry.path()).unwrap_or_default()));
                }
            }
        }
        found.sort();
        found
    }

    /// Nothing outside the root was touched.
    #[track_caller]
    pub(crate) fn outside_is_untouched(&self) {
        let outside: Vec<_> = fs::read_dir(self.scratch.join("outside"))
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        assert_eq!(outside, ["file"]);
        assert_eq!(fs::read_to_string(self.scratch.join("outside/file")).unwrap(), "theirs");
    }
}

pub(crate) fn path(text: &str) -> RelativePath {
    RelativePath::parse(text).unwrap()
}

pub(crate) fn paths(text: &str) -> placement_paths::RelativePath {
    placement_paths::RelativePath::parse(text).unwrap()
}

/// What a broker says of a login and gives with it.
pub(crate) struct Given {
    said: Value,
    bytes: Option<Secret>,
}

impl Given {
    /// An optional JSON login with a base that is always there and a note that comes with it only.
    pub(crate) fn optional(bytes: Option<&str>) -> Self {
        let said = json!({
            "projection_id": "p-1",
            "destination": "auth.json",
            "projection_kind": "file",
            "encoding": "utf-8",
            "generation": 1,
            "generation_key": "a-1:1",
            "format": {
                "schema_revision": "bee.credential-format@1",
                "file": {
                    "path": LOGIN,
                    "content_format": "json",
                    "initialize": [
                        {
                            "path": BASE,
                            "content": "model = \"m\"\n",
                            "source_path": ".codex/config.toml",
                            "on_missing_login": true,
                        },
                        {"path": ".note.json", "content": "{\"seen\":true}"},
                    ],
                },
            },
            "present": bytes.is_some(),
            "optional": true,
            "definition_id": "d-1",
            "definition_revision": 3,
            "provider": "codex",
            "source_path": ".codex/auth.json",
            "source_present": bytes.is_some(),
            "write_back": true,
        });
        Self { said, bytes: bytes.map(|bytes| Secret::new(bytes.as_bytes().to_vec())) }
    }

    pub(crate) fn required(bytes: &str) -> Self {
        Self::optional(Some(bytes)).with("/optional", json!(false))
    }

    /// The same with another value at a place.
    pub(crate) fn with(mut self, pointer: &str, value: Value) -> Self {
        *self.said.pointer_mut(pointer).unwrap() = value;
        self
    }

    pub(crate) fn credential(&self) -> MaterializedCredential {
        serde_json::from_value(self.said.clone()).unwrap()
    }

    pub(crate) fn bytes(&self) -> Option<&Secret> {
        self.bytes.as_ref()
    }

    /// Prepares the files for this login, and does something with both.
    pub(crate) fn within<T>(
        &self,
        place: &Place,
        act: impl FnOnce(&mut HomeFiles, &LoginSeed<'_>) -> T,
    ) -> T {
        let credential = self.credential();
        let seed = LoginSeed::of(&credential, self.bytes()).unwrap();
        let mut files = place.files(Some(seed.file()));
        act(&mut files, &seed)
    }
}

/// Looks at an error and everything behind it.
#[track_caller]
pub(crate) fn holds_no_canary(error: &dyn std::error::Error) {
    let mut shown = format!("{error:?}");
    let mut next = Some(error);
    while let Some(error) = next {
        shown.push_str(&error.to_string());
        next = error.source();
    }
    assert!(!shown.contains("canary"), "{shown}");
}
