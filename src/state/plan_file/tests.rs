//! Reviewed plans: their bytes, what is refused, and what makes them stale.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::codes::Code;
use crate::compiler::artifact::Kind;
use crate::compiler::canonical::{Checksum, to_canonical};
use crate::planner::Plan;
use crate::planner::fixtures::{World, id, live_topic, topic};
use crate::planner::observation::{ConsumerEvidence, EvidenceStatus, GroupLag};
use crate::state::model::{BackendKind, OwnershipState, StateAddress, StoreIdentity};
use crate::state::scalar::Timestamp;

fn digits(digit: char) -> Checksum {
    Checksum::parse(&format!("sha256:{}", digit.to_string().repeat(64))).unwrap()
}

fn origin(state: Option<StateReference>, version: &str) -> Origin {
    Origin {
        streamt_version: version.to_owned(),
        created_at: Timestamp::parse("2026-09-06T09:30:00Z").unwrap(),
        environment_fingerprint: digits('2'),
        manifest_checksum: digits('3'),
        state,
    }
}

fn state_reference() -> StateReference {
    StateReference {
        store: StoreIdentity {
            backend: BackendKind::Postgres,
            store_id: Uuid::parse_str("2b1e8a5e-9e1a-4e49-9b39-3b9b0f0b7c11").unwrap(),
        },
        address: StateAddress {
            namespace: "platform".to_owned(),
            project: "payments".to_owned(),
            environment: "prod".to_owned(),
        },
        serial: 0,
        checksum: OwnershipState::empty("payments", "prod").checksum().unwrap(),
    }
}

/// One new topic.
fn creating() -> World {
    World::new().with_topic(topic("orders.v1", 1, &[]), None)
}

/// One owned topic that is to grow, with a watched consumer.
fn growing(lag: u64) -> World {
    let mut world = World::new().with_topic(topic("orders.v1", 6, &[]), Some(live_topic("orders.v1", 3, &[]))).owned();
    let group = GroupLag { group_id: "billing".to_owned(), lag, partitions: Vec::new() };
    world.observations.consumers = Some(ConsumerEvidence {
        status: EvidenceStatus::Verified,
        reason: None,
        failures: Vec::new(),
        groups: [("orders.v1".to_owned(), vec![group])].into(),
    });
    world
}

fn reviewed(plan: &Plan) -> ReviewedPlan {
    ReviewedPlan::of(plan, origin(Some(state_reference()), "0.2.0")).unwrap()
}

fn document(plan: &ReviewedPlan) -> Value {
    serde_json::from_slice(&plan.to_bytes().unwrap()).unwrap()
}

/// A file after somebody's edit, with or without a new checksum.
fn edited(
    plan: &ReviewedPlan,
    rehash: bool,
    edit: impl FnOnce(&mut Value),
) -> Result<ReviewedPlan, crate::codes::Diagnostic> {
    let mut value = document(plan);
    edit(&mut value);
    if rehash {
        value.as_object_mut().unwrap().shift_remove("checksum");
        let checksum = Checksum::of(&value).unwrap();
        value["checksum"] = json!(checksum);
    }
    ReviewedPlan::parse(&serde_json::to_vec(&value).unwrap())
}

fn refusal(plan: &ReviewedPlan, rehash: bool, edit: impl FnOnce(&mut Value)) -> String {
    let error = edited(plan, rehash, edit).unwrap_err();
    assert_eq!(error.code, Code::E408PlanFileInvalid);
    error.message
}

/// The golden vectors are kept short: they list neither impact nor the attributes of what is created.
fn reduce(plan: &mut Plan) {
    plan.impact.clear();
    plan.changes.iter_mut().for_each(|change| change.changes.clear());
}

