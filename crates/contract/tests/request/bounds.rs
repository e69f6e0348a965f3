//! The bounds of every field, and what must agree between fields.

use crate::sample::{CANARY, assert_invalid, decode, minimal, refused, set, with};
use placement_contract::Code;
use serde_json::{Value, json};

#[track_caller]
fn accepted(pointer: &str, value: Value) {
    if let Err(error) = with(pointer, value) {
        panic!("{pointer} was refused: {error}");
    }
}

#[test]
fn an_id_has_1_to_160_bytes_without_control_characters() {
    for field in ["idempotency_key", "owner_id", "action_id", "attempt_id", "binding_ref"] {
        let pointer = format!("/{field}");
        accepted(&pointer, json!("x".repeat(160)));
        assert_invalid(&pointer, json!(""), field, "must not be empty");
        let long = format!("{CANARY}{}", "x".repeat(150));
        assert_invalid(&pointer, json!(long), field, "must be at most 160 bytes");
        let rule = "must not contain control characters";
        assert_invalid(&pointer, json!(format!("{CANARY}\n")), field, rule);
    }
}

#[test]
fn a_missing_policy_is_refused() {
    let mut request = minimal();
    request.as_object_mut().unwrap().remove("policy_ref");
    assert_eq!(decode(&request).unwrap_err().to_string(), "policy_ref: is missing");
}

#[test]
fn an_incarnation_is_a_whole_number_from_1() {
    accepted("/owner_incarnation", json!(9_007_199_254_740_991_u64));
    let rule = "must be a whole number from 1 to 9007199254740991";
    for wrong in [json!(0), json!(9_007_199_254_740_992_u64), json!(u64::MAX)] {
        assert_invalid("/owner_incarnation", wrong, "owner_incarnation", rule);
    }
    for wrong in [json!(-1), json!(1.0), json!(1.5), json!("1")] {
        assert_eq!(refused("/owner_incarnation", wrong).1, "owner_incarnation");
    }
}

#[test]
fn a_digest_is_64_lowercase_hexadecimal_characters() {
    let rule = "must be 64 lowercase hexadecimal characters";
    for field in ["binding_digest", "profile_digest"] {
        for wrong in ["a".repeat(63), "A".repeat(64), "g".repeat(64), CANARY.to_owned()] {
            assert_invalid(&format!("/{field}"), json!(wrong), field, rule);
        }
    }
}

#[test]
fn a_program_is_an_absolute_path_or_a_plain_name() {
    for fine in
        ["claude", "/usr/bin/claude", "a b", "..x", ".x", &format!("/{}", "x".repeat(9_000))]
    {
        accepted("/launch/executable", json!(fine));
    }
    assert_invalid("/launch/executable", json!(""), "launch.executable", "must not be empty");
    let rule = "must be an absolute path or a name without a slash";
    for wrong in ["./claude", "bin/claude", "../claude", ".", "..", "claude/"] {
        assert_invalid("/launch/executable", json!(wrong), "launch.executable", rule);
    }
}

#[test]
fn arguments_are_bounded_in_length_and_count() {
    let rule = "must be at most 16384 bytes without NUL";
    accepted("/launch/argv/0", json!("x".repeat(16_384)));
    assert_invalid("/launch/argv/0", json!("x".repeat(16_385)), "launch.argv[0]", rule);
    assert_invalid("/launch/argv/1", json!(format!("{CANARY}\0")), "launch.argv[1]", rule);
    accepted("/launch/argv", json!(vec!["x"; 128]));
    let rule = "must have at most 128 items";
    assert_invalid("/launch/argv", json!(vec![CANARY; 129]), "launch.argv", rule);
}

#[test]
fn stdin_is_bounded_and_its_end_needs_it() {
    accepted("/launch/stdin", json!("x".repeat(65_536)));
    let rule = "must be at most 65536 bytes";
    let long = format!("{CANARY}{}", "x".repeat(65_536));
    assert_invalid("/launch/stdin", json!(long), "launch.stdin", rule);
    let mut request = minimal();
    set(&mut request, "/launch/stdin_eof", json!(true));
    assert_eq!(decode(&request).unwrap_err().to_string(), "launch.stdin_eof: needs launch.stdin");
    set(&mut request, "/launch/stdin", json!(""));
    assert!(decode(&request).is_ok());
}

