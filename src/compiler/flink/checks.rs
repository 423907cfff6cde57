//! Jobs of continuous tests: one SELECT for each condition, from the records that come from now on into the topic of failures.

use serde_json::Value;

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::artifact::{FlinkJobArtifact, OwnerType};
use crate::compiler::classified::{Classified, Hidden, REDACTED};
use crate::compiler::columns::TableColumn;
use crate::compiler::context::Context;
use crate::compiler::topics::TEST_FAILURES;
use crate::project::model::{OwnershipMode, Reference, Test, TestType};
use crate::sql::tokenize;
use crate::sql::types::{SqlType, quoted};

use super::tables::{create, place};
use super::with::{Endpoint, Format, NoFormat, Role, format, options};
use super::{Refusal, Sources, cluster};

const FAILURE_COLUMNS: [&str; 5] = [
    "`test_name` STRING",
    "`violation_type` STRING",
    "`violation_details` STRING",
    "`record` STRING",
    "`detected_at` TIMESTAMP(3)",
];

/// One for each continuous test with a condition, in declaration order.
pub(in crate::compiler) fn compile(context: &mut Context<'_>, sources: &Sources<'_>) -> Vec<FlinkJobArtifact> {
    let tests: Vec<&Test> =
        context.project.tests.iter().filter(|test| test.test_type == TestType::Continuous).collect();
    if tests.is_empty() {
        return Vec::new();
    }
    let classified = Classified::new(context.project, context.models, sources.columns);
    let mut jobs = Vec::new();
    for test in tests {
        match job(context, sources, test, classified.of(&test.model)) {
            Ok((job, left_out)) => {
                jobs.extend(job);
                context.findings.extend(left_out);
            }
            Err(finding) => context.findings.push(*finding),
        }
    }
    jobs
}

fn job(
    context: &Context<'_>,
    sources: &Sources<'_>,
    test: &Test,
    hidden: &Hidden,
) -> Result<(Option<FlinkJobArtifact>, Diagnostics), Refusal> {
    for (index, assertion) in test.assertions.iter().enumerate() {
        let written = assertion.get("custom_sql").and_then(|custom| custom.get("where")).and_then(Value::as_str);
        if written.is_some_and(|text| !is_one_condition(text)) {
            let message = format!("test '{}': this is no single condition", test.name);
            let finding = Diagnostic::new(Code::E119CompileFailed, message)
                .suggest("Write what may stand behind WHERE: whole, without ';' and without another query behind it");
            return Err(Box::new(test.origin.mark(&format!("assertions.{index}.custom_sql.where"), finding)));
        }
    }
    let (owner, target) = match (context.names.model(&test.model), context.names.source(&test.model)) {
        (Some(_), _) => (OwnerType::Model, Reference::Model(test.model.clone())),
        (None, Some(_)) => (OwnerType::Source, Reference::Source(test.model.clone())),
        // Whoever compiles the test's topics reports it.
        (None, None) => return Ok((None, Diagnostics::new())),
    };
    let refuse = |code, why: &str| {
        let message = format!("the Flink job of test '{}' cannot be written: '{}' {why}", test.name, test.model);
        Box::new(test.origin.mark("model", Diagnostic::new(code, message)))
    };
    let Some(place) = place(context, sources.schemas, &target) else {
        return Err(refuse(Code::E119CompileFailed, "has no topic to read"));
    };
    let refused = |why: NoFormat| match why {
        NoFormat::Protobuf | NoFormat::AvroWithoutRegistry => refuse(Code::E119CompileFailed, why.why()),
        NoFormat::IamNeedsPlainConnector => refuse(Code::E501ParseError, why.why()),
    };
    let runtime = &context.project.runtime;
    let alias = test.flink_cluster.as_deref().or(context.project.defaults.test_flink_cluster.as_deref());
    let cluster = cluster(context, alias);
    let endpoint = Endpoint {
        kafka: runtime.kafka.as_ref(),
        servers: place.servers,
        registry: runtime.schema_registry.as_ref(),
        cluster,
    };
    let format = format(place.block, endpoint.registry, place.definition, None).map_err(refused)?;
    let typed = matches!(format, Format::AvroConfluent { .. });
    let columns = columns(sources, &test.model, typed);
    let (conditions, left_out) = conditions(test, &columns);
    if conditions.is_empty() {
        return Ok((None, left_out));
    }
    let source = format!("test_source_{}", test.name);
    let failures = format!("test_failures_{}", test.name);
    let lines: Vec<String> = columns.iter().map(|(name, data_type)| format!("{} {data_type}", quoted(name))).collect();
    let read = options(&endpoint, place.topic, Role::Watched, false, &format).map_err(refused)?;
    let json = Format::Json { iso_timestamps: false };
    let direct = Endpoint { servers: None, ..endpoint };
    let written = options(&direct, TEST_FAILURES, Role::Sink, false, &json).map_err(refused)?;
    let failure_lines: Vec<String> = FAILURE_COLUMNS.iter().map(|line| (*line).to_owned()).collect();
    let selects: Vec<String> = conditions
        .iter()
        .map(|condition| condition.select(&test.name, &source, hidden.contains(&condition.column)))
        .collect();
    let sql = [
        create(&source, &lines, &read),
        create(&failures, &failure_lines, &written),
        format!("INSERT INTO {}\n{};", quoted(&failures), selects.join("\nUNION ALL\n")),
    ];
    let job = FlinkJobArtifact {
        name: format!("test_{}", test.name),
        sql: sql.join("\n\n"),
        cluster: test.flink_cluster.clone(),
        parallelism: None,
        checkpoint_interval_ms: None,
        state_backend: None,
        state_ttl_ms: None,
        ownership: context.ownership(owner, &test.model, OwnershipMode::Managed),
    };
    Ok((Some(job), left_out))
}