/// SAF-049
#[test]
fn an_offline_plan_has_the_golden_bytes_and_checksum() {
    let mut plan = World::new().with_topic(topic("orders.clean.v1", 1, &[]), None).plan_offline();
    reduce(&mut plan);
    plan.project = "orders".to_owned();
    plan.environment = "dev".to_owned();
    let runtime = json!({"kafka": {"bootstrap_servers": "localhost:9092", "sasl_password": "hunter2"}});
    let mut origin = origin(None, "0.1.0");
    origin.environment_fingerprint = environment_fingerprint("dev", &runtime).unwrap();
    origin.manifest_checksum = digits('0');
    let reviewed = ReviewedPlan::of(&plan, origin).unwrap();
    let mut value = document(&reviewed);
    value.as_object_mut().unwrap().shift_remove("checksum");
    assert_eq!(
        String::from_utf8(to_canonical(&value).unwrap()).unwrap(),
        include_str!("golden_offline.json").trim_end()
    );
    assert_eq!(reviewed.checksum.as_str(), "sha256:521c4198fa86becae1d91c62bb6cba87b0070f8c4c3fe215dfde335455799e61");
    assert!(reviewed.is_offline() && !reviewed.authorizes_apply());
    assert_eq!(reviewed.require_online().unwrap_err().code, Code::E408PlanFileInvalid);
}

#[test]
fn secrets_of_the_runtime_never_influence_the_fingerprint() {
    let of = |password: &str| {
        let runtime = json!({"kafka": {"bootstrap_servers": "localhost:9092", "sasl_password": password}});
        environment_fingerprint("dev", &runtime).unwrap()
    };
    assert_eq!(of("a").as_str(), "sha256:4705a1c421342c92ff1fe7c2c597295f188f0dac448e0fc878ab38d3800f8d1e");
    assert_eq!(of("a"), of("b"));
    let runtime = json!({"kafka": {"bootstrap_servers": "kafka.example.test:9092", "sasl_password": "x"}});
    assert_eq!(
        environment_fingerprint("prod", &runtime).unwrap().as_str(),
        "sha256:eb0af41889a0490d847cbc574e7a03548a0a55c9f7686ac1e7d553f1d4ad2d58"
    );
}

/// SAF-049
#[test]
fn an_online_create_has_the_golden_checksum() {
    let mut plan = creating().plan();
    reduce(&mut plan);
    let reviewed = reviewed(&plan);
    assert_eq!(reviewed.checksum.as_str(), "sha256:a2fa31843a32eb775a01bfead38107b006692965450ed855b00a071b44291872");
    assert!(reviewed.authorizes_apply() && reviewed.require_online().is_ok());
}

#[test]
fn a_plan_file_is_pretty_sorted_and_reads_back_equal() {
    for world in [creating(), growing(3)] {
        let reviewed = reviewed(&world.plan());
        let bytes = reviewed.to_bytes().unwrap();
        assert_eq!(ReviewedPlan::parse(&bytes).unwrap(), reviewed);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("{\n  \"actions\": [\n    {\n      \"action\": "), "{text}");
        assert!(text.ends_with("\n}\n"));
    }
}

/// SAF-006
#[test]
fn a_modified_file_is_refused() {
    let reviewed = reviewed(&creating().plan());
    let changed = "the plan file is not accepted: its checksum does not match: it was changed after it was made";
    assert_eq!(refusal(&reviewed, false, |file| file["plan"]["resources"][0]["name"] = json!("other")), changed);
    assert_eq!(refusal(&reviewed, false, |file| file["actions"][0]["action"] = json!("update")), changed);
    assert_eq!(refusal(&reviewed, false, |file| file["checksum"] = json!(digits('a'))), changed);
}

/// SAF-051
#[test]
fn other_formats_and_kinds_are_refused_by_name() {
    let reviewed = reviewed(&creating().plan());
    let format = |number: Value| refusal(&reviewed, true, |file| file["format_version"] = number);
    for old in 1..=4 {
        let error = edited(&reviewed, true, |file| file["format_version"] = json!(old)).unwrap_err();
        assert_eq!(error.message, format!("the plan file is not accepted: its format {old} is no longer accepted"));
        assert!(error.suggestion.unwrap().starts_with("make the plan again"));
    }
    assert!(format(json!(6)).ends_with("its format 6 replaces a Kafka Streams job, which this version cannot do"));
    assert!(format(json!(7)).ends_with("its format 7 is unknown to this version"));
    assert!(format(json!("5")).ends_with("its format is missing"));
    assert!(format(json!(5.0)).ends_with("its format is missing"));
    let kind = refusal(&reviewed, true, |file| file["kind"] = json!("streamt.recovery-plan"));
    assert!(kind.ends_with("it is no reviewed plan"));
}

