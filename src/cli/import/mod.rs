//! Declarations of what exists: names, text, and the proof that the project still stands with them and says what was seen. The
//! command decides what is asked; nothing here reads a service.

pub mod columns;
pub mod connectors;
mod secrets;
mod verify;
mod yaml;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use columns::{Column, Columns};
pub use verify::{prospect, says};
use yaml::{Yaml, scalar};

use crate::codes::{Code, Diagnostic};
use crate::compiler::artifact::SchemaType;
use crate::messages::discover::{FoundSchema, FoundTopic, Lookup};

/// Topics that are some system's own, whatever the filters say.
const INTERNAL: [&str; 4] = ["__", "_schemas", "_confluent", "_streamt-connect-"];

pub fn is_internal(topic: &str) -> bool {
    INTERNAL.iter().any(|prefix| topic.starts_with(prefix))
}

/// What the declarations say of ownership.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Sources: observed and never changed.
    External,
    /// Models of mode `adopted`, exactly as live: `streamt adopt` claims them.
    Adoptable,
}

impl Form {
    pub const fn directory(self) -> &'static str {
        match self {
            Self::External => "sources",
            Self::Adoptable => "models",
        }
    }

    pub const fn default_file(self) -> &'static str {
        match self {
            Self::External => "sources/imported.kafka.yml",
            Self::Adoptable => "models/imported.kafka.yml",
        }
    }
}

/// One topic that becomes a declaration.
#[derive(Clone, PartialEq, Debug)]
pub struct Declaration {
    pub name: String,
    pub found: FoundTopic,
    pub columns: Columns,
}

/// The name of a declaration: letters, digits and `_`.
pub fn name_of(topic: &str) -> String {
    topic.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

/// E703 when two topics get one name, or one that the project has: `taken`, with what it is there.
pub fn declare(
    found: Vec<FoundTopic>,
    taken: &BTreeMap<String, &'static str>,
    wide_integers: bool,
) -> Result<Vec<Declaration>, Diagnostic> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut declarations = Vec::with_capacity(found.len());
    for one in found {
        let topic = one.topic.name.clone();
        let name = name_of(&topic);
        let collision = |what: String| {
            Err(Diagnostic::new(Code::E703ImportNameCollision, what)
                .suggest("leave one out with --include or --exclude, and declare it by hand under another name"))
        };
        if let Some(what) = taken.get(&name) {
            return collision(format!("topic '{topic}' would be named '{name}', and a {what} has that name"));
        }
        if let Some(other) = names.insert(name.clone(), topic.clone()) {
            return collision(format!("topics '{other}' and '{topic}' would both be named '{name}'"));
        }
        let columns = match &one.schema {
            Lookup::Resolved(schema) => columns::columns(schema.schema_type, &schema.schema, wide_integers),
            Lookup::NotRequested | Lookup::NotFound | Lookup::Failed(_) | Lookup::Skipped => Columns::Opaque,
        };
        declarations.push(Declaration { name, found: one, columns });
    }
    Ok(declarations)
}

/// W107 for each subject that could not be read or gave no columns, and one for those that were not asked for after an outage.
pub fn warnings(declarations: &[Declaration]) -> Vec<Diagnostic> {
    let warn = |text: String| Diagnostic::new(Code::W107SchemaEnrichmentSkipped, text);
    let mut warnings = Vec::new();
    for one in declarations {
        let topic = &one.found.topic.name;
        match (&one.found.schema, &one.columns) {
            (Lookup::Failed(error), _) => {
                let text = format!("the schema of topic '{topic}' was not read: {}", error.message);
                warnings
                    .push(warn(text).suggest("declare its columns by hand, or import again when the registry answers"));
            }
            (Lookup::Resolved(_), Columns::Unsupported(why)) => {
                let text = format!("topic '{topic}' is declared without columns: its schema {why}");
                warnings.push(warn(text).suggest("declare its columns by hand"));
            }
            (Lookup::Resolved(_), Columns::Inferred(_) | Columns::Opaque)
            | (Lookup::NotRequested | Lookup::NotFound | Lookup::Skipped, _) => {}
        }
    }
    let skipped = declarations.iter().filter(|one| one.found.schema == Lookup::Skipped).count();
    if skipped > 0 {
        let text = format!("the schema registry did not answer, and was not asked about {skipped} more topics");
        warnings.push(warn(text).suggest("import again when the registry answers"));
    }
    warnings
}

