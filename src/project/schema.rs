//! The table of the language, printed: as JSON Schema for editors, as the answer to "what does this field take", as reference pages.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::codes::{Code, Diagnostic, suggest};

use super::fields::{ENVIRONMENT_FILE, EXPOSURES_FILE, MODELS_FILE, ROOT, SOURCES_FILE, TESTS_FILE};
use super::shape::{Field, Fold, Need, Record, Scalars, Shape, Tagged, Text};

const TITLE: &str = "streamt project configuration";
/// A string that a variable fills in may be of any type.
const PLACEHOLDER: &str = "\\$\\{[A-Za-z_]";

/// JSON Schema 2020-12 of `stream_project.yml`. The files of the directories are the definitions `sources_file`, `models_file`,
/// `tests_file`, `exposures_file` and `environment_file`.
pub fn json_schema() -> Value {
    let mut printer = Printer { definitions: Map::new() };
    let mut root = printer.record(&ROOT, None, false);
    for file in [&SOURCES_FILE, &MODELS_FILE, &TESTS_FILE, &EXPOSURES_FILE, &ENVIRONMENT_FILE] {
        printer.reference(file, false);
    }
    let mut definitions: Vec<(String, Value)> = printer.definitions.into_iter().collect();
    definitions.sort_by(|a, b| a.0.cmp(&b.0));
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".into(), json!(TITLE));
    if let Some(body) = root.as_object_mut() {
        body.insert("patternProperties".into(), json!({"^x-": true}));
        schema.append(body);
    }
    schema.insert("$defs".into(), Value::Object(definitions.into_iter().collect()));
    Value::Object(schema)
}

struct Printer {
    definitions: Map<String, Value>,
}

impl Printer {
    fn reference(&mut self, record: &'static Record, placeholders: bool) -> Value {
        if !self.definitions.contains_key(record.name) {
            self.definitions.insert(record.name.into(), Value::Null);
            let body = self.record(record, None, placeholders);
            self.definitions.insert(record.name.into(), body);
        }
        json!({"$ref": format!("#/$defs/{}", record.name)})
    }

    fn record(&mut self, record: &'static Record, tag: Option<(&str, &str, bool)>, placeholders: bool) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        if let Some((name, value, needed)) = tag {
            properties.insert(name.into(), json!({"const": value}));
            if needed {
                required.push(name);
            }
        }
        for field in record.fields {
            properties.insert(field.name.into(), self.field(field, placeholders));
            if field.need == Need::Required {
                required.push(field.name);
            }
        }
        let mut schema = json!({"type": "object", "description": record.doc, "properties": properties, "additionalProperties": false});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    fn field(&mut self, field: &'static Field, placeholders: bool) -> Value {
        let placeholders = placeholders || field.name == "runtime";
        let mut schema = self.shape(field.shape, placeholders);
        if field.nullable && !matches!(field.shape, Shape::Any) {
            schema = json!({"anyOf": [schema, {"type": "null"}]});
        }
        let Value::Object(schema_map) = &mut schema else { return json!({"description": field.doc}) };
        schema_map.insert("description".into(), json!(field.doc));
        if let Need::Default(text) = field.need
            && let Ok(default) = serde_json::from_str::<Value>(text)
            && !default.is_null()
        {
            schema_map.insert("default".into(), default);
        }
        if field.secret {
            schema_map.insert("writeOnly".into(), json!(true));
        }
        if field.moved.is_some() {
            schema_map.insert("deprecated".into(), json!(true));
        }
        schema
    }

