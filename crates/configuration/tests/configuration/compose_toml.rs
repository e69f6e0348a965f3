//! Insertions into TOML and patches of it.

use crate::support::{CANARY, composed, patch, toml_insert};
use placement_configuration::{ComposeError, DocumentError, NESTING_MAX};

const BEE: &str = "[mcp_servers.bee]\nurl = \"u\"\n";

fn insert(base: &str) -> Result<String, ComposeError> {
    composed(&toml_insert("mcp_servers.bee"), BEE, base)
}

fn toml(operations: &[(&str, &str)], content: &str, base: &str) -> Result<String, ComposeError> {
    composed(&patch("toml_patch", operations), content, base)
}

#[test]
fn an_empty_base_composes_exactly_one_section() {
    assert_eq!(insert("").unwrap(), BEE);
}

#[test]
fn a_base_keeps_its_comments_its_order_and_its_spelling() {
    let base =
        "# head\nz = 0x1F   # hex\na = 'x'\n\n[b.c]  # why\nd = 1_000\n\n# last\n[[e]]\nf = 1\n";
    assert_eq!(insert(base).unwrap(), format!("{base}\n{BEE}"));
}

#[test]
fn tables_stand_behind_others_in_the_order_in_which_they_were_written() {
    let content = "[mcp_servers.bee]\nurl = \"u\"\n\n[mcp_servers.bee.headers]\nA = \"b\"\n";
    let base = "[mcp_servers.other]\nurl = \"o\"\n\n[z]\n";
    let result = composed(&toml_insert("mcp_servers.bee"), content, base).unwrap();
    assert_eq!(result, format!("{base}\n{content}"));
}

#[test]
fn a_subtree_that_is_there_is_not_replaced_however_it_is_spelled() {
    for base in [
        "[mcp_servers.bee]\nx = 1\n",
        "[mcp_servers]\nbee = { x = 1 }\n",
        "[mcp_servers]\nbee.x = 1\n",
        "mcp_servers.bee.x = 1\n",
        "mcp_servers = { bee = { x = 1 } }\n",
        "[\"mcp_servers\".'bee']\nx = 1\n",
        "[[mcp_servers.bee]]\nx = 1\n",
        "[mcp_servers.bee.headers]\nx = 1\n",
        "\"mcp\\u005fservers\".bee = 1\n",
    ] {
        assert_eq!(insert(base), Err(ComposeError::Occupied), "{base}");
    }
}

#[test]
fn an_insertion_goes_into_whatever_its_parent_is_written_as() {
    for (base, expected) in [
        ("mcp_servers = { o = 1 }\n", "mcp_servers = { o = 1 , bee = { url = \"u\" } }\n"),
        ("mcp_servers.o.p = 1\n", "mcp_servers.o.p = 1\nmcp_servers.bee = { url = \"u\" }\n"),
        ("[mcp_servers]\no = 1\n", "[mcp_servers]\no = 1\n\n[mcp_servers.bee]\nurl = \"u\"\n"),
        ("[mcp_servers]\n", "[mcp_servers]\n\n[mcp_servers.bee]\nurl = \"u\"\n"),
        ("mcp_servers = {}\n", "mcp_servers = { bee = { url = \"u\" } }\n"),
    ] {
        assert_eq!(insert(base).as_deref(), Ok(expected), "{base}");
    }
}

#[test]
fn the_way_to_a_place_leads_through_tables_only() {
    for base in ["mcp_servers = 1\n", "mcp_servers = []\n", "[[mcp_servers]]\nbee = 1\n"] {
        assert_eq!(insert(base), Err(ComposeError::NotATable), "{base}");
    }
}

#[test]
fn the_content_is_the_subtree_and_nothing_else() {
    let insert = |content: &str| composed(&toml_insert("a.b"), content, "");
    for content in ["a.b = 1\nc = 2\n", "[a]\nb = 1\nc = 2\n", "[a.b]\n[c]\n", "a = 1\n"] {
        assert_eq!(insert(content), Err(ComposeError::OutsideContent), "{content}");
    }
    for content in ["", "# nothing\n", "[a]\n"] {
        assert_eq!(insert(content), Err(ComposeError::NothingAtPlace), "{content}");
    }
}

#[test]
fn a_default_is_set_kept_where_equal_and_refused_where_not() {
    let default = |base: &str| toml(&[("default", "a")], "a = { b = 1, c = [\"x\"] }\n", base);
    assert_eq!(default("").unwrap(), "a = { b = 1, c = [\"x\"] }\n");
    let base = "[a] # mine\nc = ['x']\nb = 0b1\n";
    assert_eq!(default(base).as_deref(), Ok(base));
    for base in ["[a]\nb = 1\n", "a = { b = 1.0, c = [\"x\"] }", "a = { b = \"1\", c = [\"x\"] }"] {
        assert_eq!(default(base), Err(ComposeError::Differs), "{base}");
    }
}

