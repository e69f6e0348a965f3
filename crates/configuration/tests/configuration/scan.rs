//! What is copied into a private home.

use crate::support::{CANARY, holds_no_canary};
use placement_configuration::{
    DeclaredFile, DeclaredPresence, DocumentError, Projection, SCANNED_NESTING_MAX, ScanError,
    TextFormat, scan,
};
use placement_contract::request::RelativePath;

fn scanned(format: TextFormat, text: &str) -> Result<String, ScanError> {
    let parse = |text: &str| RelativePath::parse(text).unwrap();
    let (key, absent, to) =
        (parse(".config/o/towers.key"), parse(".config/o/gone"), parse(".o/key"));
    let file = |source_path, presence| DeclaredFile { source_path, path: &to, presence };
    let files =
        [file(&key, DeclaredPresence::Materialized), file(&absent, DeclaredPresence::Missing)];
    let projection =
        Projection { host_home: "/home/u", private_home: "/r/sessions/k/home", files: &files };
    let outcome = scan(format, text.as_bytes(), &projection);
    if let Err(error) = &outcome {
        holds_no_canary(error);
    }
    outcome.map(|bytes| String::from_utf8(bytes).unwrap())
}

/// The outcome for one text as a value, which is the same in both forms.
fn value(text: &str) -> Result<String, ScanError> {
    let quoted = serde_json::to_string(text).unwrap();
    let json = scanned(TextFormat::Json, &format!("{{\"a\":[{{\"b\":{quoted}}}]}}"));
    let toml = scanned(TextFormat::Toml, &format!("[[a]]\nb = {quoted}\n"));
    assert_eq!(json.as_ref().err(), toml.as_ref().err(), "{text}");
    let json: serde_json::Value = serde_json::from_str(&json?).unwrap();
    let toml: toml::Table = toml::from_str(&toml?).unwrap();
    let found = json["a"][0]["b"].as_str().unwrap().to_owned();
    assert_eq!(toml["a"][0]["b"].as_str(), Some(found.as_str()));
    Ok(found)
}

#[test]
fn a_declared_file_is_led_into_the_private_home() {
    let private = "{file:/r/sessions/k/home/.o/key}";
    for text in ["{file:~/.config/o/towers.key}", "{file:/home/u/.config/o/towers.key}"] {
        assert_eq!(value(text).unwrap(), private);
        let twice = value(&format!("Bearer {text} or {text}!")).unwrap();
        assert_eq!(twice, format!("Bearer {private} or {private}!"));
    }
}

#[test]
fn what_is_around_a_changed_value_of_toml_stays() {
    let text = "# mine\n[p]  # here\nkey = '{file:~/.config/o/towers.key}' # why\nn = 0x1\n";
    let expected =
        "# mine\n[p]  # here\nkey = \"{file:/r/sessions/k/home/.o/key}\" # why\nn = 0x1\n";
    assert_eq!(scanned(TextFormat::Toml, text).as_deref(), Ok(expected));
}

#[test]
fn what_has_no_reference_stays_to_the_byte() {
    let json = "{ \"a\" : [1.0 , \"read /home/u/.config/o and ~/x, or {this}\"] }\n";
    assert_eq!(scanned(TextFormat::Json, json).as_deref(), Ok(json));
    assert_eq!(scanned(TextFormat::Json, "").as_deref(), Ok(""));
    let toml = "a  =  '/home/u/x'\r\n";
    assert_eq!(scanned(TextFormat::Toml, toml).as_deref(), Ok(toml));
}

#[test]
fn a_file_that_is_not_declared_is_refused() {
    let text = format!("{{file:~/.config/{CANARY}}}");
    assert_eq!(value(&text), Err(ScanError::Undeclared));
    assert_eq!(value("{file:~/.config/o}"), Err(ScanError::Undeclared));
}

#[test]
fn a_declared_file_that_is_missing_is_refused() {
    assert_eq!(value("{file:~/.config/o/gone}"), Err(ScanError::Missing));
}

#[test]
fn a_way_up_is_refused() {
    for path in [
        "~/.config/o/../o/towers.key",
        "/home/u/../v/key",
        "~//etc",
        "~/./x",
        "~/",
        "/home/u/",
        "~/a\\b",
    ] {
        assert_eq!(value(&format!("{{file:{path}}}")), Err(ScanError::Traversal), "{path}");
    }
}

