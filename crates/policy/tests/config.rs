//! The configuration file: its example, and errors that name the key and the line.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use placement_contract::{Code, PolicyRef, Refusal};
use placement_policy::{Config, ConfigError, ResourceMode};

use serde_json::json;

const EXAMPLE: &str = include_str!("../../../docs/config.example.toml");
/// A value that no error may repeat.
const CANARY: &str = "canary-5d1f";

/// What a text is refused for, as it is shown.
#[track_caller]
fn refused(text: &str) -> String {
    let shown = Config::decode(text).unwrap_err().to_string();
    assert!(!shown.contains(CANARY), "{shown}");
    shown
}

#[test]
fn an_empty_file_is_a_configuration() {
    assert_eq!(Config::decode(""), Ok(Config::default()));
    assert_eq!(Config::decode("# nothing\n"), Ok(Config::default()));
}

#[test]
fn the_example_has_every_table_and_every_key() {
    let config = Config::decode(EXAMPLE).unwrap();
    assert_eq!(config.resources.mode, Some(ResourceMode::HostConfigured));
    assert_eq!(config.resources.admitted.len(), 2);
    let written = serde_json::to_value(&config).unwrap();
    let example: toml::Table = EXAMPLE.parse().unwrap();
    for table in written.as_object().unwrap().keys() {
        assert!(example.contains_key(table), "{table}");
    }
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    let host = written["host"].as_object().unwrap();
    assert_eq!(host.len(), 6, "{host:?}");
    let policy = &written["policies"]["agents"];
    let said = keys(policy).into_iter().filter(|key| {
        let value = &policy[key];
        *value != false && *value != json!([]) && *value != json!({})
    });
    for key in said {
        assert!(example["policies"]["agents"].get(&key).is_some(), "{key}");
    }
}

/// Keys of a policy that no launch has yet, each with a value that would be one.
const LATER: &[(&str, &str)] = &[
    ("provider_ref", "'models:default'"),
    ("instructions", "'Answer in English.'"),
    ("profile_instructions", "true"),
    ("gateway_tools", "['read']"),
    ("prepare_options", "{ model = 'large' }"),
    ("profile_options", "{ model = { kind = 'text', max_bytes = 8 } }"),
    ("environment_refs", "['bee.env:region']"),
    ("allow_host_home", "true"),
    ("fixture", "true"),
];

#[test]
fn what_no_launch_has_yet_is_refused_by_the_name_of_its_key() {
    for (key, value) in LATER {
        let text = format!("[policies.agents]\n{key} = {value}\n");
        let refused = Config::decode(&text).unwrap().snapshot().unwrap_err();
        assert_eq!(refused.code, Code::Unsupported, "{key}");
        assert!(refused.message.starts_with(&format!("policies.agents.{key}: ")), "{refused}");
    }
}