    fn shape(&mut self, shape: Shape, placeholders: bool) -> Value {
        let own = match shape {
            Shape::Any => return json!({}),
            Shape::AnyMap => return json!({"type": "object"}),
            Shape::Text(rule) if rule.pattern.is_none() && rule.max.is_none() => return json!({"type": "string"}),
            Shape::Text(rule) => text(rule),
            Shape::Int { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
            Shape::Number { min, max } => {
                let mut schema = json!({"type": "number"});
                if min.is_finite() {
                    schema["minimum"] = json!(min);
                }
                if max.is_finite() {
                    schema["maximum"] = json!(max);
                }
                schema
            }
            Shape::Bool => json!({"type": "boolean"}),
            Shape::True => json!({"const": true}),
            Shape::Choice(values, Fold::Exact) => json!({"enum": values}),
            Shape::Choice(values, Fold::Lower | Fold::Upper) => {
                json!({"anyOf": [{"enum": values}, {"type": "string", "pattern": folded(values)}]})
            }
            Shape::PositiveOr(word) => {
                json!({"anyOf": [{"type": "integer", "minimum": 1, "maximum": i32::MAX}, {"const": word}]})
            }
            Shape::Scalar(Scalars::WithoutFloats) => json!({"type": ["string", "integer", "boolean"]}),
            Shape::Scalar(Scalars::WithFloats) => json!({"type": ["string", "number", "boolean"]}),
            Shape::List(item, max) => {
                let mut schema = json!({"type": "array", "items": self.shape(*item, placeholders)});
                if max < usize::MAX {
                    schema["maxItems"] = json!(max);
                }
                return schema;
            }
            Shape::Record(record) => return self.reference(record, placeholders),
            Shape::Tagged(tagged) => return self.tagged(tagged, placeholders),
            Shape::OneKey(fields) => {
                let properties: Map<String, Value> =
                    fields.iter().map(|field| (field.name.into(), self.field(field, placeholders))).collect();
                return json!({
                    "type": "object", "properties": properties, "additionalProperties": false,
                    "minProperties": 1, "maxProperties": 1,
                });
            }
            Shape::Map { key, value } => {
                let mut schema = json!({"type": "object", "additionalProperties": self.shape(*value, placeholders)});
                if key.pattern.is_some() {
                    schema["propertyNames"] = text(key);
                }
                return schema;
            }
            Shape::Either(simple, composed) => {
                return json!({"anyOf": [self.shape(*simple, placeholders), self.shape(*composed, placeholders)]});
            }
        };
        if placeholders { json!({"anyOf": [own, {"type": "string", "pattern": PLACEHOLDER}]}) } else { own }
    }

    fn tagged(&mut self, tagged: &'static Tagged, placeholders: bool) -> Value {
        let mut variants = Vec::new();
        for (value, record) in tagged.variants {
            if !self.definitions.contains_key(record.name) {
                self.definitions.insert(record.name.into(), Value::Null);
                let needed = tagged.default != Some(value);
                let body = self.record(record, Some((tagged.tag, value, needed)), placeholders);
                self.definitions.insert(record.name.into(), body);
            }
            variants.push(json!({"$ref": format!("#/$defs/{}", record.name)}));
        }
        json!({"description": tagged.doc, "oneOf": variants})
    }
}

fn text(rule: Text) -> Value {
    let mut schema = json!({"type": "string"});
    if let Some(pattern) = rule.pattern {
        schema["pattern"] = json!(pattern);
    }
    if rule.min > 0 {
        schema["minLength"] = json!(rule.min);
    }
    if let Some(max) = rule.max {
        schema["maxLength"] = json!(max);
    }
    schema
}

/// The values in any case.
fn folded(values: &[&str]) -> String {
    let one = |value: &&str| -> String {
        let letter = |c: char| {
            if c.is_ascii_alphabetic() {
                format!("[{}{}]", c.to_ascii_uppercase(), c.to_ascii_lowercase())
            } else {
                c.to_string()
            }
        };
        value.chars().map(letter).collect()
    };
    format!("^({})$", values.iter().map(one).collect::<Vec<_>>().join("|"))
}

/// What a field takes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FieldDescription {
    pub path: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub required: bool,
    pub default: Option<Value>,
    #[serde(rename = "enum")]
    pub values: Vec<&'static str>,
    pub minimum: Option<i64>,
    pub maximum: Option<i64>,
    pub description: &'static str,
    /// The fields inside, for a block.
    pub fields: Vec<&'static str>,
    /// The code of a wrong value.
    pub code: Code,
}

/// Describes the field at a dotted path of the project file or of an environment file, for example `models.topic.partitions`.
/// List indexes may be left out; the keys of free maps are any word. An unknown path is E902 with a hint.
pub fn describe(path: &str) -> Result<FieldDescription, Diagnostic> {
    let project = walk(&ROOT, path);
    match (project, walk(&ENVIRONMENT_FILE, path)) {
        (Ok(found), _) | (Err(_), Ok(found)) => Ok(found),
        (Err(error), Err(_)) => Err(error),
    }
}

