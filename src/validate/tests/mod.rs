//! Every rule by a small project that breaks it, at the place marked `§`, and by its neighbour that does not.

mod names;
mod promises;
mod queries;
mod rules;
mod runtime;
mod sql_findings;

use std::collections::BTreeSet;

use super::*;
use crate::codes::{Code, Diagnostic, Location};
use crate::project::{EnvironmentInput, MemoryFs, Project, load};

/// A project that breaks one rule. The marked place is where the finding must point; `fix` replaces text so that the rule holds.
struct Case {
    code: Code,
    body: &'static str,
    fix: (&'static str, &'static str),
}

const HEAD: &str = "apiVersion: streamt.dev/v1alpha1\nproject: {name: p}\n";
const RUNTIME: &str = "runtime:\n  kafka: {bootstrap_servers: 'b:9092'}\n";

fn document(body: &str) -> String {
    let body = body.trim_start_matches('\n');
    let runtime = if body.starts_with("runtime:") { "" } else { RUNTIME };
    format!("{HEAD}{runtime}{body}")
}

fn loaded(text: &str) -> Project {
    let fs =
        MemoryFs::new().with("stream_project.yml", text).with("macros/m.sql.j2", "SELECT a, b FROM {{ source('s') }}");
    match load(&fs, &EnvironmentInput::default()) {
        Ok(loaded) => loaded.project,
        Err(errors) => panic!("does not load: {errors:#?}\n{text}"),
    }
}

fn findings(text: &str) -> Vec<Diagnostic> {
    validate(&loaded(text)).into_vec()
}

fn codes(text: &str) -> Vec<Code> {
    findings(text).iter().map(|finding| finding.code).collect()
}

/// The document without its mark, and the mark's place.
fn unmarked(body: &str) -> (String, Location) {
    let text = document(body);
    let at = text.find('§').expect("a case marks its place");
    let line = text[..at].matches('\n').count() + 1;
    let column = text[..at].chars().rev().take_while(|c| *c != '\n').count() + 1;
    let location = Location::new("stream_project.yml", line as u32, column as u32);
    (text.replace('§', ""), location)
}

fn check(cases: &[Case]) {
    for Case { code, body, fix } in cases {
        let (text, place) = unmarked(body);
        let found = findings(&text);
        let hit = found.iter().find(|finding| finding.code == *code && finding.location.as_ref() == Some(&place));
        assert!(hit.is_some(), "{code} is not raised at {place}; found {found:#?} in\n{text}");
        assert!(text.contains(fix.0), "the fix of {code} replaces {:?}, which is not in\n{text}", fix.0);
        let good = text.replace(fix.0, fix.1);
        let still: Vec<_> = findings(&good).into_iter().filter(|finding| finding.code == *code).collect();
        assert!(still.is_empty(), "{code} is raised for the neighbour: {still:#?} in\n{good}");
    }
}

#[test]
fn findings_come_in_the_order_of_the_passes() {
    let text = document(
        "
rules: {models: {require_owner: true}}
sources:
  - {name: unused, topic: u}
  - {name: unused, topic: v}
models:
  - {name: m, key: x, columns: [{name: y}], version: 1}
  - {name: m, topic: {name: n}, owner: o, version: 3}
tests:
  - {name: t, model: nowhere, type: schema}
exposures:
  - {name: e, type: api, consumes: [{ref: nothing}]}
",
    );
    let first = [
        Code::E103DuplicateName,
        Code::E103DuplicateName,
        Code::E107TestModelNotFound,
        Code::E108ExposureModelNotFound,
        Code::E211InvalidKeyColumn,
        Code::E612RuleRequireOwner,
        Code::W217VersionGap,
        Code::W202UnusedSource,
        Code::W202UnusedSource,
    ];
    assert_eq!(codes(&text), first);
}

#[test]
fn every_finding_names_a_place_a_path_and_no_two_lines() {
    let text = document(
        "
rules: {models: {require_owner: true, require_tests: true}}
models:
  - {name: m, key: x, columns: [{name: y, type: NUMBER}], sql: \"SELECT * FROM {{ ref('n') }}\"}
",
    );
    let found = findings(&text);
    assert!(found.len() >= 5, "{found:#?}");
    for finding in &found {
        assert!(finding.location.is_some() && finding.path.is_some(), "{finding:#?}");
        assert!(!finding.message.contains('\n'), "{finding:#?}");
    }
    let distinct: BTreeSet<String> = found.iter().map(|finding| format!("{finding:?}")).collect();
    assert_eq!(distinct.len(), found.len(), "a finding is made twice: {found:#?}");
}
