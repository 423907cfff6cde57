//! Declared removals.

use super::*;

/// CRM-011 CRM-012 CRM-013 CRM-014 CRM-015 CRM-016 CRM-017 CRM-018 CRM-019 CRM-020 CRM-022 LIM-003 LIM-004 LIM-005
#[test]
fn connector_removals() {
    let list = |entry: &str| format!("lifecycle:\n connector_removals:\n - {entry}");
    let fields = |owner: &str, name: &str, cluster: &str| {
        list(&format!("{{logical_owner: {owner}, name: {name}, cluster: {cluster}}}"))
    };
    accepted(&[
        &fields("o", "' n '", "c"),
        "lifecycle: {}",
        &fields(&"o".repeat(128), &"n".repeat(256), &"c".repeat(128)),
    ]);
    let path = "lifecycle → connector_removals → 0";
    for bad in ["''", "' '", "null", "5", "'a/b'", "\"a\\x07\"", "\"\\u0085\"", &"o".repeat(129)] {
        check(&[(&fields(bad, "n", "c"), &format!("E501 3:20 {path} → logical_owner"))]);
    }
    for bad in ["''", "' '", "null", "[n]", "\"a\\x07\"", &"n".repeat(257)] {
        check(&[(&fields("o", bad, "c"), &format!("E501 3:29 {path} → name"))]);
        let cluster = if bad.len() > 200 { "n".repeat(129) } else { bad.to_owned() };
        check(&[(&fields("o", "n", &cluster), &format!("E501 3:41 {path} → cluster"))]);
    }
    for key in [
        "config",
        "connector_class",
        "topics",
        "ownership",
        "backend",
        "endpoint",
        "fingerprint",
        "state_address",
        "password",
    ] {
        let text = list(&format!("{{logical_owner: o, name: n, cluster: c, {key}: SENTINEL}}"));
        check(&[(&text, &format!("E501 3:44 {path} → {key}"))]);
    }
    check(&[
        (&list("{name: n, cluster: c}"), &format!("E501 3:4 {path} → logical_owner")),
        (&list("{logical_owner: o, name: n}"), &format!("E501 3:4 {path} → cluster")),
        ("lifecycle: {connector_removals: null}", "E501 1:33 lifecycle → connector_removals"),
        (
            "lifecycle: {connector_removals: {logical_owner: o, name: n, cluster: c}}",
            "E501 1:33 lifecycle → connector_removals",
        ),
        ("lifecycle: {topic_removals: []}", "E501 1:13 lifecycle → topic_removals"),
        ("lifecycle: {subject_removals: []}", "E501 1:13 lifecycle → subject_removals"),
        ("lifecycle: []", "E501 1:12 lifecycle"),
    ]);
    let two = |second: &str| format!("{}\n - {second}", list("{logical_owner: o, name: n, cluster: c}"));
    check(&[
        (
            &two("{logical_owner: o, name: m, cluster: c}"),
            "E501 4:20 lifecycle → connector_removals → 1 → logical_owner",
        ),
        (&two("{logical_owner: p, name: n, cluster: c}"), "E501 4:29 lifecycle → connector_removals → 1 → name"),
    ]);
    accepted(&[&two("{logical_owner: p, name: n, cluster: d}")]);
    let many = |count: usize| {
        let entries: Vec<String> =
            (0..count).map(|i| format!(" - {{logical_owner: o{i}, name: n{i}, cluster: c}}")).collect();
        format!("lifecycle:\n connector_removals:\n{}", entries.join("\n"))
    };
    accepted(&[&many(256)]);
    check(&[(&many(257), "E501 3:4 lifecycle → connector_removals")]);
}

#[test]
fn no_error_of_lifecycle_repeats_a_value() {
    for entry in [
        "{logical_owner: SENTINEL/x, name: n, cluster: c}",
        "{logical_owner: o, name: [SENTINEL], cluster: c}",
        "{logical_owner: o, name: n, cluster: c, type: SENTINEL}",
        "{logical_owner: SENTINEL, name: a, cluster: c}\n - {logical_owner: SENTINEL, name: b, cluster: c}",
    ] {
        let fs = MemoryFs::new()
            .with("stream_project.yml", format!("{HEADER}lifecycle:\n connector_removals:\n - {entry}\n"));
        let errors = load(&fs, &EnvironmentInput::default()).unwrap_err();
        assert!(!format!("{errors:?}").contains("SENTINEL"), "{errors:#?}");
    }
    let gateway = "lifecycle: {gateway_rule_removals: [{logical_owner: o, prior_artifact: {name: n, virtualTopic: v, physicalTopic: p, interceptors: [{type: SENTINEL}]}}]}\n";
    let errors =
        load(&MemoryFs::new().with("stream_project.yml", format!("{HEADER}{gateway}")), &EnvironmentInput::default())
            .unwrap_err();
    assert!(!format!("{errors:?}").contains("SENTINEL"), "{errors:#?}");
}

#[test]
fn gateway_rule_removals() {
    let rule = |interceptors: &str| {
        format!(
            "lifecycle: {{gateway_rule_removals: [{{logical_owner: o, prior_artifact: {{name: n, virtualTopic: v, physicalTopic: p, interceptors: {interceptors}}}}}]}}"
        )
    };
    accepted(&[
        &rule("[]"),
        &rule("[{type: filter, config: {where: a}}, {type: mask, config: {field: f, method: m}}]"),
    ]);
    let path = "lifecycle → gateway_rule_removals → 0 → prior_artifact → interceptors";
    let at = |text: &str| {
        let fs = MemoryFs::new().with("stream_project.yml", format!("{HEADER}{text}\n"));
        report(&fs)
            .into_iter()
            .map(|line| line.split_once(' ').unwrap().1.split_once(' ').unwrap().1.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(at(&rule("null")), [path.to_owned()]);
    assert_eq!(at(&rule("[{type: filter, config: {where: ' '}}]")), [format!("{path} → 0 → config → where")]);
    assert_eq!(at(&rule("[{type: cut, config: {}}]")), [format!("{path} → 0 → type")]);
    assert_eq!(at(&rule("[{config: {where: a}}]")), [format!("{path} → 0 → type")]);
    assert_eq!(
        at(&rule("[{type: mask, config: {field: f, method: m, forRoles: null}}]")),
        [format!("{path} → 0 → config → forRoles")]
    );
    assert_eq!(
        at(&rule("[{type: mask, config: {field: f, method: m, forRoles: [a, a]}}]")),
        [format!("{path} → 0 → config → forRoles")]
    );
    let pair = |b: &str| {
        format!(
            "lifecycle:\n gateway_rule_removals:\n - {{logical_owner: o, prior_artifact: {{name: n, virtualTopic: v, physicalTopic: p, interceptors: []}}}}\n - {b}"
        )
    };
    let second = |owner: &str, name: &str, alias: &str| {
        pair(&format!(
            "{{logical_owner: {owner}, prior_artifact: {{name: {name}, virtualTopic: {alias}, physicalTopic: p, interceptors: []}}}}"
        ))
    };
    let base = "lifecycle → gateway_rule_removals → 1";
    assert_eq!(at(&second("o", "m", "w")), [format!("{base} → logical_owner")]);
    assert_eq!(at(&second("q", "n", "w")), [format!("{base} → prior_artifact → name")]);
    assert_eq!(at(&second("q", "m", "v")), [format!("{base} → prior_artifact → virtualTopic")]);
    accepted(&[&second("q", "m", "w")]);
}
