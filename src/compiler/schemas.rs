//! Schema artifacts: the definition as written, or an Avro record generated from columns.

use serde_json::{Value, json};

use crate::codes::{Code, Diagnostic};
use crate::project::model::{Column, Materialized, OwnershipMode, SchemaBlock, SchemaFormat};
use crate::project::origin::Origin;
use crate::sql::types::{SqlType, parse_type};

use super::artifact::{OwnerType, SchemaArtifact, SchemaType};
use super::canonical::MAX_INTEGER;
use super::context::Context;
use super::strict_json::{self, StrictError};

/// The schema of what a model of this project writes, of which nothing is told. One of a source is read from the registry.
fn unwritten(owner: &Owner<'_>) -> Option<Diagnostic> {
    match (owner.owner_type, owner.mode) {
        (OwnerType::Source, _) | (OwnerType::Model, OwnershipMode::External) => return None,
        (OwnerType::Model, OwnershipMode::Managed | OwnershipMode::Adopted) => {}
    }
    let lacks = match owner.columns.is_empty() {
        true => "has neither a definition nor columns to make one from",
        false => "has no definition, and only Avro is made from columns",
    };
    let message =
        format!("the schema of model '{}' {lacks}: no subject is registered, and no compatibility is set", owner.name);
    let finding = Diagnostic::new(Code::W236SchemaNotRegistered, message)
        .suggest("declare the columns of the model, or write schema.definition");
    Some(owner.origin.mark("schema", finding))
}

/// Bytes of one definition; a registry takes less.
const DEFINITION_LIMIT: usize = 4 << 20;

/// Sources, then models, in declaration order. An external one is observed only.
pub(super) fn compile(context: &mut Context<'_>) -> Vec<SchemaArtifact> {
    let project = context.project;
    let mut artifacts = Vec::new();
    for source in &project.sources {
        if let Some(block) = &source.schema {
            let owner = Owner {
                owner_type: OwnerType::Source,
                name: &source.name,
                topic: &source.topic,
                mode: source.ownership.mode,
                columns: source.columns.iter().collect(),
                origin: &source.origin,
            };
            artifacts.extend(artifact(context, block, &owner));
        }
    }
    for model in &project.models {
        let Some(block) = &model.schema else { continue };
        let kafka_output = context.resolved(&model.name).is_none_or(|resolved| match resolved.materialized {
            Materialized::Topic | Materialized::Flink => true,
            Materialized::VirtualTopic | Materialized::Sink => false,
        });
        if !kafka_output {
            let message = format!("model '{}' has a schema but its output is no Kafka topic of its own", model.name);
            context.findings.push(model.origin.mark("schema", Diagnostic::new(Code::E501ParseError, message)));
            continue;
        }
        let contract: Vec<Column> =
            model.contract.iter().flat_map(|contract| &contract.columns).map(contract_column).collect();
        let columns = if contract.is_empty() { model.columns.iter().collect() } else { contract.iter().collect() };
        let owner = Owner {
            owner_type: OwnerType::Model,
            name: &model.name,
            topic: model.topic_name(),
            mode: model.ownership.mode,
            columns,
            origin: &model.origin,
        };
        artifacts.extend(artifact(context, block, &owner));
    }
    artifacts
}

struct Owner<'a> {
    owner_type: OwnerType,
    name: &'a str,
    topic: &'a str,
    mode: OwnershipMode,
    columns: Vec<&'a Column>,
    origin: &'a Origin,
}

fn contract_column(column: &crate::project::model::ContractColumn) -> Column {
    Column {
        name: column.name.clone(),
        data_type: column.data_type.clone(),
        classification: None,
        description: column.description.clone(),
        required: column.nullable == Some(false),
        proctime: false,
        metadata: None,
        expression: None,
    }
}

fn artifact(context: &mut Context<'_>, block: &SchemaBlock, owner: &Owner<'_>) -> Option<SchemaArtifact> {
    let format = block.format.unwrap_or(SchemaFormat::Avro);
    let body = match &block.definition {
        Some(text) => definition(text, format).map(Some),
        None if format == SchemaFormat::Avro => avro_record(owner.name, &owner.columns),
        None => Ok(None),
    };
    let schema = match body {
        Ok(Some(schema)) => schema,
        Ok(None) => {
            context.findings.extend(unwritten(owner));
            return None;
        }
        Err(refusal) => {
            let message = format!("the schema of {} '{}' {}", owner.owner_type.as_str(), owner.name, refusal.why);
            let finding = Diagnostic::new(refusal.code, message);
            context.findings.push(owner.origin.mark(refusal.field, finding));
            return None;
        }
    };
    let mut references = block.references.clone();
    references.sort();
    Some(SchemaArtifact {
        subject: block.subject.clone().unwrap_or_else(|| format!("{}-value", owner.topic)),
        schema,
        schema_type: match format {
            SchemaFormat::Avro => SchemaType::Avro,
            SchemaFormat::Json => SchemaType::Json,
            SchemaFormat::Protobuf => SchemaType::Protobuf,
        },
        compatibility: block.compatibility,
        references,
        ownership: context.ownership(owner.owner_type, owner.name, owner.mode),
    })
}