#[test]
fn a_file_of_another_shape_is_refused_even_with_a_right_checksum() {
    let reviewed = reviewed(&growing(1).plan());
    type Edit = fn(&mut Value);
    let edits: [(&str, Edit); 20] = [
        ("unknown key", |file| file["extra"] = json!(1)),
        ("unknown key deep inside", |file| file["plan"]["impact"][0]["extra"] = json!(1)),
        ("missing key", |file| drop(file.as_object_mut().unwrap().shift_remove("selection"))),
        ("missing nullable key", |file| {
            drop(file["actions"][0].as_object_mut().unwrap().shift_remove("gateway_evidence"))
        }),
        ("selection", |file| file["selection"] = json!({"target": "a"})),
        ("unknown risk word", |file| file["plan"]["risk_summary"]["overall"] = json!("fine")),
        ("unknown action word", |file| file["plan"]["resources"][0]["action"] = json!("drop")),
        ("unordered set", |file| {
            file["plan"]["risk_summary"]["risk_flags"] = json!(["impact_unverified", "consumer_impact"])
        }),
        ("float for a count", |file| file["state"]["serial"] = json!(0.5)),
        ("upper-case uuid", |file| file["state"]["store_id"] = json!("2B1E8A5E-9E1A-4E49-9B39-3B9B0F0B7C11")),
        ("address of another project", |file| file["state"]["address"] = json!("streamt-state://platform/other/prod")),
        ("address with four segments", |file| file["state"]["address"] = json!("streamt-state://a/payments/prod/x")),
        ("unknown backend", |file| file["state"]["backend"] = json!("s3")),
        ("online without a state", |file| file["state"] = Value::Null),
        ("gap in the actions", |file| file["actions"][0]["index"] = json!(1)),
        ("action of another environment", |file| {
            file["actions"][0]["resource_id"] = json!("streamt://payments/dev/topic/orders");
        }),
        ("delete", |file| file["actions"][0]["action"] = json!("delete")),
        ("evidence that no topic has", |file| file["actions"][0]["connector_evidence"] = json!({})),
        ("no action for a planned change", |file| file["actions"] = json!([])),
        ("fraction of a second", |file| file["created_at"] = json!("2026-09-06T09:30:00.5Z")),
    ];
    for (what, edit) in edits {
        assert!(refusal(&reviewed, true, edit).starts_with("the plan file is not accepted"), "{what}");
    }
}

#[test]
fn text_that_is_no_strict_json_is_refused() {
    let bytes = reviewed(&creating().plan()).to_bytes().unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let duplicate = text.replacen("\"offline\": false,", "\"offline\": false, \"offline\": false,", 1);
    let nested = text.replacen("\"serial\": 0,", "\"serial\": 0, \"serial\": 0,", 1);
    for bad in ["", "[]", "null", "{", &text[..text.len() - 3], &format!("{text}{{}}"), &duplicate, &nested] {
        assert_eq!(ReviewedPlan::parse(bad.as_bytes()).unwrap_err().code, Code::E408PlanFileInvalid, "{bad:.40}");
    }
}