#[test]
fn stdin_cannot_be_closed_and_kept_open() {
    let rule = "must be none when launch.stdin_eof closes it";
    assert_invalid("/supervision/stdin", json!("pipe"), "supervision.stdin", rule);
}

#[test]
fn readiness_has_1_to_256_bytes() {
    accepted("/launch/readiness", json!("x".repeat(256)));
    for wrong in [String::new(), "x".repeat(257)] {
        let rule = "must be 1 to 256 bytes";
        assert_invalid("/launch/readiness", json!(wrong), "launch.readiness", rule);
    }
}

#[test]
fn a_name_that_the_launch_needs_is_supplied() {
    let needed = json!(["LEVEL", "REGION", "MISSING"]);
    let rule = "is needed by the launch";
    assert_invalid("/launch/environment", needed, "environment.MISSING", rule);
    let rule = "must not name a variable twice";
    let twice = json!(["LEVEL", "LEVEL"]);
    assert_invalid("/launch/environment", twice, "launch.environment", rule);
}

#[test]
fn an_environment_name_is_of_capitals_digits_and_underscore() {
    accepted("/environment/_X9", json!("x"));
    let long = "X".repeat(161);
    for wrong in ["lower", "9X", "A-B", "A=B", "", "Ä", "A B", long.as_str()] {
        let (code, _, rule) = refused(&format!("/environment/{wrong}"), json!(CANARY));
        assert_eq!(code, Code::Invalid, "{wrong}");
        assert_eq!(rule, "must be an environment name of A-Z, 0-9 and underscore", "{wrong}");
    }
}

#[test]
fn an_environment_value_is_bounded_and_has_no_nul() {
    accepted("/environment/LEVEL", json!("x".repeat(16_384)));
    let rule = "must be at most 16384 bytes without NUL";
    let long = format!("{CANARY}{}", "x".repeat(16_384));
    for wrong in [long, format!("{CANARY}\0")] {
        assert_invalid("/environment/LEVEL", json!(wrong), "environment.LEVEL", rule);
    }
}

#[test]
fn an_environment_has_at_most_64_names() {
    let names = |count: u32| -> Value {
        (0..count).map(|number| (format!("N{number}"), json!("x"))).collect()
    };
    for field in ["environment", "environment_refs"] {
        let pointer = format!("/{field}");
        let mut request = minimal();
        set(&mut request, &pointer, names(64));
        assert!(decode(&request).is_ok());
        set(&mut request, &pointer, names(65));
        let refused = decode(&request).unwrap_err().to_string();
        assert_eq!(refused, format!("{field}: must have at most 64 names"));
    }
}

#[test]
fn a_name_has_one_source() {
    let rule = "must not be in environment and environment_refs";
    assert_invalid("/environment/REGION", json!(CANARY), "environment.REGION", rule);
}

#[test]
fn a_subpath_cannot_leave_its_root() {
    for fine in ["", "a", "a/b", "...", "a b", &"x".repeat(512)] {
        accepted("/resources/0/subpath", json!(fine));
    }
    let field = "resources[0].subpath";
    let cases = [
        ("/canary-5d1f", "must be relative"),
        ("../canary-5d1f", "must not contain an empty, . or .. part"),
        ("canary-5d1f/..", "must not contain an empty, . or .. part"),
        ("canary-5d1f/./x", "must not contain an empty, . or .. part"),
        ("canary-5d1f//x", "must not contain an empty, . or .. part"),
        ("canary-5d1f/", "must not contain an empty, . or .. part"),
        ("canary-5d1f\\x", "must not contain a backslash or a control character"),
        ("canary-5d1f\0", "must not contain a backslash or a control character"),
    ];
    for (wrong, rule) in cases {
        assert_invalid("/resources/0/subpath", json!(wrong), field, rule);
    }
    let long = json!("x".repeat(513));
    assert_invalid("/resources/0/subpath", long, field, "must be at most 512 bytes");
}