#[test]
fn a_list_is_lengthened_whatever_it_is_written_as() {
    let append = |content: &str, base: &str| toml(&[("append", "a")], content, base);
    assert_eq!(append("a = [3]", "a = [ 1, 2 ] # n\n").unwrap(), "a = [ 1, 2 , 3] # n\n");
    assert_eq!(append("a = [3]", "").unwrap(), "a = [3]\n");
    assert_eq!(append("a = [3]", "a = []\n").unwrap(), "a = [3]\n");
    let tables = append("[[a]]\nx = 2\n", "[[a]]\nx = 1\n\n[b]\n").unwrap();
    assert_eq!(tables, "[[a]]\nx = 1\n\n[b]\n[[a]]\nx = 2\n");
    let into_tables = append("a = [{ x = 2 }]", "[[a]]\nx = 1\n").unwrap();
    assert_eq!(into_tables, "[[a]]\nx = 1\n\n[[a]]\nx = 2\n");
    let into_values = append("[[a]]\nx = 2\n", "a = [{ x = 1 }]\n").unwrap();
    assert_eq!(into_values, "a = [{ x = 1 }, { x = 2 }]\n");
}

#[test]
fn a_list_over_several_lines_keeps_them() {
    let base = "a = [\n  1,\n  2,\n]\n";
    let result = toml(&[("append", "a")], "a = [3]", base).unwrap();
    assert_eq!(result, "a = [\n  1,\n  2,\n  3,\n]\n");
}

#[test]
fn lists_that_do_not_go_together_are_not_joined() {
    for base in ["a = 1\n", "a = {}\n", "[a]\n", "a = \"text\"\n"] {
        let refused = toml(&[("append", "a")], "a = [3]", base);
        assert_eq!(refused, Err(ComposeError::NotAList), "{base}");
    }
    let numbers_to_tables = toml(&[("append", "a")], "a = [3]", "[[a]]\nx = 1\n");
    assert_eq!(numbers_to_tables, Err(ComposeError::NotAList));
    let no_list = toml(&[("append", "a")], "a = 3", "a = []\n");
    assert_eq!(no_list, Err(ComposeError::NotAList));
}

#[test]
fn what_is_set_replaces_what_is_there_and_keeps_what_is_around_it() {
    let set = |content: &str, base: &str| toml(&[("set", "a.b")], content, base).unwrap();
    let base = "[a]\n# above\nb = 1 # beside\nc = 2\n";
    assert_eq!(set("a.b = 'x'", base), "[a]\n# above\nb = 'x' # beside\nc = 2\n");
    let base = "# t\n[a.b]\nx = 1\n\n[c]\ny = 1\n";
    assert_eq!(set("[a.b]\nz = 2\n", base), "# t\n[a.b]\nz = 2\n\n[c]\ny = 1\n");
    assert_eq!(set("a.b = 1", "[a.b]\nx = 1\n"), "[a]\nb = 1\n");
    assert_eq!(set("[a.b]\nx = 1\n", "a = { b = 1, c = 2 }\n"), "a = { b = { x = 1 }, c = 2 }\n");
}

#[test]
fn a_value_at_the_top_stands_before_the_tables() {
    let base = "# about t\n[t]\nx = 1\n";
    let result = toml(&[("set", "model")], "model = \"m\"\n", base).unwrap();
    assert_eq!(result, format!("model = \"m\"\n{base}"));
}

#[test]
fn what_is_no_document_is_refused_and_not_shown() {
    let broken = format!("x = {CANARY}\n");
    assert_eq!(insert(&broken), Err(ComposeError::Base(DocumentError::NotWellFormed)));
    assert_eq!(insert("a = 1\na = 2\n"), Err(ComposeError::Base(DocumentError::NotWellFormed)));
    let content = composed(&toml_insert("a"), &broken, "");
    assert_eq!(content, Err(ComposeError::Content(DocumentError::NotWellFormed)));
}

#[test]
fn a_base_that_is_nested_too_deep_is_refused() {
    let lists = |levels: usize| format!("b = {}{}\n", "[".repeat(levels), "]".repeat(levels));
    assert!(insert(&lists(NESTING_MAX - 1)).is_ok());
    let refused = insert(&lists(NESTING_MAX));
    assert_eq!(refused, Err(ComposeError::Base(DocumentError::TooDeep)));
}

#[test]
fn the_bound_of_a_result_holds() {
    // The base, an empty line and the section.
    let around = "x = \"\"\n".len() + 1 + BEE.len();
    let base = format!("x = \"{}\"\n", "y".repeat(131_072 - around));
    assert_eq!(insert(&base).unwrap().len(), 131_072);
    let refused = insert(&format!("#\n{base}"));
    assert_eq!(refused, Err(ComposeError::ResultTooLarge));
}