const fn format(schema_type: SchemaType) -> &'static str {
    match schema_type {
        SchemaType::Avro => "avro",
        SchemaType::Json => "json",
        SchemaType::Protobuf => "protobuf",
    }
}

impl Declaration {
    fn schema(&self) -> Option<&FoundSchema> {
        match &self.found.schema {
            Lookup::Resolved(schema) => Some(schema),
            Lookup::NotRequested | Lookup::NotFound | Lookup::Failed(_) | Lookup::Skipped => None,
        }
    }

    fn inferred(&self) -> &[Column] {
        match &self.columns {
            Columns::Inferred(columns) => columns,
            Columns::Opaque | Columns::Unsupported(_) => &[],
        }
    }

    /// The declaration as results print it, in the keys of the project language.
    pub fn data(&self, form: Form) -> Value {
        let mut data = json!({"name": self.name});
        match form {
            Form::External => {
                data["topic"] = json!(self.found.topic.name);
                data["ownership"] = json!({"mode": "external"});
                if let Some(schema) = self.schema() {
                    data["schema"] = json!({
                        "registry": "confluent", "subject": schema.subject, "version": schema.version,
                        "format": format(schema.schema_type),
                    });
                }
                if !self.inferred().is_empty() {
                    data["columns"] = self.inferred().iter().map(column_data).collect();
                }
            }
            Form::Adoptable => {
                let topic = &self.found.topic;
                data["ownership"] = json!({"mode": "adopted"});
                data["topic"] = json!({
                    "name": topic.name, "partitions": topic.partitions, "replication_factor": topic.replication_factor,
                    "config": topic.config,
                });
                if let Some(schema) = self.schema() {
                    data["schema"] = json!({
                        "subject": schema.subject, "format": format(schema.schema_type),
                        "compatibility": schema.compatibility, "references": schema.references,
                    });
                }
            }
        }
        data
    }

    fn external(&self, yaml: &mut Yaml) {
        yaml.line(2, &format!("- name: {}", scalar(&self.name)));
        yaml.pair(4, "topic", &self.found.topic.name);
        yaml.line(4, "ownership: {mode: external}");
        if let Some(schema) = self.schema() {
            yaml.line(4, "schema:");
            yaml.pair(6, "registry", "confluent").pair(6, "subject", &schema.subject);
            yaml.number(6, "version", schema.version.into()).pair(6, "format", format(schema.schema_type));
        }
        if !self.inferred().is_empty() {
            yaml.line(4, "columns:");
        }
        for column in self.inferred() {
            yaml.line(6, &format!("- name: {}", scalar(&column.name)));
            yaml.pair(8, "type", &column.data_type);
            if column.required {
                yaml.line(8, "required: true");
            }
        }
    }

