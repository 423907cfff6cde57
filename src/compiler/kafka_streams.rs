//! Jobs of the Kafka Streams runner: the SQL is of the runner's subset, over one input of plain JSON whose columns and types
//! are declared, and becomes a plan. One answer for validation and compilation.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::codes::{Code, Diagnostic};
use crate::project::Project;
use crate::project::model::{Column, InitialOffset, Materialized, Model, Reference, SchemaFormat, Source};
use crate::sql::outline::Outline;
use crate::sql::runner::{self, Literal, Query, Test};
use crate::sql::types::SqlType;
use crate::sql::{Span, SqlError};

use super::artifact::{KafkaStreamsJobArtifact, OwnerType};
use super::canonical;
use super::columns::Columns;
use super::context::Context;
use super::cycle;
use super::resolve::{Names, Output, Process, ResolvedModel, at_sql};

/// Types that the runner knows, spelled so.
const TYPES: [&str; 3] = ["STRING", "BOOLEAN", "BIGINT"];

/// Models between an input and the source that it comes from.
const MAX_HOPS: usize = 64;

/// Bytes of a plan's canonical form with its newline.
const MAX_PLAN: usize = 1 << 20;

/// A column of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    pub name: String,
    pub data_type: String,
    pub nullable: bool,
}

type Schema = Vec<Field>;

/// What a job does, as the runner reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    input: String,
    output: String,
    schema: Schema,
    query: Query,
}

impl Plan {
    /// Columns of the records that it writes.
    pub fn gives(&self) -> Schema {
        projected(&self.query, &self.schema)
    }

    fn document(&self) -> Value {
        let schema = self
            .schema
            .iter()
            .map(|field| (field.name.clone(), json!({ "type": field.data_type, "nullable": field.nullable })));
        let projection: Vec<Value> =
            self.query.projection.iter().map(|item| json!({ "column": item.column, "as": item.output })).collect();
        let predicates: Vec<Value> = self
            .query
            .predicates
            .iter()
            .map(|predicate| match &predicate.test {
                Test::Null => json!({ "column": predicate.column, "op": "is_null" }),
                Test::NotNull => json!({ "column": predicate.column, "op": "not_null" }),
                Test::Compare(comparison, literal) => {
                    json!({ "column": predicate.column, "op": comparison.as_str(), "value": value(literal) })
                }
            })
            .collect();
        json!({
            "version": 1,
            "input_topic": self.input,
            "output_topic": self.output,
            "schema": schema.collect::<Map<String, Value>>(),
            "projection": projection,
            "predicates": predicates,
        })
    }
}

fn value(literal: &Literal) -> Value {
    match literal {
        Literal::Text(text) => json!(text),
        Literal::Boolean(flag) => json!(flag),
        Literal::Integer(number) => json!(number),
    }
}

fn projected(query: &Query, schema: &[Field]) -> Schema {
    let of = |column: &str| schema.iter().find(|field| field.name == column);
    let item = |item: &runner::Projected| Some(Field { name: item.output.clone(), ..of(&item.column)?.clone() });
    query.projection.iter().filter_map(item).collect()
}

/// The id under which the runner consumes, writes and keeps: of project, environment and model alone.
pub fn application_id(project: &str, environment: &str, model: &str) -> Option<String> {
    let preimage = canonical::to_canonical(&json!([project, environment, model])).ok()?;
    let digest = Sha256::digest(preimage);
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Some(format!("streamt-{hex}"))
}

/// Where a mistake stands in the model's declaration.
enum Place {
    Sql(Span),
    Field(&'static str),
}

/// With what to do.
type Mistake = (Place, String, &'static str);

const SUBSET: &str = "Select and rename columns, and filter with AND; other SQL needs `executor: flink`";

/// The runner's models of a project.
pub struct Runners<'a> {
    names: Names<'a>,
    models: &'a [ResolvedModel],
    columns: &'a Columns,
}

impl<'a> Runners<'a> {
    pub fn new(project: &'a Project, models: &'a [ResolvedModel], columns: &'a Columns) -> Self {
        Self { names: Names::of(project), models, columns }
    }

    /// The plan of a model, or every E218 against it. None of either when other findings say what is wrong.
    pub fn plan(&self, model: &Model, resolved: &ResolvedModel) -> Result<Plan, Vec<Diagnostic>> {
        let told = |mistakes: Vec<Mistake>| -> Vec<Diagnostic> {
            let finding = |(place, message, hint): Mistake| {
                let message = format!("Model '{}': {message}", model.name);
                let finding = Diagnostic::new(Code::E218KafkaStreamsInvalid, message).suggest(hint);
                match place {
                    Place::Sql(span) => at_sql(model, span, finding),
                    Place::Field(field) => model.origin.mark(field, finding),
                }
            };
            mistakes.into_iter().map(finding).collect()
        };
        self.read(model, resolved).map_err(told)
    }

