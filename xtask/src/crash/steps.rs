//! The steps of a launch, read out of the code: each must come by a crash point.
//!
//! A step is a call, in one of the functions that read as the path of a launch, of another function
//! of the same crate. It comes by a point where that function announces one or reaches a commit, or
//! where a point stands right behind the call.

use super::points::{CODE, sources};
use crate::command::Failure;
use crate::workspace::read;
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::{BTreeMap, BTreeSet};

/// The functions that read as the path of one launch, from its admission to its receipt.
const PATH: &[(&str, &str)] = &[
    ("crates/service/src/prepare.rs", "prepare"),
    ("crates/service/src/start.rs", "start"),
    ("crates/service/src/start.rs", "spawn"),
    ("crates/runner/src/run.rs", "run"),
    ("crates/runner/src/claim.rs", "claim"),
    ("crates/runner/src/claim.rs", "open"),
    ("crates/runner/src/run.rs", "live"),
    ("crates/materialize/src/materialization.rs", "step"),
    ("crates/runner/src/create.rs", "create_child"),
    ("crates/runner/src/create.rs", "spawn"),
    ("crates/runner/src/create.rs", "open_gate"),
    ("crates/runner/src/create.rs", "publish"),
    ("crates/runner/src/finish.rs", "finish"),
    ("crates/service/src/cleanup.rs", "cleanup_once"),
    ("crates/service/src/cleanup.rs", "remove"),
    // What a runner could not commit, and what is left in the end.
    ("crates/runner/src/finish.rs", "leave_record"),
    ("crates/service/src/places.rs", "take_exit_record"),
    ("crates/service/src/prune.rs", "prune_one"),
    // And what comes before everything.
    ("crates/store/src/open.rs", "prepare"),
    ("crates/store/src/open.rs", "bring_up"),
];

/// What leaves everything outside the process as it is, and so is no step: a crash before it and one
/// after it are the same crash.
const LOOKS: &[&str] = &[
    // It only reads what is recorded or what is there.
    "attempt_directory",
    "await_other",
    "find",
    "identities",
    "ready",
    "row",
    "site",
    "snapshot",
    "prove_gone",
    "watch_host",
    "check_owner",
    "check_offered",
    "check_environment",
    "gone_or_late",
    // It only puts values together.
    "c_strings",
    "choose",
    "closing_phrase",
    "conflict",
    "containment_phrase",
    "first_streams",
    "leaf_name",
    "no_containment",
    "not_committed",
    "order",
    "program",
    "unavailable",
    "way",
    "with_errno",
    // It opens or closes what ends with the process.
    "connect",
    "drop",
    "open",
];

/// Returns every step of the path without a crash point.
pub(super) fn without_point(root: &Utf8Path) -> Result<Vec<String>, Failure> {
    let mut code = Code::default();
    for file in sources(root)? {
        code.add(&file, &read(&root.join(&file))?);
    }
    let mut found = Vec::new();
    for (file, function) in PATH {
        match code.functions.get(&(Utf8PathBuf::from(*file), (*function).to_owned())) {
            Some(body) => found.extend(code.bare_steps(folder(file.as_ref()), body).map(|step| {
                format!("{file}: {function} does {step}, which comes by no crash point")
            })),
            None => found.push(format!("{file} has no function {function}")),
        }
    }
    Ok(found)
}

/// The bodies of all functions: by file and name, and by folder and name.
#[derive(Debug, Default)]
struct Code {
    functions: BTreeMap<(Utf8PathBuf, String), String>,
    bodies: BTreeMap<(&'static str, String), Vec<String>>,
}

impl Code {
    fn add(&mut self, file: &Utf8Path, text: &str) {
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (name, body) in functions(text) {
            let body = without_comments(body);
            self.bodies.entry((folder(file), name.to_owned())).or_default().push(body.clone());
            self.functions.insert((file.to_owned(), name.to_owned()), body);
        }
    }