fn walk(root: &'static Record, path: &str) -> Result<FieldDescription, Diagnostic> {
    let mut shape = Shape::Record(root);
    let mut field: Option<&'static Field> = None;
    let mut segments = path
        .split('.')
        .map(|segment| segment.trim_end_matches("[]"))
        .filter(|segment| !segment.is_empty() && segment.parse::<usize>().is_err())
        .peekable();
    if segments.peek().is_none() {
        return Err(unknown(path, &names(&fields(shape))));
    }
    for segment in segments {
        let shape_here = inner(shape);
        match shape_here {
            Shape::Map { value, .. } => {
                shape = *value;
                continue;
            }
            Shape::Any | Shape::AnyMap => continue,
            _ => {}
        }
        let known = fields(shape_here);
        let found = known
            .iter()
            .copied()
            .find(|field| field.name == segment)
            .ok_or_else(|| unknown(segment, &names(&known)))?;
        shape = found.shape;
        field = Some(found);
    }
    let Some(field) = field else { return Err(unknown(path, &[])) };
    let (minimum, maximum) = match shape {
        Shape::Int { min, max } => (Some(min), Some(max)),
        Shape::PositiveOr(_) => (Some(1), Some(i64::from(i32::MAX))),
        _ => (None, None),
    };
    Ok(FieldDescription {
        path: path.to_owned(),
        kind: kind(shape),
        required: field.need == Need::Required,
        default: match field.need {
            Need::Default(text) => serde_json::from_str(text).ok().filter(|default: &Value| !default.is_null()),
            Need::Required | Need::Optional => None,
        },
        values: values(shape),
        minimum,
        maximum,
        description: field.doc,
        fields: names(&fields(inner(shape))),
        code: Code::E501ParseError,
    })
}

fn unknown(segment: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::new(Code::E902Usage, format!("'{}' is no field of the language", super::parse::printable(segment)))
        .suggest_opt(suggest::hint(segment, "field", known.iter().copied()))
}

fn names(fields: &[&'static Field]) -> Vec<&'static str> {
    fields.iter().map(|field| field.name).collect()
}

/// What a list or a choice of forms holds.
fn inner(shape: Shape) -> Shape {
    match shape {
        Shape::List(item, _) => inner(*item),
        Shape::Either(_, composed) => inner(*composed),
        other => other,
    }
}

fn fields(shape: Shape) -> Vec<&'static Field> {
    match shape {
        Shape::Record(record) => record.fields.iter().collect(),
        Shape::OneKey(fields) => fields.iter().collect(),
        Shape::Tagged(tagged) => {
            let mut fields: Vec<&'static Field> = Vec::new();
            for field in tagged.variants.iter().flat_map(|(_, record)| record.fields) {
                if !fields.iter().any(|known| known.name == field.name) {
                    fields.push(field);
                }
            }
            fields
        }
        _ => Vec::new(),
    }
}

fn values(shape: Shape) -> Vec<&'static str> {
    match shape {
        Shape::Choice(values, _) => values.to_vec(),
        Shape::PositiveOr(word) => vec![word],
        _ => Vec::new(),
    }
}

fn kind(shape: Shape) -> String {
    match shape {
        Shape::Text(_) => "string".to_owned(),
        Shape::Int { .. } => "integer".to_owned(),
        Shape::Number { .. } => "number".to_owned(),
        Shape::Bool | Shape::True => "boolean".to_owned(),
        Shape::Choice(..) => "one of".to_owned(),
        Shape::PositiveOr(word) => format!("positive integer or '{word}'"),
        Shape::Scalar(Scalars::WithoutFloats) => "string, integer or boolean".to_owned(),
        Shape::Scalar(Scalars::WithFloats) => "string, number or boolean".to_owned(),
        Shape::List(item, _) => format!("list of {}", kind(*item)),
        Shape::Record(_) | Shape::Tagged(_) => "mapping".to_owned(),
        Shape::OneKey(_) => "mapping with one key".to_owned(),
        Shape::Map { value, .. } => format!("mapping of names to {}", kind(*value)),
        Shape::Either(simple, composed) => format!("{} or {}", kind(*simple), kind(*composed)),
        Shape::Any => "anything".to_owned(),
        Shape::AnyMap => "free mapping".to_owned(),
    }
}

/// A page of the reference.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// File name, for example `models.md`.
    pub name: String,
    pub text: String,
}