    fn read(&self, model: &Model, resolved: &ResolvedModel) -> Result<Plan, Vec<Mistake>> {
        let sql = resolved.sql.as_deref().unwrap_or_default();
        let query = runner::parse(sql).map_err(|SqlError { offset, width, message, .. }| {
            // What is no query at all has its finding.
            match Outline::parse(sql) {
                Ok(_) => vec![(Place::Sql(Span::new(offset, offset + width)), message, SUBSET)],
                Err(_) => Vec::new(),
            }
        })?;
        let call = resolved.calls.first().map_or(Span::new(0, 0), |call| call.name_span);
        let (input, Some(Output::Kafka(output))) = (self.input(resolved, call)?, &resolved.output) else {
            return Err(Vec::new());
        };
        let schema = match self.schema(&resolved.dependencies[0], MAX_HOPS) {
            Ok(schema) => schema,
            Err(why) => {
                let message = format!("'{}' {why}", resolved.dependencies[0].name());
                return Err(vec![(Place::Sql(call), message, "Declare its columns as STRING, BOOLEAN or BIGINT")]);
            }
        };
        let mut mistakes = mistakes(&query, &schema);
        for topic in [&input, output].into_iter().filter(|topic| !is_topic(topic)) {
            mistakes.push((Place::Field("topic"), format!("the runner takes no topic '{topic}'"), TOPICS));
        }
        if input == *output {
            mistakes.push((Place::Field("topic"), format!("it would read and write topic '{input}'"), TOPICS));
        }
        if mistakes.is_empty() {
            mistakes = declarations(model, &projected(&query, &schema));
        }
        let plan = Plan { input, output: output.clone(), schema, query };
        let size = canonical::to_canonical(&plan.document()).map_or(usize::MAX, |bytes| bytes.len() + 1);
        if size > MAX_PLAN {
            mistakes.push((Place::Sql(Span::new(0, 0)), format!("its plan is larger than {MAX_PLAN} bytes"), SUBSET));
        }
        if mistakes.is_empty() { Ok(plan) } else { Err(mistakes) }
    }

    /// The topic that it reads; nothing when the dependency is not there, which others report.
    fn input(&self, resolved: &ResolvedModel, call: Span) -> Result<String, Vec<Mistake>> {
        let refuse = |why: &str| Err(vec![(Place::Sql(call), why.to_owned(), SUBSET)]);
        match resolved.dependencies.as_slice() {
            [Reference::Source(name)] => {
                self.names.source(name).map(|source| source.topic.clone()).ok_or_else(Vec::new)
            }
            [Reference::Model(name)] => match self.resolved(name).map(|input| &input.output) {
                Some(Some(Output::Kafka(topic))) => Ok(topic.clone()),
                Some(Some(Output::Gateway(_)) | None) => {
                    refuse(&format!("'{name}' is no topic of Kafka: it is the output of Gateway or Connect"))
                }
                None => Err(Vec::new()),
            },
            [] => Err(Vec::new()),
            [_, _, ..] => refuse("it reads more than one input"),
        }
    }

    fn resolved(&self, name: &str) -> Option<&'a ResolvedModel> {
        let index = self.models.binary_search_by(|model| model.name.as_str().cmp(name)).ok()?;
        self.models.get(index)
    }

