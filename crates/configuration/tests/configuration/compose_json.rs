//! Patches of JSON, and copies.

use crate::support::{CANARY, composed, copy, patch};
use placement_configuration::{ComposeError, DocumentError, NESTING_MAX, compose};

fn json(operations: &[(&str, &str)], content: &str, base: &str) -> Result<String, ComposeError> {
    composed(&patch("json_patch", operations), content, base)
}

#[test]
fn a_copy_is_the_base_to_the_byte() {
    let largest = vec![b'x'; 131_072];
    for base in [&b""[..], b"{ \"a\" :1 }", b"\xff\x00", &largest] {
        assert_eq!(compose(&copy(), "", Some(base)).as_deref(), Ok(base));
    }
}

#[test]
fn a_copy_with_content_is_refused() {
    assert_eq!(composed(&copy(), "{}", "{}"), Err(ComposeError::OutsideContent));
}

#[test]
fn a_missing_base_is_refused_in_every_form() {
    let recipes =
        [copy(), patch("json_patch", &[("set", "a")]), patch("toml_patch", &[("set", "a")])];
    for recipe in recipes {
        assert_eq!(compose(&recipe, "", None), Err(ComposeError::MissingBase));
    }
}

#[test]
fn a_base_above_the_bound_is_refused_in_every_form() {
    let base = " ".repeat(131_073);
    let recipes =
        [copy(), patch("json_patch", &[("set", "a")]), patch("toml_patch", &[("set", "a")])];
    for (recipe, content) in recipes.iter().zip(["", "{\"a\":1}", "a = 1"]) {
        let expected = Err(ComposeError::Base(DocumentError::TooLarge));
        assert_eq!(composed(recipe, content, &base), expected);
    }
}

#[test]
fn content_above_the_bound_is_refused() {
    let content = format!("{{\"a\":\"{}\"}}", "x".repeat(131_072));
    let refused = json(&[("set", "a")], &content, "");
    assert_eq!(refused, Err(ComposeError::Content(DocumentError::TooLarge)));
}

#[test]
fn the_bound_of_a_result_is_exact() {
    // {"a":1,"b":"…"} and a line feed.
    let base = |length: usize| format!("{{\"b\":\"{}\"}}", "x".repeat(length));
    let fits = 131_072 - "{\"b\":\"\",\"a\":1}\n".len();
    let whole = json(&[("set", "a")], "{\"a\":1}", &base(fits)).unwrap();
    assert_eq!(whole.len(), 131_072);
    let refused = json(&[("set", "a")], "{\"a\":1}", &base(fits + 1));
    assert_eq!(refused, Err(ComposeError::ResultTooLarge));
}

#[test]
fn an_empty_base_is_an_empty_document() {
    let result =
        json(&[("insert", "mcp.bee"), ("default", "v")], "{\"mcp\":{\"bee\":{}},\"v\":1}", "");
    assert_eq!(result.unwrap(), "{\"mcp\":{\"bee\":{}},\"v\":1}\n");
}