    fn adoptable(&self, yaml: &mut Yaml) {
        let topic = &self.found.topic;
        yaml.line(2, &format!("- name: {}", scalar(&self.name)));
        yaml.line(4, "ownership: {mode: adopted}");
        yaml.line(4, "topic:");
        yaml.pair(6, "name", &topic.name);
        yaml.number(6, "partitions", topic.partitions.unwrap_or_default().into());
        yaml.number(6, "replication_factor", topic.replication_factor.unwrap_or_default().into());
        if !topic.config.is_empty() {
            yaml.line(6, "config:");
        }
        for (key, value) in &topic.config {
            yaml.pair(8, key, value);
        }
        let Some(schema) = self.schema() else { return };
        yaml.line(4, "schema:");
        yaml.pair(6, "subject", &schema.subject).pair(6, "format", format(schema.schema_type));
        if let Some(level) = schema.compatibility {
            yaml.pair(6, "compatibility", level.as_str());
        }
        if !schema.references.is_empty() {
            yaml.line(6, "references:");
        }
        for reference in &schema.references {
            yaml.line(8, &format!("- name: {}", scalar(&reference.name)));
            yaml.pair(10, "subject", &reference.subject).number(10, "version", reference.version.into());
        }
        match &schema.schema {
            Value::String(text) if schema.schema_type == SchemaType::Protobuf => {
                yaml.pair(6, "definition", text);
            }
            schema => {
                yaml.json(6, "definition", schema);
            }
        }
    }
}

fn column_data(column: &Column) -> Value {
    let mut data = json!({"name": column.name, "type": column.data_type});
    if column.required {
        data["required"] = json!(true);
    }
    data
}

/// The whole file.
pub fn text(form: Form, environment: &str, declarations: &[Declaration]) -> String {
    let mut yaml = Yaml::default();
    match form {
        Form::External => {
            yaml.line(0, &format!("# Topics that exist in the environment '{environment}', written by `streamt import`. They are external: streamt"));
            yaml.line(0, "# reads them and never changes them. Columns are inferred from schemas and not verified against records.");
            yaml.line(0, "sources:");
        }
        Form::Adoptable => {
            yaml.line(0, &format!("# Topics and subjects that exist in the environment '{environment}', written by `streamt import --adoptable` as they"));
            yaml.line(
                0,
                "# are. Nothing is claimed yet: `streamt adopt` does that, one by one or by a reviewed selection.",
            );
            yaml.line(0, "models:");
        }
    }
    for declaration in declarations {
        match form {
            Form::External => declaration.external(&mut yaml),
            Form::Adoptable => declaration.adoptable(&mut yaml),
        }
    }
    yaml.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::observation::TopicObservation;

    fn found(topic: &str) -> FoundTopic {
        let topic = TopicObservation {
            exists: true,
            partitions: Some(1),
            replication_factor: Some(1),
            ..TopicObservation::absent(topic)
        };
        FoundTopic { topic, schema: Lookup::NotFound }
    }

    /// ADO-034
    #[test]
    fn a_name_that_is_taken_or_asked_for_twice_fails_the_whole_import() {
        let taken = BTreeMap::from([("orders_v1".to_owned(), "model")]);
        let names = |topics: &[&str], taken: &BTreeMap<String, &'static str>| {
            let declared = declare(topics.iter().map(|topic| found(topic)).collect(), taken, false)?;
            Ok::<_, Diagnostic>(declared.into_iter().map(|one| one.name).collect::<Vec<_>>())
        };
        assert_eq!(
            names(&["orders.v1", "Pay-ments"], &BTreeMap::new()),
            Ok(vec!["orders_v1".into(), "Pay_ments".into()])
        );
        for (topics, taken, told) in [
            (&["a", "orders.v1"][..], &taken, "a model has that name"),
            (&["orders.v1", "orders-v1"], &BTreeMap::new(), "'orders.v1' and 'orders-v1' would both"),
        ] {
            let refused = names(topics, taken).expect_err("a collision");
            assert_eq!(refused.code, Code::E703ImportNameCollision);
            assert!(refused.message.contains(told), "{}", refused.message);
        }
    }

    /// ADO-030
    #[test]
    fn topics_of_systems_are_internal_by_their_prefix_alone() {
        for name in ["__consumer_offsets", "_schemas", "_schemas_old", "_confluent-metrics", "_streamt-connect-x"] {
            assert!(is_internal(name), "{name}");
        }
        for name in ["orders", "_orders", "my__x", "a_schemas"] {
            assert!(!is_internal(name), "{name}");
        }
    }
}