    /// Names and types of an input, or why they do not hold.
    fn schema(&self, input: &Reference, hops: usize) -> Result<Schema, &'static str> {
        match input {
            Reference::Source(name) => self.names.source(name).map_or(Err("is not declared"), of_source),
            Reference::Model(name) => {
                let (Some(model), Some(resolved)) = (self.names.model(name), self.resolved(name)) else {
                    return Err("is not declared");
                };
                match resolved.process {
                    Some(Process::KafkaStreams) => self.proven(resolved, hops),
                    Some(Process::Flink | Process::Gateway | Process::Connect) | None => self.of_model(model, resolved),
                }
            }
        }
    }

    /// The output of a model that the runner executes too.
    fn proven(&self, resolved: &ResolvedModel, hops: usize) -> Result<Schema, &'static str> {
        let Some(hops) = hops.checked_sub(1) else { return Err("stands in a chain that is too long") };
        let query = resolved.sql.as_deref().and_then(|sql| runner::parse(sql).ok());
        let (Some(query), Some(input)) = (query, resolved.dependencies.first()) else {
            return Err("has SQL that the runner does not know");
        };
        let given = projected(&query, &self.schema(input, hops)?);
        match given.len() == query.projection.len() {
            true => Ok(given),
            false => Err("uses a column that its input does not have"),
        }
    }

    /// Declared and promised columns say the same, and no other types than the SQL gives.
    fn of_model(&self, model: &Model, resolved: &ResolvedModel) -> Result<Schema, &'static str> {
        if resolved.materialized == Materialized::VirtualTopic || resolved.materialized == Materialized::Sink {
            return Err("is the output of Gateway or Connect");
        }
        let promised = model.contract.iter().flat_map(|contract| &contract.columns);
        let promised: Vec<_> = promised
            .map(|column| (column.name.as_str(), column.data_type.as_deref(), column.nullable.unwrap_or(true)))
            .collect();
        let schema = match (model.columns.is_empty(), promised.is_empty()) {
            (true, _) => typed(promised)?,
            (false, true) => of_columns(&model.columns)?,
            (false, false) => {
                let (declared, promised) = (of_columns(&model.columns)?, typed(promised)?);
                if !same(&declared, &promised) {
                    return Err("declares other columns than its contract promises");
                }
                declared
            }
        };
        let reading = self.columns.reading(&resolved.name).and_then(|reading| reading.analysis.as_ref().ok());
        if let Some(analysis) = reading.filter(|analysis| analysis.complete) {
            let given = |name: &str| analysis.columns.iter().find(|column| column.name.as_deref() == Some(name));
            let agrees = |field: &Field| {
                given(&field.name).is_some_and(|column| {
                    column.data_type == SqlType::Unknown || column.data_type.to_string() == field.data_type
                })
            };
            if analysis.columns.len() != schema.len() || !schema.iter().all(agrees) {
                return Err("declares other columns than its SQL gives");
            }
        }
        Ok(schema)
    }

    /// E218 for each circle of topics that the runner's jobs would turn in, whatever the sources are called.
    pub fn circles(&self) -> Vec<Diagnostic> {
        let jobs: Vec<(&Model, String, &str)> = self
            .models
            .iter()
            .filter(|resolved| resolved.process == Some(Process::KafkaStreams))
            .filter_map(|resolved| {
                let Some(Output::Kafka(output)) = &resolved.output else { return None };
                let input = self.input(resolved, Span::new(0, 0)).ok()?;
                Some((self.names.model(&resolved.name)?, input, output.as_str()))
            })
            .collect();
        let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (_, input, output) in jobs.iter().filter(|(_, input, output)| input != output) {
            edges.entry(input).or_default().push(output);
        }
        cycle::find(&edges)
            .into_iter()
            .filter_map(|path| {
                let (model, ..) = jobs
                    .iter()
                    .find(|(_, input, output)| path.windows(2).any(|step| step[0] == input && step[1] == *output))?;
                let message = format!("Kafka Streams jobs turn in a circle of topics: {}", path.join(" -> "));
                let finding = Diagnostic::new(Code::E218KafkaStreamsInvalid, message);
                Some(model.origin.mark("sql", finding).suggest("Let one of them write another topic"))
            })
            .collect()
    }
}

const TOPICS: &str = "Name topics with letters, digits, '.', '_' and '-'; the output is another than the input";

/// One for each model that the runner executes, in topological order.
pub(super) fn compile(
    context: &mut Context<'_>,
    models: &[ResolvedModel],
    order: &[&str],
    columns: &Columns,
) -> Vec<KafkaStreamsJobArtifact> {
    let project = context.project;
    let Some(runtime) = &project.runtime.kafka_streams else { return Vec::new() };
    let runners = Runners::new(project, models, columns);
    let mut jobs = Vec::new();
    let mut findings = Vec::new();
    for name in order {
        let (Some(resolved), Some(model)) = (context.resolved(name), context.names.model(name)) else { continue };
        if resolved.process != Some(Process::KafkaStreams) {
            continue;
        }
        let plan = match runners.plan(model, resolved) {
            Ok(plan) => plan,
            Err(mistakes) => {
                findings.extend(mistakes);
                continue;
            }
        };
        let Some(application_id) = application_id(&project.name, &project.environment.name, name) else { continue };
        jobs.push(KafkaStreamsJobArtifact {
            name: model.name.clone(),
            application_id,
            image: runtime.image.clone(),
            network: runtime.network.clone(),
            initial_offset: match runtime.initial_offset {
                InitialOffset::Earliest => "earliest".to_owned(),
                InitialOffset::Latest => "latest".to_owned(),
            },
            plan: plan.document(),
            ownership: context.ownership(OwnerType::Model, &model.name, model.ownership.mode),
        });
    }
    findings.extend(runners.circles());
    context.findings.extend(findings);
    jobs
}