/// SEC-001, SEC-003
#[test]
fn sensitive_values_are_redacted_and_refused_when_they_are_not() {
    let desired = topic("orders.v1", 1, &[("x.password", "hunter2")]);
    let live = live_topic("orders.v1", 1, &[("x.password", "hunter1"), ("note", "http://bob:hunter3@host")]);
    let reviewed = reviewed(&World::new().with_topic(desired, Some(live)).owned().plan());
    let text = String::from_utf8(reviewed.to_bytes().unwrap()).unwrap();
    assert!(!text.contains("hunter"), "{text}");
    assert!(text.contains(r#""config.x.password": "<redacted>""#), "{text}");
    assert_eq!(
        refusal(&reviewed, true, |file| {
            file["plan"]["resources"][0]["changes"]["config.x.password"] = json!({"from": "a", "to": "b"});
        }),
        "the plan file is not accepted: it shows a value under a sensitive key"
    );
}

#[test]
fn a_file_is_written_for_its_owner_alone_and_replaced_in_one_step() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new").join("plan.json");
    let (first, second) = (reviewed(&creating().plan()), reviewed(&growing(1).plan()));
    write(&path, &first).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    write(&path, &second).unwrap();
    assert_eq!(read(&path).unwrap(), second);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "no temporary file stays: {left:?}");
}

#[test]
fn a_target_that_is_no_regular_file_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let plan = reviewed(&creating().plan());
    let victim = directory.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let link = directory.path().join("link.json");
    symlink(&victim, &link).unwrap();
    let dangling = directory.path().join("dangling.json");
    symlink(directory.path().join("nothing"), &dangling).unwrap();
    let missing = directory.path().join("a").join("b").join("plan.json");
    for path in [directory.path(), &link, &dangling, &missing] {
        let error = write(path, &plan).unwrap_err();
        assert_eq!(error.code, Code::E408PlanFileInvalid);
        assert!(error.location.is_some());
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!directory.path().join("nothing").exists() && !directory.path().join("a").exists());
}

/// `--out` with a name too many must not cost a project file or a state; a damaged plan is a plan all the same.
#[test]
fn a_file_that_holds_no_plan_is_never_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let plan = reviewed(&creating().plan());
    let path = directory.path().join("target");
    for kept in ["apiVersion: streamt.dev/v1alpha1\n", "{\"state_version\":1}", "# \"streamt.reviewed-plan\"\n"] {
        fs::write(&path, kept).unwrap();
        assert_eq!(write(&path, &plan).unwrap_err().code, Code::E408PlanFileInvalid);
        assert_eq!(fs::read_to_string(&path).unwrap(), kept);
    }
    for replaced in ["", "{\"format_version\":99,\"kind\":\"streamt.reviewed-plan\""] {
        fs::write(&path, replaced).unwrap();
        write(&path, &plan).unwrap();
        assert_eq!(read(&path).unwrap(), plan);
    }
}

#[test]
fn only_a_bounded_regular_file_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let big = directory.path().join("big");
    fs::File::create(&big).unwrap().set_len(MAX_BYTES + 1).unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0)
        .unwrap();
    let plan = directory.path().join("plan");
    write(&plan, &reviewed(&creating().plan())).unwrap();
    let link = directory.path().join("link");
    symlink(&plan, &link).unwrap();
    assert!(read(&plan).is_ok());
    for path in [directory.path(), &big, &pipe, &link, &directory.path().join("absent")] {
        assert_eq!(read(path).unwrap_err().code, Code::E408PlanFileInvalid, "{path:?}");
    }
}