    fn bare_steps<'a>(
        &'a self,
        folder: &'static str,
        body: &'a str,
    ) -> impl Iterator<Item = &'a str> {
        let calls = calls(body);
        let followed = calls.iter().skip(1).map(|next| next.name == "point").chain([false]);
        let steps: Vec<&str> = calls
            .iter()
            .zip(followed)
            .filter(|(call, followed)| call.is_own && !followed && !LOOKS.contains(&call.name))
            .map(|(call, _)| call.name)
            .filter(|name| self.bodies.contains_key(&(folder, (*name).to_owned())))
            .filter(|name| !self.reaches_a_point(folder, name, &mut BTreeSet::new()))
            .collect();
        steps.into_iter()
    }

    /// Follows calls by their names: into the same folder, else wherever the name is known.
    fn reaches_a_point(
        &self,
        folder: &'static str,
        name: &str,
        seen: &mut BTreeSet<(&'static str, String)>,
    ) -> bool {
        let places =
            if self.bodies.contains_key(&(folder, name.to_owned())) { &[folder] } else { CODE };
        places.iter().any(|folder| {
            let key = (*folder, name.to_owned());
            let Some(bodies) = self.bodies.get(&key) else { return false };
            seen.insert(key)
                && bodies.iter().any(|body| {
                    // The scribe commits for the loop, in its own thread.
                    body.contains("point(")
                        || body.contains("scribe.push(")
                        || calls(body)
                            .iter()
                            .any(|call| self.reaches_a_point(folder, call.name, seen))
                })
        })
    }
}

/// A call by a bare name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Call<'a> {
    name: &'a str,
    /// Of this value, of this type, or of this module.
    is_own: bool,
}

/// Lists what looks like a call, in order.
fn calls(body: &str) -> Vec<Call<'_>> {
    let mut found = Vec::new();
    for (at, _) in body.match_indices('(') {
        let before = &body[..at];
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let name = &before[before.trim_end_matches(is_word).len()..];
        let before = &before[..at - name.len()];
        let is_function = name.starts_with(|letter: char| letter.is_ascii_lowercase());
        if is_function && !before.ends_with("fn ") {
            let is_own = before.ends_with("self.")
                || before.ends_with("Self::")
                || !before.ends_with(['.', ':', '!']);
            found.push(Call { name, is_own });
        }
    }
    found
}

/// Lists functions with their bodies. Braces in texts come in pairs, as formatting has them.
fn functions(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("fn ") {
        let rest = &text[at + "fn ".len()..];
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let name = &rest[..rest.len() - rest.trim_start_matches(is_word).len()];
        let Some(open) = rest.find('{') else { continue };
        let mut depth = 0_i32;
        let end = rest[open..].find(|letter| {
            depth += i32::from(letter == '{') - i32::from(letter == '}');
            depth == 0
        });
        if let (false, Some(end)) = (name.is_empty(), end) {
            found.push((name, &rest[open..=open + end]));
        }
    }
    found
}

fn without_comments(body: &str) -> String {
    let code = body.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

fn folder(file: &Utf8Path) -> &'static str {
    let known = CODE.iter().find(|folder| file.as_str().starts_with(**folder));
    known.expect("only files of the code are looked at")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Utf8Path {
        Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    #[test]
    fn every_step_of_a_launch_comes_by_a_crash_point() {
        assert_eq!(without_point(root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn each_look_is_one_of_the_path() {
        let mut code = Code::default();
        for file in sources(root()).unwrap() {
            code.add(&file, &read(&root().join(&file)).unwrap());
        }
        let path = PATH.iter().flat_map(|(file, name)| {
            calls(&code.functions[&(Utf8PathBuf::from(*file), (*name).to_owned())])
        });
        let called: BTreeSet<&str> = path.map(|call| call.name).collect();
        assert_eq!(LOOKS.iter().find(|look| !called.contains(**look)), None);
    }

    fn bare(text: &str) -> Vec<String> {
        let mut code = Code::default();
        let file = Utf8Path::new("crates/runner/src/made_up.rs");
        code.add(file, text);
        let body = &code.functions[&(file.to_owned(), "live".to_owned())];
        code.bare_steps(CODE[1], body).map(str::to_owned).collect()
    }

    #[test]
    fn a_new_step_without_a_point_is_found() {
        let text = "fn live(&mut self) { self.warm()?; } fn warm(&self) { fs::write(a, b); }";
        assert_eq!(bare(text), ["warm"]);
        let with = text.replace("fs::write(a, b);", "fs::write(a, b); point(\"runner.a.b\");");
        assert_eq!(bare(&with), Vec::<String>::new());
        let behind = text.replace("self.warm()?;", "self.warm()?; point(\"runner.a.b\");");
        assert_eq!(bare(&behind), Vec::<String>::new());
        let deeper = format!("{text} fn press(&self) {{ self.scribe.push(row); }}")
            .replace("fs::write(a, b);", "self.press();");
        assert_eq!(bare(&deeper), Vec::<String>::new());
    }
}