#[test]
fn what_is_not_named_stays_in_its_order_and_spelling() {
    let base = r#"{"z": 1.50, "mcp": {"other": {"n": 12345678901234567890123}}, "a": null}"#;
    let result = json(&[("insert", "mcp.bee")], r#"{"mcp":{"bee":{"url":"u"}}}"#, base);
    assert_eq!(
        result.unwrap(),
        "{\"z\":1.50,\"mcp\":{\"other\":{\"n\":12345678901234567890123},\"bee\":{\"url\":\"u\"}},\
         \"a\":null}\n"
    );
}

#[test]
fn a_default_is_set_kept_where_equal_and_refused_where_not() {
    let content = r#"{"schema": {"x": 1, "y": "b"}}"#;
    let operations = &[("default", "schema")];
    assert_eq!(json(operations, content, "{}").unwrap(), "{\"schema\":{\"x\":1,\"y\":\"b\"}}\n");
    let kept = json(operations, content, r#"{"schema": {"y": "\u0062", "x": 1}}"#).unwrap();
    assert_eq!(kept, "{\"schema\":{\"y\":\"b\",\"x\":1}}\n");
    for other in [r#"{"schema":{"x":1}}"#, r#"{"schema":{"x":2,"y":"b"}}"#, r#"{"schema":null}"#] {
        assert_eq!(json(operations, content, other), Err(ComposeError::Differs), "{other}");
    }
}

#[test]
fn what_is_inserted_takes_no_others_place() {
    let base = format!(r#"{{"mcp":{{"bee":"{CANARY}"}}}}"#);
    let refused = json(&[("insert", "mcp.bee")], r#"{"mcp":{"bee":1}}"#, &base);
    assert_eq!(refused, Err(ComposeError::Occupied));
    let refused = json(&[("insert", "mcp.bee")], r#"{"mcp":{"bee":1}}"#, r#"{"mcp":{"bee":null}}"#);
    assert_eq!(refused, Err(ComposeError::Occupied));
}

#[test]
fn a_list_is_lengthened_or_made() {
    let content = r#"{"hooks":{"Stop":[{"c":2}]}}"#;
    let operations = &[("append", "hooks.Stop")];
    let longer = json(operations, content, r#"{"hooks":{"Stop":[{"c":1}],"Other":[]}}"#).unwrap();
    assert_eq!(longer, "{\"hooks\":{\"Stop\":[{\"c\":1},{\"c\":2}],\"Other\":[]}}\n");
    assert_eq!(json(operations, content, "").unwrap(), "{\"hooks\":{\"Stop\":[{\"c\":2}]}}\n");
}

#[test]
fn only_lists_are_lengthened_and_only_by_lists() {
    let operations = &[("append", "a")];
    for base in [r#"{"a":{}}"#, r#"{"a":"text"}"#, r#"{"a":null}"#] {
        assert_eq!(json(operations, r#"{"a":[1]}"#, base), Err(ComposeError::NotAList), "{base}");
    }
    assert_eq!(json(operations, r#"{"a":"b"}"#, r#"{"a":[]}"#), Err(ComposeError::NotAList));
    assert_eq!(json(operations, r#"{"a":"b"}"#, ""), Err(ComposeError::NotAList));
}

#[test]
fn what_is_set_replaces_what_is_there() {
    let result = json(&[("set", "a.b")], r#"{"a":{"b":[2]}}"#, r#"{"a":{"b":{"c":1},"d":0}}"#);
    assert_eq!(result.unwrap(), "{\"a\":{\"b\":[2],\"d\":0}}\n");
}

#[test]
fn the_way_to_a_place_leads_through_tables_only() {
    for base in [r#"{"a":1}"#, r#"{"a":[{"b":1}]}"#, r#"{"a":"b"}"#, r#"{"a":null}"#] {
        let refused = json(&[("set", "a.b.c")], r#"{"a":{"b":{"c":1}}}"#, base);
        assert_eq!(refused, Err(ComposeError::NotATable), "{base}");
        let refused = json(&[("set", "a.b")], r#"{"a":{"b":1}}"#, base);
        assert_eq!(refused, Err(ComposeError::NotATable), "{base}");
    }
}

#[test]
fn content_outside_the_places_is_refused() {
    let operations = &[("set", "a.b")];
    for content in [
        r#"{"a":{"b":1},"c":2}"#,
        r#"{"a":{"b":1,"c":2}}"#,
        r#"{"a":{"b":1},"c":{}}"#,
        r#"{"a":1}"#,
        r#"{"a":[{"b":1}]}"#,
    ] {
        let refused = json(operations, content, "");
        assert_eq!(refused, Err(ComposeError::OutsideContent), "{content}");
    }
}

#[test]
fn a_place_without_content_is_refused() {
    for content in ["{}", r#"{"a":{}}"#] {
        let refused = json(&[("set", "a.b")], content, "");
        assert_eq!(refused, Err(ComposeError::NothingAtPlace), "{content}");
    }
}

#[test]
fn what_is_no_document_is_refused() {
    let set = &[("set", "a")];
    let base = |base: &str| json(set, "{\"a\":1}", base);
    assert_eq!(base("{,}"), Err(ComposeError::Base(DocumentError::NotWellFormed)));
    assert_eq!(base(" "), Err(ComposeError::Base(DocumentError::NotWellFormed)));
    assert_eq!(base("{} // c"), Err(ComposeError::Base(DocumentError::NotWellFormed)));
    assert_eq!(base("[]"), Err(ComposeError::Base(DocumentError::NotATable)));
    assert_eq!(base("{\"b\":1,\"b\":2}"), Err(ComposeError::Base(DocumentError::NameTwice)));
    assert_eq!(json(set, "[]", ""), Err(ComposeError::Content(DocumentError::NotATable)));
    assert_eq!(json(set, "", ""), Err(ComposeError::Content(DocumentError::NotWellFormed)));
    let bytes = compose(&patch("json_patch", set), "{\"a\":1}", Some(b"\xff"));
    assert_eq!(bytes, Err(ComposeError::Base(DocumentError::NotText)));
}

#[test]
fn a_base_that_is_nested_too_deep_is_refused() {
    let lists = |levels: usize| format!("{{\"b\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(json(&[("set", "a")], "{\"a\":1}", &lists(NESTING_MAX - 1)).is_ok());
    let refused = json(&[("set", "a")], "{\"a\":1}", &lists(NESTING_MAX));
    assert_eq!(refused, Err(ComposeError::Base(DocumentError::TooDeep)));
}
