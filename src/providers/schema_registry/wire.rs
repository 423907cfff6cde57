//! What goes over the wire: request bodies, and strict readings of answers.

use serde_json::{Map, Value, json};

use super::{NumberedSchema, RegisteredSchema};
use crate::compiler::artifact::{SchemaArtifact, SchemaType};
use crate::compiler::canonical;
use crate::compiler::strict_json;
use crate::project::model::{Compatibility, SchemaReference};
use crate::providers::{Identity, ProviderFailure, VendorText};

/// The numbers with which a registry says that a subject, a version, a schema or a level does not exist. A 404 without one of
/// them comes from something else than a registry and proves nothing.
const ABSENT: std::ops::RangeInclusive<i64> = 40400..=40499;

const LEVELS: [(&str, Compatibility); 7] = [
    ("NONE", Compatibility::None),
    ("BACKWARD", Compatibility::Backward),
    ("BACKWARD_TRANSITIVE", Compatibility::BackwardTransitive),
    ("FORWARD", Compatibility::Forward),
    ("FORWARD_TRANSITIVE", Compatibility::ForwardTransitive),
    ("FULL", Compatibility::Full),
    ("FULL_TRANSITIVE", Compatibility::FullTransitive),
];

const TYPES: [SchemaType; 3] = [SchemaType::Avro, SchemaType::Json, SchemaType::Protobuf];

/// A registry's error body.
pub struct ErrorBody {
    pub error_code: Option<i64>,
    pub message: Option<String>,
}

impl ErrorBody {
    pub fn read(body: Result<Value, ProviderFailure>) -> Self {
        let body = body.unwrap_or_default();
        Self {
            error_code: body.get("error_code").and_then(Value::as_i64),
            message: body.get("message").and_then(Value::as_str).map(str::to_owned),
        }
    }

    pub fn says_absent(&self) -> bool {
        self.error_code.is_some_and(|code| ABSENT.contains(&code))
    }
}

/// `{schema, schemaType, references?}` of an artifact.
pub fn content(artifact: &SchemaArtifact) -> Result<Vec<u8>, ProviderFailure> {
    let unsendable = || ProviderFailure::Unsupported { what: "a schema without a canonical form" };
    let text = match (artifact.schema_type, &artifact.schema) {
        (SchemaType::Protobuf, Value::String(text)) => text.clone(),
        (SchemaType::Protobuf, _) => return Err(unsendable()),
        (SchemaType::Avro | SchemaType::Json, schema) => {
            let bytes = canonical::to_canonical(schema).map_err(|_| unsendable())?;
            String::from_utf8(bytes).map_err(|_| unsendable())?
        }
    };
    let mut body = Map::new();
    body.insert("schema".to_owned(), Value::String(text));
    body.insert("schemaType".to_owned(), json!(artifact.schema_type.as_str()));
    if !artifact.references.is_empty() {
        let references = sorted(artifact.references.clone());
        let references = references.iter().map(|r| json!({"name": r.name, "subject": r.subject, "version": r.version}));
        body.insert("references".to_owned(), references.collect());
    }
    serde_json::to_vec(&body).map_err(|_| unsendable())
}

pub fn level_body(level: Compatibility) -> Vec<u8> {
    json!({ "compatibility": level_name(level) }).to_string().into_bytes()
}

pub fn level_name(level: Compatibility) -> &'static str {
    LEVELS.iter().find(|(_, other)| *other == level).map_or("NONE", |(name, _)| name)
}

/// The level under `key`.
pub fn level(body: &Value, key: &str) -> Result<Compatibility, ProviderFailure> {
    let name = body.get(key).and_then(Value::as_str);
    name.and_then(|name| LEVELS.iter().find(|(other, _)| *other == name))
        .map(|(_, level)| *level)
        .ok_or(ProviderFailure::Protocol { what: "compatibility level" })
}

/// Id and version of the content that was looked up: the type and the text need not be repeated in such an answer.
pub fn place(subject: &str, body: &Value) -> Result<(u32, u32), ProviderFailure> {
    let unreadable = |what| ProviderFailure::Unreadable { identity: Identity::Subject(subject.to_owned()), what };
    if body.get("subject").and_then(Value::as_str) != Some(subject) {
        return Err(unreadable("the answer is about another subject"));
    }
    let id = positive(body, "id").ok_or_else(|| unreadable("id"))?;
    Ok((id, positive(body, "version").ok_or_else(|| unreadable("version"))?))
}

/// A version of `subject`.
pub fn version(subject: &str, body: &Value) -> Result<RegisteredSchema, ProviderFailure> {
    let (id, version) = place(subject, body)?;
    let NumberedSchema { schema, schema_type, references } = content_of(subject, body)?;
    Ok(RegisteredSchema { subject: subject.to_owned(), id, version, schema, schema_type, references })
}

/// What a number stands for.
pub fn numbered(body: &Value) -> Result<NumberedSchema, ProviderFailure> {
    content_of("", body)
}

