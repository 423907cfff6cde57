//! Columns from the schema of a topic's values: the top level of an Avro record or of a JSON object, with types of Flink SQL.

use serde_json::Value;

use crate::compiler::artifact::SchemaType;

/// One column, as it will be declared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    pub name: String,
    pub data_type: String,
    pub required: bool,
}

/// What a schema gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Columns {
    Inferred(Vec<Column>),
    /// The language keeps its text and names no columns.
    Opaque,
    /// A form that has no columns; the text completes "its schema …".
    Unsupported(&'static str),
}

/// `wide` reads an integer of JSON as 64 bits.
pub fn columns(schema_type: SchemaType, schema: &Value, wide: bool) -> Columns {
    match schema_type {
        SchemaType::Avro => avro(schema),
        SchemaType::Json => json(schema, wide),
        SchemaType::Protobuf => Columns::Opaque,
    }
}

fn avro(schema: &Value) -> Columns {
    let fields = schema.get("fields").and_then(Value::as_array).filter(|_| schema["type"] == "record");
    let Some(fields) = fields else { return Columns::Unsupported("is no Avro record") };
    let column = |field: &Value| {
        let name = field.get("name")?.as_str()?.to_owned();
        Some(Column { name, data_type: avro_type(field.get("type").unwrap_or(&Value::Null)), required: false })
    };
    let columns: Option<Vec<Column>> = fields.iter().map(column).collect();
    columns.map_or(Columns::Unsupported("has a field without a name"), named)
}

fn avro_type(written: &Value) -> String {
    let text = match written {
        // The first branch that holds something.
        Value::Array(branches) => {
            return branches.iter().find(|branch| *branch != "null").map_or_else(|| "STRING".to_owned(), avro_type);
        }
        Value::Object(map) => {
            let number = |key: &str, default: u64| map.get(key).and_then(Value::as_u64).unwrap_or(default);
            match map.get("logicalType").and_then(Value::as_str) {
                Some("timestamp-millis") => return "TIMESTAMP(3)".to_owned(),
                Some("timestamp-micros") => return "TIMESTAMP(6)".to_owned(),
                Some("date") => return "DATE".to_owned(),
                Some("decimal") => return format!("DECIMAL({}, {})", number("precision", 10), number("scale", 2)),
                Some(_) | None => {}
            }
            map.get("type").and_then(Value::as_str).unwrap_or_default()
        }
        Value::String(text) => text,
        Value::Null | Value::Bool(_) | Value::Number(_) => "",
    };
    match text {
        "int" => "INT",
        "long" => "BIGINT",
        "float" => "FLOAT",
        "double" => "DOUBLE",
        "boolean" => "BOOLEAN",
        "bytes" => "BYTES",
        _ => "STRING",
    }
    .to_owned()
}

fn json(schema: &Value, wide: bool) -> Columns {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Columns::Unsupported("is no JSON object with properties");
    };
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let column = |(name, written): (&String, &Value)| Column {
        name: name.clone(),
        data_type: json_type(written, wide).to_owned(),
        required: required.contains(&name.as_str()),
    };
    named(properties.iter().map(column).collect())
}

fn json_type(written: &Value, wide: bool) -> &'static str {
    let word = match written.get("type") {
        Some(Value::Array(words)) => words.iter().find(|word| *word != "null").and_then(Value::as_str),
        Some(Value::String(word)) => Some(word.as_str()),
        Some(_) | None => None,
    };
    match (word, written.get("format").and_then(Value::as_str)) {
        (Some("string"), Some("date-time")) => "TIMESTAMP(3)",
        (Some("string"), Some("date")) => "DATE",
        (Some("integer"), _) if wide => "BIGINT",
        (Some("integer"), _) => "INT",
        (Some("number"), _) => "DOUBLE",
        (Some("boolean"), _) => "BOOLEAN",
        _ => "STRING",
    }
}

fn named(columns: Vec<Column>) -> Columns {
    match columns.iter().any(|column| column.name.trim().is_empty()) {
        true => Columns::Unsupported("has a field without a name"),
        false => Columns::Inferred(columns),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn types(schema_type: SchemaType, schema: &Value, wide: bool) -> Vec<String> {
        match columns(schema_type, schema, wide) {
            Columns::Inferred(columns) => columns
                .into_iter()
                .map(|c| format!("{} {}{}", c.name, c.data_type, if c.required { "!" } else { "" }))
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    /// ADO-040
    #[test]
    fn fields_of_avro_and_properties_of_json_become_columns() {
        let avro = json!({"type": "record", "name": "R", "fields": [
            {"name": "s", "type": "string"}, {"name": "i", "type": "int"}, {"name": "l", "type": ["null", "long"]},
            {"name": "f", "type": "float"}, {"name": "d", "type": "double"}, {"name": "b", "type": "boolean"},
            {"name": "y", "type": "bytes"}, {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "us", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "m", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}},
            {"name": "m2", "type": {"type": "bytes", "logicalType": "decimal"}},
            {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "r", "type": {"type": "record", "name": "X", "fields": []}}, {"name": "n", "type": ["null"]},
        ]});
        assert_eq!(
            types(SchemaType::Avro, &avro, false),
            [
                "s STRING",
                "i INT",
                "l BIGINT",
                "f FLOAT",
                "d DOUBLE",
                "b BOOLEAN",
                "y BYTES",
                "ms TIMESTAMP(3)",
                "us TIMESTAMP(6)",
                "day DATE",
                "m DECIMAL(12, 3)",
                "m2 DECIMAL(10, 2)",
                "uuid STRING",
                "r STRING",
                "n STRING"
            ]
        );
        let object = json!({"type": "object", "required": ["id"], "properties": {
            "id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"},
            "day": {"type": ["null", "string"], "format": "date"}, "n": {"type": "number"}, "b": {"type": "boolean"},
            "list": {"type": "array"}, "any": {}, "text": {"type": ["null", "string"]},
        }});
        assert_eq!(
            types(SchemaType::Json, &object, false),
            [
                "id INT!",
                "at TIMESTAMP(3)",
                "day DATE",
                "n DOUBLE",
                "b BOOLEAN",
                "list STRING",
                "any STRING",
                "text STRING"
            ]
        );
        assert_eq!(types(SchemaType::Json, &object, true)[0], "id BIGINT!");
    }

    /// ADO-041
    #[test]
    fn what_has_no_columns_says_so() {
        assert_eq!(columns(SchemaType::Protobuf, &json!("message M {}"), false), Columns::Opaque);
        for (schema_type, schema) in [
            (SchemaType::Avro, json!("string")),
            (SchemaType::Avro, json!({"type": "enum", "fields": []})),
            (SchemaType::Avro, json!({"type": "record", "name": "R", "fields": [{"type": "int"}]})),
            (SchemaType::Json, json!({"type": "string"})),
            (SchemaType::Json, json!(true)),
            (SchemaType::Json, json!({"properties": {" ": {}}})),
        ] {
            assert!(matches!(columns(schema_type, &schema, false), Columns::Unsupported(_)), "{schema}");
        }
    }
}