/// Whether a text can stand behind WHERE and end there: nothing that it says may belong to another query or statement.
fn is_one_condition(text: &str) -> bool {
    let Ok(tokens) = tokenize(text) else { return false };
    let mut open = 0i32;
    for token in tokens.iter().filter(|token| !token.is_trivia()) {
        let ends = token.is_symbol(text, ";")
            || open == 0 && ["UNION", "INTERSECT", "EXCEPT", "MINUS"].iter().any(|word| token.is_word(text, word));
        open += i32::from(token.is_symbol(text, "(")) - i32::from(token.is_symbol(text, ")"));
        if ends || open < 0 {
            return false;
        }
    }
    open == 0
}

/// Columns of the record; all are texts where the format lets them be read so.
fn columns(sources: &Sources<'_>, target: &str, typed: bool) -> Vec<(String, SqlType)> {
    let table = sources.columns.table(target);
    let Some(columns) = table.and_then(|table| table.columns.as_ref()) else {
        return vec![("_raw".to_owned(), SqlType::String)];
    };
    let nested = |data_type: &SqlType| {
        matches!(data_type, SqlType::Row(_) | SqlType::Array(_) | SqlType::Map(..) | SqlType::Multiset(_))
    };
    let own = |column: &&TableColumn| !typed || (!column.computed && !nested(&column.data_type));
    let of = |column: &TableColumn| if typed { column.data_type.clone() } else { SqlType::String };
    columns.iter().filter(own).map(|column| (column.name.to_string(), of(column))).collect()
}

struct Condition {
    violation: String,
    column: String,
    text: String,
}

impl Condition {
    /// `hidden`: the topic of failures gets no value, only that there was one.
    fn select(&self, test: &str, source: &str, hidden: bool) -> String {
        let column = quoted(&self.column);
        let details = match hidden {
            true => format!("CASE WHEN {column} IS NULL THEN CAST(NULL AS STRING) ELSE {} END", literal(REDACTED)),
            false => format!("CAST({column} AS STRING)"),
        };
        format!(
            "SELECT\n    {} AS test_name,\n    {} AS violation_type,\n    {details} AS violation_details,\n    \
             '' AS record,\n    CAST(CURRENT_TIMESTAMP AS TIMESTAMP(3)) AS detected_at\nFROM {}\nWHERE {}",
            literal(test),
            literal(&self.violation),
            quoted(source),
            self.text
        )
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// In the order of the assertions; only columns that the table has count. W228 for the others.
fn conditions(test: &Test, columns: &[(String, SqlType)]) -> (Vec<Condition>, Diagnostics) {
    let known = |name: &str| columns.iter().any(|(column, _)| column == name);
    let mut conditions = Vec::new();
    let mut left_out = Diagnostics::new();
    for (index, assertion) in test.assertions.iter().enumerate() {
        let mut add = |violation: String, column: &str, text: String| {
            if known(column) {
                conditions.push(Condition { violation, column: column.to_owned(), text });
                return;
            }
            let message =
                format!("Test '{}': {violation} is not executed: its job does not read column '{column}'", test.name);
            let finding = Diagnostic::new(Code::W228AssertionNotExecuted, message);
            left_out.push(test.origin.mark(&format!("assertions.{index}"), finding));
        };
        let Some((kind, body)) = assertion.as_object().and_then(|map| map.iter().next()) else { continue };
        let column = body.get("column").and_then(Value::as_str).unwrap_or_default();
        let name = quoted(column);
        match kind.as_str() {
            "not_null" => {
                for column in body.get("columns").and_then(Value::as_array).into_iter().flatten() {
                    let column = column.as_str().unwrap_or_default();
                    add(format!("not_null:{column}"), column, format!("{} IS NULL", quoted(column)));
                }
            }
            "accepted_values" => {
                let values = body.get("values").and_then(Value::as_array).into_iter().flatten();
                let values: Vec<String> = values.map(|value| literal(&word(value))).collect();
                let text = format!("{name} NOT IN ({})", values.join(", "));
                add(format!("accepted_values:{column}"), column, text);
            }
            "range" => {
                for (bound, operator) in [("min", '<'), ("max", '>')] {
                    if let Some(limit) = body.get(bound) {
                        let text = format!("TRY_CAST({name} AS DOUBLE) {operator} {}", word(limit));
                        add(format!("range_{bound}:{column}"), column, text);
                    }
                }
            }
            "accepted_types" => {
                for (column, wanted) in body.get("types").and_then(Value::as_object).into_iter().flatten() {
                    let Some(target) = type_of(wanted.as_str().unwrap_or_default()) else { continue };
                    let name = quoted(column);
                    let text = format!("TRY_CAST({name} AS {target}) IS NULL AND {name} IS NOT NULL");
                    add(format!("accepted_types:{column}"), column, text);
                }
            }
            "custom_sql" => {
                let called = body.get("name").and_then(Value::as_str).unwrap_or("custom");
                let first = columns.first().map_or("", |(name, _)| name.as_str());
                let column = body.get("detail_column").and_then(Value::as_str).unwrap_or(first);
                let condition = body.get("where").and_then(Value::as_str).unwrap_or("FALSE");
                add(format!("custom_sql:{called}"), column, condition.to_owned());
            }
            _ => {}
        }
    }
    (conditions, left_out)
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn type_of(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "string" | "str" | "text" => "STRING",
        "number" | "numeric" | "double" | "float" => "DOUBLE",
        "int" | "integer" => "INT",
        "bigint" | "long" => "BIGINT",
        "boolean" | "bool" => "BOOLEAN",
        "timestamp" | "datetime" => "TIMESTAMP(3)",
        "date" => "DATE",
        "time" => "TIME",
        _ => return None,
    })
}