#[test]
fn the_example_makes_a_snapshot() {
    let config = Config::decode(EXAMPLE).unwrap();
    let values = ["LANG", "TERM", "SECRET"].map(|name| (name.to_owned(), "x".to_owned()));
    let snapshot = config.snapshot().unwrap().with_environment(values);
    assert_eq!(snapshot.policy().r#ref.as_str(), "agents");
    assert_eq!(snapshot.search_path(), "/usr/local/bin:/usr/bin:/bin");
    assert_eq!(snapshot.admitted_roots().len(), 2);
    assert_eq!(snapshot.operators().len(), 1);
    let names = |policy: &str| -> Vec<String> {
        let policy = PolicyRef::parse(policy).unwrap();
        snapshot.environment(&policy).map(|(name, _)| name.to_string()).collect()
    };
    assert_eq!(names("agents"), ["LANG", "TERM"]);
    assert_eq!(names("builds"), ["TERM"]);
    assert_eq!(names("placement.default"), ["LANG", "TERM"]);
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let cases = [
        ("[host]\nownr = 'canary-5d1f'\n", "line 2: host.ownr: is not a known key"),
        ("\n\n[hosts]\nroot = '/x'\n", "line 3: hosts: is not a known key"),
        ("top = 'canary-5d1f'\n", "line 1: top: is not a known key"),
        ("[host]\nowner.zz = 1\n", "line 2: host.owner: has the wrong type, expected a string"),
        (
            "[[resources.admitted]]\ndirectory = '/a'\naccess = 'read'\n\n[[resources.admitted]]\n\
             directory = '/b'\naccess = 'read'\nmode = 'canary-5d1f'\n",
            "line 8: resources.admitted[1].mode: is not a known key",
        ),
        (
            "[policies.'a.b']\n[policies.'a.b'.profile_options]\nm = { kind = 'text', size = 1 }\n",
            "line 3: policies.a.b.profile_options.m.size: is not a known key",
        ),
        ("[policies.a]\nzz = 1\n", "line 2: policies.a.zz: is not a known key"),
    ];
    for (text, shown) in cases {
        assert_eq!(refused(text), shown);
    }
}

#[test]
fn a_wrong_value_is_named_with_its_line_and_not_shown() {
    let cases = [
        ("[host]\n\nroot = 'canary-5d1f'\n", "line 3: host.root: must be an absolute path"),
        ("[host]\nowner = ''\n", "line 2: host.owner: must not be empty"),
        ("[host]\nowner = 7\n", "line 2: host.owner: has the wrong type, expected a string"),
        (
            "[host]\nsearch_path = '/bin:canary-5d1f'\n",
            "line 2: host.search_path: must be absolute paths between colons",
        ),
        (
            "[host]\ndefault_policy = 'canary-5d1f'\n",
            "line 2: host.default_policy: must name a launch policy",
        ),
        (
            "[resources]\nmode = 'canary-5d1f'\n",
            "line 2: resources.mode: must be granted or host_configured",
        ),
        (
            "[[resources.admitted]]\ndirectory = 'canary-5d1f'\naccess = 'read'\n",
            "line 2: resources.admitted[0].directory: must be an absolute path",
        ),
        (
            "[[resources.admitted]]\ndirectory = '/a'\n",
            "line 1: resources.admitted[0].access: is missing",
        ),
        (
            "[environment]\npass = [\n  'LANG',\n  'canary-5d1f',\n]\n",
            "line 4: environment.pass[1]: must be an environment name of A-Z, 0-9 and underscore",
        ),
        ("environment = 1\n", "line 1: environment: has the wrong type, expected a table"),
        (
            "[policies.a]\nexecutables = 'canary-5d1f'\n",
            "line 2: policies.a.executables: has the wrong type, expected an array",
        ),
        (
            "[policies.'a.b']\nhook_command_ref = 'canary-5d1f'\n",
            "line 2: policies.a.b.hook_command_ref: needs gateway_hooks",
        ),
        ("[host]\nroot = 2030-01-01\n", "line 2: host.root: must not be a date or a time"),
    ];
    for (text, shown) in cases {
        assert_eq!(refused(text), shown);
    }
}

#[test]
fn lists_and_paths_of_a_file_have_bounds() {
    let names: Vec<String> = (0..33).map(|number| format!("'N{number}'")).collect();
    let text = format!("[environment]\npass = [{}]\n", names.join(", "));
    assert_eq!(refused(&text), "line 2: environment.pass: must have at most 32 items");
    let text = format!("[policies.a]\nenvironment_pass = [{}]\n", names.join(", "));
    assert_eq!(refused(&text), "line 2: policies.a.environment_pass: must have at most 32 items");
    let text = format!("[host]\nsearch_path = '/{}'\n", "x".repeat(16_384));
    assert_eq!(refused(&text), "line 2: host.search_path: must be at most 16384 bytes");
    let root = "[[resources.admitted]]\ndirectory = '/a'\naccess = 'read'\n";
    let shown = refused(&root.repeat(129));
    assert_eq!(shown, "line 1: resources.admitted: must have at most 128 items");
}

#[test]
fn what_is_no_document_is_named_with_its_line() {
    let cases = [
        ("[host]\nroot = 'canary-5d1f\n", "line 2: configuration: is not well-formed TOML"),
        ("[host]\nroot = canary-5d1f\n", "line 2: configuration: is not well-formed TOML"),
        ("[host]\nroot = '/a'\nroot = '/b'\n", "line 3: configuration: has a key twice"),
    ];
    for (text, shown) in cases {
        assert_eq!(refused(text), shown);
    }
    let large = "#".repeat(1024 * 1024 + 1);
    assert_eq!(refused(&large), "configuration: is larger than 1 MiB");
}

#[test]
fn an_error_becomes_a_refusal() {
    let error = ConfigError {
        line: Some(2),
        key: "host.ownr".to_owned(),
        rule: "is not a known key".to_owned(),
    };
    let refusal = Refusal::from(error);
    assert_eq!(refusal.code, Code::Invalid);
    assert_eq!(refusal.message, "configuration file, line 2: host.ownr: is not a known key");
}
