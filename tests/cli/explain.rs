//! `explain`: every code and word has an answer.

use crate::harness::{Workspace, snapshot};

#[test]
fn a_code_is_found_by_name_number_alias_and_in_any_case() {
    let workspace = Workspace::new();
    snapshot!(workspace, workspace.run("explain E409"), "explain_code");
    let full = workspace.run("explain E409_PLAN_STALE -o json").exits(0).stdout;
    for name in ["E409", "e409_plan_stale"] {
        assert_eq!(workspace.run(&format!("explain {name} -o json")).exits(0).stdout, full);
    }
    assert_eq!(workspace.run("explain PARSE_ERROR -o json").json()["data"]["code"], "E501_PARSE_ERROR");
}

#[test]
fn words_of_a_plan_are_explained_too() {
    let workspace = Workspace::new();
    snapshot!(workspace, workspace.run("explain kafka_partition_reduction -o json"), "explain_word_json");
}

#[test]
fn an_unknown_name_is_a_usage_error_with_the_closest_one() {
    let workspace = Workspace::new();
    snapshot!(workspace, workspace.run("explain E409_PLAN_STAEL -o json"), "explain_unknown_json");
}

#[test]
fn every_code_is_listed_and_explained() {
    let workspace = Workspace::new();
    let listed = workspace.run("explain --list -o json").exits(0).json();
    let codes: Vec<&str> =
        listed["data"]["codes"].as_array().unwrap().iter().map(|row| row["code"].as_str().unwrap()).collect();
    for code in streamt::codes::Code::ALL {
        assert!(codes.contains(&code.as_str()), "{code}");
    }
    let family = workspace.run("explain --list --family 7").exits(0).stdout;
    assert!(family.contains("E711_INIT_OPTIONS_INVALID") && !family.contains("E501"), "{family}");
}