fn content_of(subject: &str, body: &Value) -> Result<NumberedSchema, ProviderFailure> {
    let unreadable = |what| ProviderFailure::Unreadable { identity: Identity::Subject(subject.to_owned()), what };
    let text = body.get("schema").and_then(Value::as_str).ok_or_else(|| unreadable("schema"))?;
    let schema_type = match body.get("schemaType") {
        None | Some(Value::Null) => SchemaType::Avro,
        Some(name) => {
            let name = name.as_str().ok_or_else(|| unreadable("schema type"))?;
            match TYPES.iter().find(|schema_type| name == schema_type.as_str()) {
                Some(schema_type) => *schema_type,
                None => return Err(unsupported(subject, name)),
            }
        }
    };
    let schema = match schema_type {
        SchemaType::Protobuf => Value::String(text.to_owned()),
        SchemaType::Avro | SchemaType::Json => {
            strict_json::value(text.as_bytes(), text.len()).map_err(|_| unreadable("the schema is no strict JSON"))?
        }
    };
    let references = match body.get("references") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => {
            list.iter().map(reference).collect::<Option<_>>().ok_or_else(|| unreadable("references"))?
        }
        Some(_) => return Err(unreadable("references")),
    };
    Ok(NumberedSchema { schema, schema_type, references: sorted(references) })
}

fn unsupported(subject: &str, name: &str) -> ProviderFailure {
    let identity = Identity::Subject(subject.to_owned());
    match VendorText::at_border(name, &[]) {
        Some(spelled) => ProviderFailure::SchemaTypeUnsupported { identity, spelled },
        None => ProviderFailure::Unreadable { identity, what: "schema type" },
    }
}

fn reference(value: &Value) -> Option<SchemaReference> {
    let text = |key: &str| value.get(key)?.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
    Some(SchemaReference { name: text("name")?, subject: text("subject")?, version: positive(value, "version")? })
}

pub fn sorted(mut references: Vec<SchemaReference>) -> Vec<SchemaReference> {
    references.sort_by(|a, b| (&a.name, &a.subject, a.version).cmp(&(&b.name, &b.subject, b.version)));
    references
}

/// A number that a registry gives to something that exists.
pub fn positive(body: &Value, key: &str) -> Option<u32> {
    body.get(key).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body() -> Value {
        json!({"subject": "s", "id": 3, "version": 2, "schema": "{\"type\":\"string\"}"})
    }

    fn with(key: &str, value: Value) -> Value {
        let mut body = body();
        body[key] = value;
        body
    }

    #[test]
    fn a_version_without_a_type_is_avro() {
        let read = version("s", &body()).expect("a version");
        assert_eq!((read.id, read.version, read.schema_type), (3, 2, SchemaType::Avro));
        assert_eq!(read.schema, json!({"type": "string"}));
        assert!(read.references.is_empty());
    }

    #[test]
    fn protobuf_is_kept_as_text_and_references_are_sorted() {
        let mut body = with("schemaType", json!("PROTOBUF"));
        body["schema"] = json!("syntax = \"proto3\";");
        body["references"] = json!([
            {"name": "b.proto", "subject": "b", "version": 1}, {"name": "a.proto", "subject": "a", "version": 2}
        ]);
        let read = version("s", &body).expect("a version");
        assert_eq!(read.schema, json!("syntax = \"proto3\";"));
        assert_eq!(read.references.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["a.proto", "b.proto"]);
    }

    #[test]
    fn whatever_is_not_exactly_a_version_is_no_observation() {
        for body in [
            with("subject", json!("other")),
            with("id", json!("3")),
            with("id", json!(0)),
            with("version", json!(0)),
            with("version", json!(-1)),
            with("version", json!(1.5)),
            with("schema", json!({"type": "string"})),
            with("schema", json!("{\"a\":1,\"a\":2}")),
            with("schema", json!("{nonsense")),
            with("schema", json!("{\"n\":9007199254740993}")),
            with("schemaType", json!(1)),
            with("references", json!({})),
            with("references", json!([{"name": " ", "subject": "b", "version": 1}])),
            with("references", json!([{"name": "b", "subject": "b", "version": 0}])),
            json!([]),
        ] {
            assert!(matches!(version("s", &body), Err(ProviderFailure::Unreadable { .. })), "{body}");
        }
    }

    #[test]
    fn a_type_that_is_not_known_is_told_by_its_name() {
        let failure = version("s", &with("schemaType", json!("XML\u{1b}"))).unwrap_err();
        assert_eq!(
            failure.diagnostic("Schema Registry: reading a subject").message,
            "Schema Registry: reading a subject failed: schema:s has type 'XML\\u{1b}', which is not supported"
        );
    }

    #[test]
    fn only_a_registrys_own_number_means_absent() {
        let error = |body: Value| ErrorBody::read(Ok(body)).says_absent();
        for code in [40401, 40402, 40403, 40408] {
            assert!(error(json!({"error_code": code, "message": "no"})));
        }
        assert!(!error(json!({"error_code": 404})));
        assert!(!error(json!({"error": "Not Found"})));
        assert!(!ErrorBody::read(Err(ProviderFailure::Protocol { what: "JSON body" })).says_absent());
    }

    #[test]
    fn every_level_has_its_name() {
        for (name, value) in LEVELS {
            assert_eq!(level(&json!({ "compatibilityLevel": name }), "compatibilityLevel"), Ok(value));
            assert_eq!(level_name(value), name);
        }
        assert!(level(&json!({"compatibilityLevel": "SIDEWAYS"}), "compatibilityLevel").is_err());
        assert!(level(&json!({}), "compatibilityLevel").is_err());
    }
}
