//! Configuration files as text: recipes, places of secrets, and the scan of what is copied.

use placement_configuration::{
    ComposeError, DeclaredFile, DeclaredPresence, Projection, TextFormat, compose, place_secrets,
    scan,
};
use placement_contract::delivery::{Composition, DeliveredFile, SecretField};
use placement_contract::limits::COMPOSED_BYTES_MAX;
use placement_contract::request::RelativePath;
use placement_contract::{Digest, Secret};
use serde_json::json;
use std::error::Error;

const CANARY: &str = "canary-0d7e";

/// The first byte says what is done, the rest is what was delivered and, behind a NUL, what is there.
pub(crate) fn run(bytes: &[u8]) {
    let Some((what, rest)) = bytes.split_first() else { return };
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (content, base) = (&rest[..end], rest.get(end + 1..));
    let Ok(content) = std::str::from_utf8(content) else { return };
    match what % 6 {
        0 => composed("json_patch", ["insert", "append", "default"], content, base),
        1 => composed("json_patch", ["set", "set", "set"], content, base),
        2 => composed("toml_patch", ["insert", "append", "default"], content, base),
        3 => composed("toml_patch", ["set", "set", "set"], content, base),
        4 => placed(content),
        _ => {
            scanned(TextFormat::Json, content);
            scanned(TextFormat::Toml, content);
        }
    }
}

fn composed(form: &str, kinds: [&str; 3], content: &str, base: Option<&[u8]>) {
    // As many places as there are lines of one of these in the content would be too many to meet.
    let places = [json!(["a", "b"]), json!(["l"]), json!(["d"])];
    for chosen in [&[0_usize][..], &[0, 1], &[0, 1, 2], &[1], &[2]] {
        let operations: Vec<_> = chosen
            .iter()
            .map(|place| json!({"kind": kinds[*place], "path": places[*place]}))
            .collect();
        let recipe = json!({"kind": form, "base_path": "base", "operations": operations});
        let recipe: Composition = serde_json::from_value(recipe).expect("it is a recipe");
        match compose(&recipe, content, base) {
            Ok(result) => {
                assert!(result.len() <= COMPOSED_BYTES_MAX);
                reads(form, &result);
                if kinds[0] == "set" {
                    let again = compose(&recipe, content, Some(&result));
                    assert_eq!(again.as_ref(), Ok(&result), "what was set is set already");
                }
            }
            Err(error) => {
                assert_ne!(error, ComposeError::NotTheSame, "a text reads as its values say");
                shown(&error);
            }
        }
    }
}

fn reads(form: &str, result: &[u8]) {
    let text = std::str::from_utf8(result).expect("what was composed is text");
    match form {
        "json_patch" => drop(serde_json::from_str::<serde::de::IgnoredAny>(text).expect("JSON")),
        _ => drop(text.parse::<toml::Table>().expect("TOML")),
    }
}

fn placed(content: &str) {
    let field = |path| -> SecretField {
        serde_json::from_value(json!({"path": path, "environment": "T", "prefix": "B "}))
            .expect("it is a place")
    };
    let file = DeliveredFile {
        revision: placement_contract::Id::parse("r").expect("it is an id"),
        path: RelativePath::parse("f").expect("it is a path"),
        content: content.to_owned(),
        digest: Digest::of_bytes(content.as_bytes()),
        provider_ref: placement_contract::ProviderRef::parse("p").expect("it is a reference"),
        secret_fields: vec![field(vec!["a", "b"]), field(vec!["t"])],
        composition: None,
    };
    let secret = Secret::new(CANARY.as_bytes().to_vec());
    match place_secrets(&file, None, |_| Some(&secret)) {
        Ok(whole) => {
            let read: serde_json::Value =
                serde_json::from_slice(whole.expose()).expect("it is JSON");
            let expected = format!("B {CANARY}");
            assert_eq!(read["a"]["b"], expected);
            assert_eq!(read["t"], expected);
        }
        Err(error) => shown(&error),
    }
}

fn scanned(format: TextFormat, content: &str) {
    let path = RelativePath::parse("k").expect("it is a path");
    let presence = DeclaredPresence::Materialized;
    let file = DeclaredFile { source_path: &path, path: &path, presence };
    let projection = Projection { host_home: "/h", private_home: "/p", files: &[file] };
    match scan(format, content.as_bytes(), &projection) {
        Ok(result) => {
            assert!(result.len() <= COMPOSED_BYTES_MAX);
            // Seen from the private home, everything that is left leads to itself.
            let inside = Projection { host_home: "/p", ..projection };
            assert_eq!(
                scan(format, &result, &inside).as_deref().map(spelled),
                Ok(spelled(&result))
            );
        }
        Err(error) => shown(&error),
    }
}

/// What was led once is written anew; only its second writing is the same to the byte.
fn spelled(bytes: &[u8]) -> usize {
    bytes.windows(6).filter(|part| *part == b"{file:").count()
}

/// An error is short, whatever the document was.
fn shown(error: &dyn Error) {
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        assert!(text.len() < 100 && !text.contains(CANARY), "{text}");
        next = error.source();
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let inputs: &[(u8, &str)] = &[
        (0, "{\"a\":{\"b\":1},\"l\":[2],\"d\":3}\0{\"a\":{\"c\":1.0},\"l\":[1]}"),
        (1, "{\"a\":{\"b\":\"x\"}}\0{\"a\":{\"b\":[]}, \"z\" : null}"),
        (2, "[a.b]\nx = 1\n\0# c\nz = 1\n[a]\ny = { v = 2 } # d\n[[t]]\n"),
        (2, "l = [1]\n\0l = [\n 0,\n]\n"),
        (2, "[[l]]\nx = 1\n\0[[l]]\ny = 1\n[e]\n"),
        (3, "a.b = 1\nl = 2\nd = 'x'\n\0a = { b = 0 }\n[l]\n"),
        (3, "[a.b]\nx = 1\n\0a.c.d = 1\n"),
        (4, "{\"t\":\"\", \"a\" : {\"b\":\"\"}}"),
        (5, "{\"x\":[\"Bearer {file:~/k}\", \"see /h/k\"]}"),
        (5, "# c\nx = '{file:/h/k}' # d\n"),
    ];
    inputs.iter().map(|(what, text)| [&[*what], text.as_bytes()].concat()).collect()
}