/// The reference of the language in Markdown, a page for every root section and one for environment files.
pub fn reference() -> Vec<Page> {
    let mut pages = Vec::new();
    let mut index = String::from(
        "# Language reference\n\nGenerated from the loader's own table; every field that exists is here.\n\n",
    );
    let mut seen = BTreeSet::new();
    let composed = |field: &&&'static Field| !matches!(inner(field.shape), Shape::Text(_) | Shape::Any);
    let sections: Vec<&'static Field> = ROOT.fields.iter().collect();
    index.push_str("## `stream_project.yml`\n\n");
    table(&mut index, &sections, None);
    for field in sections.iter().filter(composed) {
        let mut text = format!("# `{}`\n\n{}\n\n", field.name, field.doc);
        blocks(&mut text, field.name, field.shape, &mut seen);
        let _ = writeln!(index, "* [`{0}`]({0}.md)", field.name);
        pages.push(Page { name: format!("{}.md", field.name), text: trimmed(text) });
    }
    index.push_str("* [environment files](environment-file.md)\n");
    let mut text = format!("# Environment files\n\n{}\n\n", ENVIRONMENT_FILE.doc);
    table(&mut text, &ENVIRONMENT_FILE.fields.iter().collect::<Vec<_>>(), None);
    for field in ENVIRONMENT_FILE.fields.iter().filter(|field| ROOT.field(field.name).is_none()) {
        blocks(&mut text, field.name, field.shape, &mut seen);
    }
    pages.push(Page { name: "environment-file.md".into(), text: trimmed(text) });
    pages.push(Page { name: "README.md".into(), text: trimmed(index) });
    pages
}

fn trimmed(text: String) -> String {
    format!("{}\n", text.trim_end())
}

fn blocks(text: &mut String, path: &str, shape: Shape, seen: &mut BTreeSet<&'static str>) {
    let path = match shape {
        Shape::List(..) => format!("{path}[]"),
        Shape::Map { .. } => format!("{path}.<name>"),
        _ => path.to_owned(),
    };
    match inner(shape) {
        Shape::Map { value, .. } => blocks(text, &path, *value, seen),
        Shape::Record(record) => block(text, &path, record, None, seen),
        Shape::Tagged(tagged) => {
            for (value, record) in tagged.variants {
                block(text, &path, record, Some((tagged.tag, value, tagged.default == Some(value))), seen);
            }
        }
        Shape::OneKey(fields) => {
            let _ = writeln!(text, "## `{path}`\n\nExactly one of these keys.\n");
            table(text, &fields.iter().collect::<Vec<_>>(), None);
            for field in fields {
                blocks(text, &format!("{path}.{}", field.name), field.shape, seen);
            }
        }
        _ => {}
    }
}

fn block(
    text: &mut String,
    path: &str,
    record: &'static Record,
    tag: Option<(&str, &str, bool)>,
    seen: &mut BTreeSet<&'static str>,
) {
    let variant = tag.map(|(name, value, _)| format!(", `{name}: {value}`")).unwrap_or_default();
    let _ = writeln!(text, "## `{path}`{variant}\n\n{}\n", record.doc);
    if !seen.insert(record.name) && !record.fields.is_empty() {
        let _ = writeln!(text, "The fields are those of `{}`, described where it first occurs.\n", record.name);
        return;
    }
    let fields: Vec<&'static Field> = record.fields.iter().collect();
    table(text, &fields, tag);
    for field in fields.iter().filter(|field| field.moved.is_none()) {
        blocks(text, &format!("{path}.{}", field.name), field.shape, seen);
    }
}

fn table(text: &mut String, fields: &[&'static Field], tag: Option<(&str, &str, bool)>) {
    if fields.is_empty() && tag.is_none() {
        return;
    }
    text.push_str("| Field | Type | Default | Meaning |\n|---|---|---|---|\n");
    if let Some((name, value, default)) = tag {
        let default = if default { format!("`{value}`") } else { "required".into() };
        let _ = writeln!(text, "| `{name}` | `{value}` | {default} | Which form this is. |");
    }
    for field in fields {
        let default = match field.need {
            Need::Required => "required".to_owned(),
            Need::Optional | Need::Default("null") => String::new(),
            Need::Default(json) => format!("`{json}`"),
        };
        let mut notes = field.doc.to_owned();
        if let Shape::Text(rule) = field.shape
            && rule.pattern.is_some()
        {
            let _ = write!(notes, " Must be {}.", rule.expected);
        }
        if let Shape::Int { min, max } = field.shape {
            match (min, max) {
                (_, super::value::MAX_EXACT) if min == -super::value::MAX_EXACT => {}
                (_, super::value::MAX_EXACT) => {
                    let _ = write!(notes, " At least {min}.");
                }
                _ => {
                    let _ = write!(notes, " {min} to {max}.");
                }
            }
        }
        if field.secret {
            notes.push_str(" Secret.");
        }
        if let Some(new) = field.moved.filter(|new| !new.is_empty()) {
            let _ = write!(notes, " Deprecated: write `{new}`.");
        }
        let values = values(field.shape).iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
        let kind = match field.shape {
            Shape::Choice(..) => values,
            other => kind(other),
        };
        let _ = writeln!(text, "| `{}` | {} | {} | {} |", field.name, kind, default, notes.replace('|', "\\|"));
    }
    text.push('\n');
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
