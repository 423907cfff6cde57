//! What a registry's answers mean, each at the field of the source that asks.

use super::*;
use crate::codes::{Code, Diagnostic};
use crate::compiler::artifact::SchemaType;
use crate::project::model::{SchemaFormat, SchemaVersion};
use crate::project::{EnvironmentInput, MemoryFs, Project, load};

const PROJECT: &str = "\
apiVersion: streamt.dev/v1alpha1
project: {name: p}
runtime:
  kafka: {bootstrap_servers: 'b:9092'}
sources:
  - name: latest
    topic: orders
    schema:
      registry: confluent
      format: avro
  - name: pinned
    topic: payments
    schema:
      subject: own-subject
      version: 3
      format: json
  - name: other_registry
    topic: x
    schema:
      registry: glue
  - name: inline
    topic: y
    schema:
      subject: y
      definition: '{}'
  - name: described
    topic: z
    schema:
      subject: z
      fields: [{name: a, type: INT}]
  - name: format_only
    topic: w
    schema:
      format: avro
";

fn project() -> Project {
    load(&MemoryFs::new().with("stream_project.yml", PROJECT), &EnvironmentInput::default()).unwrap().project
}

fn found(schema_type: SchemaType) -> SchemaAnswer {
    SchemaAnswer::Found { version: 7, id: 100, schema_type, references: 0, compatibility: None }
}

/// The row and, of the finding, code and place.
fn judged(question: usize, answer: SchemaAnswer) -> (SchemaCheck, Option<(Code, String)>) {
    let project = project();
    let (mut questions, _) = schema_questions(&project);
    let mut report = judge_schemas(&project, &[(questions.remove(question), answer)]);
    let findings = report.findings.into_vec();
    assert!(findings.len() <= 1, "{findings:#?}");
    let finding = findings.first().map(|finding| (finding.code, finding.location.as_ref().unwrap().to_string()));
    (report.checks.remove(0), finding)
}

#[test]
fn only_subjects_that_live_in_the_registry_alone_are_asked_for() {
    let (questions, findings) = schema_questions(&project());
    assert_eq!(
        questions,
        [
            SchemaQuestion {
                source: "latest".into(),
                subject: "orders-value".into(),
                version: SchemaVersion::Latest,
                format: Some(SchemaFormat::Avro),
            },
            SchemaQuestion {
                source: "pinned".into(),
                subject: "own-subject".into(),
                version: SchemaVersion::Number(3),
                format: Some(SchemaFormat::Json),
            },
        ]
    );
    let findings = findings.into_vec();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].code, Code::E212SchemaRegistrySelectorUnsupported);
    assert_eq!(findings[0].location.as_ref().unwrap().to_string(), "stream_project.yml:20:17");
}

#[test]
fn a_subject_of_the_declared_format_is_verified_with_the_version_it_resolved_to() {
    let (check, finding) = judged(0, found(SchemaType::Avro));
    assert_eq!(finding, None);
    assert_eq!(check.status, SchemaStatus::Verified);
    let row = r#"{"source":"latest","subject":"orders-value","version":7,"format":"avro","status":"verified"}"#;
    assert_eq!(serde_json::to_string(&check).unwrap(), row);
}

#[test]
fn another_format_and_an_unknown_type_are_told_apart() {
    let (check, finding) = judged(0, found(SchemaType::Protobuf));
    assert_eq!((check.status, check.format.as_deref()), (SchemaStatus::FormatMismatch, Some("protobuf")));
    assert_eq!(finding, Some((Code::E217SchemaFormatMismatch, "stream_project.yml:10:15".into())));
    let (check, finding) = judged(0, SchemaAnswer::TypeUnsupported("THRIFT".into()));
    assert_eq!(check.status, SchemaStatus::FormatMismatch);
    assert_eq!(finding.unwrap().0, Code::E216SchemaTypeUnsupported);
}

#[test]
fn a_missing_subject_and_a_missing_version_point_at_their_fields() {
    let (check, finding) = judged(1, SchemaAnswer::Missing);
    assert_eq!(finding, Some((Code::E215SchemaSubjectNotFound, "stream_project.yml:15:16".into())));
    assert_eq!((check.status, check.version), (SchemaStatus::Missing, 3.into()));
    let (check, finding) = judged(0, SchemaAnswer::Missing);
    assert_eq!(finding.unwrap().0, Code::E215SchemaSubjectNotFound);
    assert_eq!(check.version, "latest");
}

#[test]
fn a_broken_reference_and_an_unreachable_registry_say_nothing_of_the_subject() {
    let (check, finding) = judged(1, SchemaAnswer::ReferenceUnresolved("money version 2".into()));
    assert_eq!(check.status, SchemaStatus::ReferenceUnresolved);
    assert_eq!(finding.unwrap().0, Code::E213SchemaRegistryResolutionFailed);
    let cause = Diagnostic::new(Code::E406ConnectionRefused, "connection refused").suggest("check the address");
    let (check, finding) = judged(1, SchemaAnswer::Unavailable(Box::new(cause)));
    assert_eq!(check.status, SchemaStatus::Unavailable);
    assert_eq!(finding.unwrap().0, Code::E214SchemaRegistryUnavailable);
}