#[test]
fn a_file_elsewhere_is_refused() {
    for path in ["/etc/passwd", "./x", "key", "", "/home/u2/x", "/home/u", "~", "~v/x", "$HOME/x"] {
        assert_eq!(value(&format!("{{file:{path}}}")), Err(ScanError::ForeignFile), "{path}");
    }
    assert_eq!(value("{file:~/.config/o/towers.key"), Err(ScanError::ForeignFile));
}

#[test]
fn the_hosts_environment_is_not_reached_for() {
    for text in ["${HOME}/x", "a ${X", "{env:KEY}", "x{env:", "{file:${HOME}/x}"] {
        assert_eq!(value(text), Err(ScanError::Environment), "{text}");
    }
}

#[test]
fn a_path_below_the_home_directory_is_refused_where_it_is_the_value() {
    assert_eq!(value("~/.config/o/towers.key"), Err(ScanError::HomePath));
    assert_eq!(value("as in ~/.config").unwrap(), "as in ~/.config");
}

#[test]
fn an_escape_hides_nothing() {
    let json = scanned(TextFormat::Json, r#"{"a":"\u0024{HOME}"}"#);
    assert_eq!(json, Err(ScanError::Environment));
    let toml = scanned(TextFormat::Toml, "a = \"\\u007benv:X}\"\n");
    assert_eq!(toml, Err(ScanError::Environment));
}

#[test]
fn a_name_is_no_reference() {
    let json = scanned(TextFormat::Json, r#"{"{file:~/.config/o/towers.key}":1}"#);
    assert_eq!(json, Err(ScanError::ReferenceAsName));
    assert_eq!(scanned(TextFormat::Json, r#"{"a":{"${X}":1}}"#), Err(ScanError::Environment));
    assert_eq!(scanned(TextFormat::Toml, "[a.'~/x']\n"), Err(ScanError::HomePath));
}

#[test]
fn the_bound_of_levels_is_exact() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    for (format, before, levels) in [
        (TextFormat::Json, "", SCANNED_NESTING_MAX),
        (TextFormat::Toml, "a = ", SCANNED_NESTING_MAX - 1),
    ] {
        assert!(scanned(format, &format!("{before}{}", nested(levels))).is_ok());
        let refused = scanned(format, &format!("{before}{}", nested(levels + 1)));
        assert_eq!(refused, Err(ScanError::Document(DocumentError::TooDeep)));
    }
    let dotted = vec!["a"; SCANNED_NESTING_MAX + 1].join(".");
    let refused = scanned(TextFormat::Toml, &format!("{dotted} = 1"));
    assert_eq!(refused, Err(ScanError::Document(DocumentError::TooDeep)));
}

#[test]
fn what_is_no_document_is_refused() {
    for (format, text, why) in [
        (TextFormat::Json, "{} // c", DocumentError::NotWellFormed),
        (TextFormat::Json, r#"{"a":1,"a":2}"#, DocumentError::NameTwice),
        (TextFormat::Toml, "a = 1\na = 2", DocumentError::NotWellFormed),
        (TextFormat::Toml, CANARY, DocumentError::NotWellFormed),
        (TextFormat::Toml, " ".repeat(131_073).as_str(), DocumentError::TooLarge),
    ] {
        assert_eq!(scanned(format, text), Err(ScanError::Document(why)));
    }
    let projection = Projection { host_home: "/h", private_home: "/p", files: &[] };
    let refused = scan(TextFormat::Json, b"\"\xff\"", &projection);
    assert_eq!(refused, Err(ScanError::Document(DocumentError::NotText)));
}

#[test]
fn a_result_that_grew_above_the_bound_is_refused() {
    let reference = "{file:~/.config/o/towers.key}";
    let text = format!("[\"{}\"]", reference.repeat(131_000 / reference.len()));
    assert_eq!(scanned(TextFormat::Json, &text), Err(ScanError::ResultTooLarge));
}

#[test]
fn the_form_is_told_by_the_end_of_the_name() {
    assert_eq!(TextFormat::of_name("opencode.json"), Some(TextFormat::Json));
    assert_eq!(TextFormat::of_name("a.json.toml"), Some(TextFormat::Toml));
    for name in ["auth", "json", "settings.jsonc", "a.json.bak"] {
        assert_eq!(TextFormat::of_name(name), None, "{name}");
    }
}
