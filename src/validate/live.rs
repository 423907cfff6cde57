//! The opt-in check of subjects that the project only reads: what to ask a registry, and what its answers mean.

use serde::Serialize;

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::artifact::SchemaType;
use crate::project::model::{Compatibility, Project, SchemaBlock, SchemaFormat, SchemaVersion, Source};

/// One subject to read. Only sources whose schema lives in the registry alone are asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaQuestion {
    pub source: String,
    pub subject: String,
    pub version: SchemaVersion,
    /// The declared format, which the registry's type must equal.
    pub format: Option<SchemaFormat>,
}

/// What the registry said to one question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SchemaAnswer {
    Found {
        version: u32,
        id: u32,
        schema_type: SchemaType,
        references: usize,
        /// The effective level, when it could be read.
        compatibility: Option<Compatibility>,
    },
    /// The subject has a type that this program does not know; the text is the registry's name of it.
    TypeUnsupported(String),
    /// The subject or the version does not exist.
    Missing,
    /// A reference, direct or indirect, does not resolve; the text names it.
    ReferenceUnresolved(String),
    /// The registry could not be asked; the diagnostic is the classified transport failure.
    Unavailable(Box<Diagnostic>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaStatus {
    Verified,
    Missing,
    FormatMismatch,
    ReferenceUnresolved,
    Unavailable,
}

/// One row of `schema_checks`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SchemaCheck {
    pub source: String,
    pub subject: String,
    /// The version that the registry resolved; the asked one when it could not.
    pub version: serde_json::Value,
    pub format: Option<String>,
    pub status: SchemaStatus,
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct SchemaReport {
    pub checks: Vec<SchemaCheck>,
    pub findings: Diagnostics,
}

/// The subjects to read, in declaration order, and E212 for selectors that name no supported registry.
pub fn schema_questions(project: &Project) -> (Vec<SchemaQuestion>, Diagnostics) {
    let mut questions = Vec::new();
    let mut findings = Diagnostics::new();
    for (source, schema) in registry_only(project) {
        match schema.registry.as_deref() {
            None | Some("confluent") => questions.push(SchemaQuestion {
                source: source.name.clone(),
                subject: subject(source, schema),
                version: schema.version,
                format: schema.format,
            }),
            Some(other) => findings.push(
                Diagnostic::new(
                    Code::E212SchemaRegistrySelectorUnsupported,
                    format!("Source '{}': registry '{other}' is not supported", source.name),
                )
                .at_opt(source.origin.at("schema.registry"))
                .path(source.origin.path("schema.registry"))
                .suggest("Write registry: confluent, or leave it out"),
            ),
        }
    }
    (questions, findings)
}

/// Turns answers into rows and findings. An answer to a source that the project does not declare is ignored.
pub fn judge_schemas(project: &Project, answers: &[(SchemaQuestion, SchemaAnswer)]) -> SchemaReport {
    let mut report = SchemaReport::default();
    for (question, answer) in answers {
        let Some(source) = project.sources.iter().find(|source| source.name == question.source) else { continue };
        let (check, finding) = judge(source, question, answer);
        report.checks.push(check);
        report.findings.extend(finding);
    }
    report
}

fn judge(source: &Source, question: &SchemaQuestion, answer: &SchemaAnswer) -> (SchemaCheck, Option<Diagnostic>) {
    let asked = match question.version {
        SchemaVersion::Latest => serde_json::Value::from("latest"),
        SchemaVersion::Number(number) => serde_json::Value::from(number),
    };
    let row = |version: serde_json::Value, format: Option<String>, status| SchemaCheck {
        source: question.source.clone(),
        subject: question.subject.clone(),
        version,
        format,
        status,
    };
    let finding = |code, field: &str, message: String| {
        Diagnostic::new(code, message).at_opt(source.origin.at(field)).path(source.origin.path(field))
    };
    let declared = question.format.map(|format| format_word(format).to_owned());
    match answer {
        SchemaAnswer::Found { version, schema_type, .. } => {
            let version = serde_json::Value::from(*version);
            let live = format_of(*schema_type);
            match question.format {
                Some(format) if format != live => (
                    row(version, Some(format_word(live).to_owned()), SchemaStatus::FormatMismatch),
                    Some(
                        finding(
                            Code::E217SchemaFormatMismatch,
                            "schema.format",
                            format!(
                                "Subject '{}' is {}, source '{}' declares {}",
                                question.subject,
                                format_word(live),
                                source.name,
                                format_word(format)
                            ),
                        )
                        .suggest(format!("Declare format: {}, or name the right subject", format_word(live))),
                    ),
                ),
                Some(_) | None => (row(version, Some(format_word(live).to_owned()), SchemaStatus::Verified), None),
            }
        }
        SchemaAnswer::TypeUnsupported(spelled) => (
            row(asked, Some(spelled.to_lowercase()), SchemaStatus::FormatMismatch),
            Some(
                finding(
                    Code::E216SchemaTypeUnsupported,
                    "schema.subject",
                    format!("Subject '{}' has type '{spelled}', which is not supported", question.subject),
                )
                .suggest("AVRO, JSON and PROTOBUF subjects are supported"),
            ),
        ),
        SchemaAnswer::Missing => {
            let field = match question.version {
                SchemaVersion::Latest => "schema.subject",
                SchemaVersion::Number(_) => "schema.version",
            };
            let what = match question.version {
                SchemaVersion::Latest => format!("Subject '{}'", question.subject),
                SchemaVersion::Number(number) => format!("Version {number} of subject '{}'", question.subject),
            };
            (
                row(asked, declared, SchemaStatus::Missing),
                Some(
                    finding(
                        Code::E215SchemaSubjectNotFound,
                        field,
                        format!("{what} does not exist in the schema registry"),
                    )
                    .suggest("Check the subject's spelling and the registry of this environment"),
                ),
            )
        }
        SchemaAnswer::ReferenceUnresolved(reference) => (
            row(asked, declared, SchemaStatus::ReferenceUnresolved),
            Some(
                finding(
                    Code::E213SchemaRegistryResolutionFailed,
                    "schema.subject",
                    format!("Subject '{}' refers to '{reference}', which does not resolve", question.subject),
                )
                .suggest("Register the referenced subject and version first"),
            ),
        ),
        SchemaAnswer::Unavailable(cause) => (
            row(asked, declared, SchemaStatus::Unavailable),
            Some(
                finding(
                    Code::E214SchemaRegistryUnavailable,
                    "schema",
                    format!("Subject '{}' could not be read: {}", question.subject, cause.message),
                )
                .suggest_opt(cause.suggestion.clone()),
            ),
        ),
    }
}

fn registry_only(project: &Project) -> impl Iterator<Item = (&Source, &SchemaBlock)> {
    project.sources.iter().filter_map(|source| {
        let schema = source.schema.as_ref()?;
        let named = schema.subject.is_some() || schema.registry.is_some();
        (named && schema.definition.is_none() && schema.fields.is_none()).then_some((source, schema))
    })
}

fn subject(source: &Source, schema: &SchemaBlock) -> String {
    schema.subject.clone().unwrap_or_else(|| format!("{}-value", source.topic))
}

fn format_word(format: SchemaFormat) -> &'static str {
    match format {
        SchemaFormat::Avro => "avro",
        SchemaFormat::Json => "json",
        SchemaFormat::Protobuf => "protobuf",
    }
}

fn format_of(schema_type: SchemaType) -> SchemaFormat {
    match schema_type {
        SchemaType::Avro => SchemaFormat::Avro,
        SchemaType::Json => SchemaFormat::Json,
        SchemaType::Protobuf => SchemaFormat::Protobuf,
    }
}
