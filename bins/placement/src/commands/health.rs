//! What a look at the whole store found, and what to do about it.

use crate::context::Style;
use crate::exit_code;
use crate::failure::{Failure, say_refusal};
use placement::{Code, Placement, Refusal, StoreCheck};

/// Looks at the store beside its attempts, says what is wrong and returns the exit code for that.
pub(crate) fn say_findings(host: &Placement, style: Style) -> Result<u8, Failure> {
    let findings = findings(&host.check_store()?);
    for finding in &findings {
        say_refusal(finding, style);
    }
    Ok(if findings.is_empty() { exit_code::SUCCESS } else { exit_code::FINDINGS })
}

/// Words what was found.
pub(crate) fn findings(check: &StoreCheck) -> Vec<Refusal> {
    let mut findings = Vec::new();
    if check.damaged {
        let hint = "nothing was changed; what can be read still is; put an intact copy of placement.db in its \
                    place, with its -wal and without its -shm, or name another root with --root";
        let message = "the file of the store is damaged";
        findings.push(Refusal::new(Code::Storage, message).with_hint(hint));
    }
    if let [first, ..] = check.unknown_directories.as_slice() {
        let count = check.unknown_directories.len();
        let message = format!(
            "the store knows nothing of {count} attempt directories below the root, such as {first}"
        );
        let hint = "the end of its log was lost, or an older copy was put back: what is in them is kept, and \
                    keys that were used there are free again; put a newer copy of placement.db back, with \
                    its -wal and without its -shm";
        findings.push(Refusal::new(Code::Storage, message).with_hint(hint));
    }
    findings
}

/// Says in a few words how the store is.
pub(crate) fn in_words(check: &StoreCheck) -> &'static str {
    match (check.is_sound(), check.finished) {
        (true, true) => "every page and index is sound",
        (true, false) => "sound as far as some seconds went",
        (false, _) => "not sound, see below",
    }
}