fn of_source(source: &Source) -> Result<Schema, &'static str> {
    if source.cluster.is_some() {
        return Err("names a cluster, and the runner reads the project's own");
    }
    if let Some(schema) = &source.schema {
        let named = schema.registry.is_some() || schema.subject.is_some() || schema.definition.is_some();
        let other = schema.format.is_some_and(|format| format != SchemaFormat::Json);
        let undeclared = schema.format.is_none() && schema.timestamp_format.is_none() && schema.fields.is_none();
        if named || other || undeclared {
            return Err("is not raw JSON: its schema is of a registry or of another format");
        }
    }
    of_columns(&source.columns)
}

fn of_columns(columns: &[Column]) -> Result<Schema, &'static str> {
    if columns.iter().any(|column| column.proctime || column.metadata.is_some() || column.expression.is_some()) {
        return Err("has columns that are not in the record");
    }
    typed(columns.iter().map(|column| (column.name.as_str(), column.data_type.as_deref(), !column.required)))
}

fn typed<'b>(columns: impl IntoIterator<Item = (&'b str, Option<&'b str>, bool)>) -> Result<Schema, &'static str> {
    let mut schema = Schema::new();
    for (name, data_type, nullable) in columns {
        if schema.iter().any(|field| field.name == name) {
            return Err("has two columns of one name");
        }
        match data_type.filter(|data_type| TYPES.contains(data_type)) {
            Some(data_type) => {
                schema.push(Field { name: name.to_owned(), data_type: data_type.to_owned(), nullable });
            }
            None => return Err("has a column whose type is not STRING, BOOLEAN or BIGINT"),
        }
    }
    if schema.is_empty() { Err("declares no columns") } else { Ok(schema) }
}

fn same(one: &[Field], other: &[Field]) -> bool {
    one.len() == other.len() && one.iter().all(|field| other.contains(field))
}

fn mistakes(query: &Query, schema: &[Field]) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let mut add = |span: Span, message: String| mistakes.push((Place::Sql(span), message, SUBSET));
    let type_of = |column: &str| schema.iter().find(|field| field.name == column).map(|field| field.data_type.as_str());
    for item in &query.projection {
        if type_of(&item.column).is_none() {
            add(item.span, format!("the input has no column '{}'", item.column));
        }
    }
    for predicate in &query.predicates {
        let column = &predicate.column;
        let Some(data_type) = type_of(column) else {
            add(predicate.span, format!("the input has no column '{column}'"));
            continue;
        };
        let Test::Compare(comparison, literal) = &predicate.test else { continue };
        if literal.type_name() != data_type {
            add(predicate.span, format!("column '{column}' is {data_type}, the literal is {}", literal.type_name()));
        } else if comparison.is_ordering() && data_type != "BIGINT" {
            add(predicate.span, format!("column '{column}' is {data_type}, which has no order"));
        }
    }
    mistakes
}

/// Declared and promised columns are the projection, no more and no less.
fn declarations(model: &Model, given: &[Field]) -> Vec<Mistake> {
    let declared = model.columns.iter();
    let declared: Vec<_> =
        declared.map(|column| (column.name.as_str(), column.data_type.as_deref(), Some(!column.required))).collect();
    let promised = model.contract.iter().flat_map(|contract| &contract.columns);
    let promised: Vec<_> =
        promised.map(|column| (column.name.as_str(), column.data_type.as_deref(), column.nullable)).collect();
    let mut mistakes = Vec::new();
    for (field, columns, exact) in [("columns", declared, true), ("contract.columns", promised, false)] {
        let agrees = |(name, data_type, nullable): &(&str, Option<&str>, Option<bool>)| {
            given.iter().any(|own| {
                own.name == *name
                    && data_type.map_or(!exact, |data_type| own.data_type == data_type)
                    && nullable.is_none_or(|nullable| own.nullable == nullable)
            })
        };
        if !columns.is_empty() && (columns.len() != given.len() || !columns.iter().all(agrees)) {
            let given: Vec<String> = given.iter().map(shown).collect();
            let message = format!("{field} are not the columns that its SQL gives: {}", given.join(", "));
            mistakes.push((Place::Field(field), message, "Declare each output column with its type, or none"));
        }
    }
    mistakes
}

fn shown(field: &Field) -> String {
    let required = if field.nullable { "" } else { ", required" };
    format!("{} {}{required}", field.name, field.data_type)
}

/// `[A-Za-z0-9][A-Za-z0-9_.-]{0,248}`.
fn is_topic(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.len() <= 249 && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(legal)
}

#[cfg(test)]
#[path = "kafka_streams_tests.rs"]
mod tests;