fn stale(edit: impl FnOnce(&mut Context<'_>, &mut Values)) -> Box<Stale> {
    check(edit).unwrap_err()
}

/// What a context borrows.
struct Values {
    state: StateReference,
}

fn check(edit: impl FnOnce(&mut Context<'_>, &mut Values)) -> Result<(), Box<Stale>> {
    let plan = reviewed(&creating().plan());
    let (fingerprint, manifest) = (digits('2'), digits('3'));
    let mut values = Values { state: state_reference() };
    let blank = state_reference();
    let mut context = Context {
        project: "payments",
        environment: "prod",
        environment_fingerprint: &fingerprint,
        manifest_checksum: &manifest,
        state: &blank,
        max_age: None,
    };
    edit(&mut context, &mut values);
    plan.check_context(&Context { state: &values.state, ..context })
}

/// SAF-059, SAF-060, SAF-061
#[test]
fn every_part_of_the_context_is_compared_and_named() {
    static OTHER: std::sync::LazyLock<Checksum> = std::sync::LazyLock::new(|| digits('9'));
    assert_eq!(check(|_, _| {}), Ok(()));
    let table = [
        ("project", stale(|context, _| context.project = "other")),
        ("environment", stale(|context, _| context.environment = "dev")),
        ("environment_fingerprint", stale(|context, _| context.environment_fingerprint = &OTHER)),
        ("manifest_checksum", stale(|context, _| context.manifest_checksum = &OTHER)),
        ("state.backend", stale(|_, values| values.state.store.backend = BackendKind::Local)),
        ("state.store_id", stale(|_, values| values.state.store.store_id = Uuid::nil())),
        ("state.address", stale(|_, values| values.state.address.namespace = "x".to_owned())),
        ("state.serial", stale(|_, values| values.state.serial = 1)),
        ("state.checksum", stale(|_, values| values.state.checksum = digits('9'))),
    ];
    let mut sentences = std::collections::BTreeSet::new();
    for (field, found) in table {
        assert_eq!(found.field, field);
        assert_eq!(found.data()["field"], field);
        assert_ne!(found.data()["reviewed"], found.data()["current"]);
        assert_eq!(found.diagnostic().code, Code::E409PlanStale);
        assert!(sentences.insert(found.diagnostic().message), "each field has its own sentence: {field}");
    }
}

/// SAF-062
#[test]
fn a_plan_expires_by_the_policy_of_the_environment_alone() {
    let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
    let expired = |minutes, now: &str| {
        let result = check(|context, _| context.max_age = Some((minutes, at(now))));
        result.map_err(|stale| stale.data())
    };
    let data = Err(json!({"field": "created_at", "reason": "expired"}));
    assert_eq!(expired(60, "2026-09-06T10:30:00Z"), Ok(()));
    assert_eq!(expired(60, "2026-09-06T10:30:01Z"), data);
    assert_eq!(expired(60, "2026-09-06T09:25:00Z"), Ok(()));
    assert_eq!(expired(60, "2026-09-06T09:24:59Z"), data);
    assert_eq!(expired(525_600, "2026-09-08T09:30:00Z"), Ok(()));
}

/// SAF-006, SAF-064
#[test]
fn a_plan_that_would_now_do_something_else_is_stale() {
    let plan = reviewed(&growing(3).plan());
    assert_eq!(plan.check_plan(&growing(3).plan()), Ok(()));
    assert_eq!(plan.check_plan(&growing(900).plan()), Ok(()), "lag is no reason");

    let stale = plan.check_plan(&creating().plan()).unwrap_err();
    assert_eq!(stale.field, "actions");

    let mut live = growing(3);
    live.observations.topics.insert("orders.v1".to_owned(), live_topic("orders.v1", 4, &[]));
    let stale = plan.check_plan(&live.plan()).unwrap_err();
    assert_eq!((stale.field, stale.sections.as_slice()), ("plan", &["resources"][..]));
    assert_eq!(stale.data()["sections"], json!(["resources"]));
    assert!(stale.data()["reviewed"].as_str().unwrap().starts_with("sha256:"));

    let mut blocked = growing(3);
    blocked.observations.topics.insert("orders.v1".to_owned(), live_topic("orders.v1", 9, &[]));
    let reviewed_blocked = reviewed(&blocked.plan());
    assert!(reviewed_blocked.actions.is_empty() && !reviewed_blocked.authorizes_apply());
    assert_eq!(reviewed_blocked.check_plan(&blocked.plan()), Ok(()));
    blocked.observations.topics.insert("orders.v1".to_owned(), live_topic("orders.v1", 8, &[]));
    let stale = reviewed_blocked.check_plan(&blocked.plan()).unwrap_err();
    assert_eq!(stale.sections, ["resources", "safety_blockers"]);

    let mut group = growing(3);
    group.observations.consumers.as_mut().unwrap().groups.clear();
    assert_eq!(plan.check_plan(&group.plan()).unwrap_err().sections, ["impact", "change_risks", "risk_summary"]);
    assert_eq!(plan.actions[0].resource_id, id(Kind::Topic, "orders"));
}