fn grants(names: impl IntoIterator<Item = String>) -> Value {
    let grant = |name| {
        json!({
            "name": name, "grant_ref": "g", "root_ref": "r", "access": "read", "purpose": "cache",
        })
    };
    names.into_iter().map(grant).collect()
}

#[test]
fn a_launch_has_at_most_16_grants_of_distinct_names() {
    let named = |count: u32| grants((0..count).map(|number| format!("n{number}")));
    let mut request = minimal();
    set(&mut request, "/resources", named(16));
    assert!(decode(&request).is_ok());
    assert_invalid("/resources", named(17), "resources", "must have at most 16 items");
    let twice = grants(["project".to_owned(), "project".to_owned()]);
    assert_invalid("/resources", twice, "resources", "must not use a name twice");
}

#[test]
fn a_working_directory_is_a_resource() {
    let rule = "must name a resource";
    let field = "launch.working_directory_ref";
    assert_invalid("/launch/working_directory_ref", json!(CANARY), field, rule);
}

#[test]
fn every_timeout_has_its_range() {
    let cases = [
        ("start_ms", 1, 120_000),
        ("stop_grace_ms", 0, 60_000),
        ("drain_ms", 100, 600_000),
        ("retain_ms", 100, 600_000),
    ];
    for (name, least, most) in cases {
        let pointer = format!("/timeouts/{name}");
        let field = format!("timeouts.{name}");
        accepted(&pointer, json!(least));
        accepted(&pointer, json!(most));
        let rule = format!("must be {least} to {most} milliseconds");
        assert_invalid(&pointer, json!(most + 1), &field, &rule);
        if least > 0 {
            assert_invalid(&pointer, json!(least - 1), &field, &rule);
        }
    }
}

#[test]
fn supervision_has_bounds() {
    let month_ms = 30_u64 * 24 * 3_600 * 1_000;
    accepted("/supervision/deadline_ms", json!(month_ms));
    for wrong in [0, month_ms + 1] {
        let rule = "must be 1 ms to 30 days";
        assert_invalid("/supervision/deadline_ms", json!(wrong), "supervision.deadline_ms", rule);
    }
    let gib: u64 = 1 << 30;
    for fine in [0, 256 * 1024, 16 * gib] {
        accepted("/supervision/spool_bytes_max", json!(fine));
    }
    for wrong in [1, 256 * 1024 - 1, 16 * gib + 1] {
        let rule = "must be 0 or 256 KiB to 16 GiB";
        let field = "supervision.spool_bytes_max";
        assert_invalid("/supervision/spool_bytes_max", json!(wrong), field, rule);
    }
    let field = "supervision.transcript_bytes_max";
    let wrong = json!(16 * gib + 1);
    let rule = "must be at most 16 GiB";
    assert_invalid("/supervision/transcript_bytes_max", wrong, field, rule);
}

#[test]
fn limits_are_within_what_a_machine_has() {
    for (field, least, most, rule) in [
        ("memory_bytes", 1_u64 << 20, 16_u64 << 40, "must be 1 MiB to 16 TiB"),
        ("pids", 1, 4_194_304, "must be 1 to 4194304"),
        ("cpu_millis", 10, 8_192_000, "must be 10 to 8192000"),
    ] {
        let with = |value: Value| json!({ field: value });
        accepted("/supervision/limits", with(json!(least)));
        accepted("/supervision/limits", with(json!(most)));
        let named = format!("supervision.limits.{field}");
        for wrong in [json!(least - 1), json!(most + 1)] {
            assert_invalid("/supervision/limits", with(wrong), &named, rule);
        }
        for wrong in [json!(-1), json!(1.5), json!("9")] {
            assert_eq!(refused("/supervision/limits", with(wrong)).1, named);
        }
    }
    let unknown = json!({ "disk_bytes": 1 });
    assert_eq!(refused("/supervision/limits", unknown).1, "supervision.limits.disk_bytes");
}