struct Refusal {
    code: Code,
    field: &'static str,
    why: String,
}

fn definition(text: &str, format: SchemaFormat) -> Result<Value, Refusal> {
    let refuse = |why: String| Refusal { code: Code::E501ParseError, field: "schema.definition", why };
    match format {
        SchemaFormat::Protobuf => return Ok(Value::String(text.to_owned())),
        SchemaFormat::Avro | SchemaFormat::Json => {}
    }
    let refused = match strict_json::value(text.as_bytes(), DEFINITION_LIMIT) {
        Ok(value) => return Ok(value),
        Err(refused) => refused,
    };
    if refused == StrictError::TooLarge {
        return Err(refuse("is larger than 4 MiB".to_owned()));
    }
    Err(refuse(match serde_json::from_str::<Value>(text) {
        Err(error) => format!("is not JSON (line {}, column {} of the definition)", error.line(), error.column()),
        Ok(value) if exact(&value) => "repeats a key or is nested deeper than 64 levels".to_owned(),
        Ok(_) => "holds a number outside ±(2^53−1); write it as a string".to_owned(),
    }))
}

fn exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| number.abs() <= MAX_INTEGER as f64),
        Value::Array(items) => items.iter().all(exact),
        Value::Object(map) => map.values().all(exact),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// A nullable field for each column that is data. None when there is none.
fn avro_record(owner: &str, columns: &[&Column]) -> Result<Option<Value>, Refusal> {
    let data =
        columns.iter().filter(|column| !column.proctime && column.metadata.is_none() && column.expression.is_none());
    let mut fields = Vec::new();
    for column in data {
        if !is_avro_name(&column.name) {
            let why = format!(
                "cannot be generated: '{}' is no Avro field name (letters, digits and `_`); write a definition",
                column.name
            );
            return Err(Refusal { code: Code::E119CompileFailed, field: "columns", why });
        }
        fields.push(json!({
            "name": column.name,
            "type": ["null", avro_type(column.data_type.as_deref())],
            "default": null,
            "doc": column.description.as_deref().unwrap_or_default(),
        }));
    }
    if fields.is_empty() {
        return Ok(None);
    }
    Ok(Some(json!({"type": "record", "name": avro_name(owner), "namespace": "com.streamt", "fields": fields})))
}

/// Avro names begin with a letter or `_`; ours may begin with a digit.
fn avro_name(owner: &str) -> String {
    let name = owner.replace(['-', '.'], "_");
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

fn is_avro_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| word(c) && !c.is_ascii_digit()) && name.chars().all(word)
}

fn avro_type(text: Option<&str>) -> Value {
    let Some(text) = text else { return json!("string") };
    let Ok(data_type) = parse_type(text) else { return json!("string") };
    match data_type {
        SqlType::Boolean => json!("boolean"),
        SqlType::TinyInt | SqlType::SmallInt | SqlType::Int => json!("int"),
        SqlType::BigInt => json!("long"),
        SqlType::Float => json!("float"),
        SqlType::Double => json!("double"),
        SqlType::Bytes | SqlType::Binary(_) | SqlType::Varbinary(_) => json!("bytes"),
        SqlType::Decimal { precision, scale } => {
            let (precision, scale) = if text.contains('(') { (precision, scale) } else { (38, 18) };
            json!({"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale})
        }
        SqlType::Timestamp(_) | SqlType::TimestampLtz(_) => json!({"type": "long", "logicalType": "timestamp-millis"}),
        SqlType::Date => json!({"type": "int", "logicalType": "date"}),
        SqlType::Time(_) => json!({"type": "int", "logicalType": "time-millis"}),
        SqlType::String
        | SqlType::Char(_)
        | SqlType::Varchar(_)
        | SqlType::Array(_)
        | SqlType::Map(..)
        | SqlType::Multiset(_)
        | SqlType::Row(_)
        | SqlType::Variant
        | SqlType::Unknown => json!("string"),
    }
}
