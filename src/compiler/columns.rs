//! What every source and model looks like as a table: its columns, their types and time attributes, from declarations and
//! from the analysis of each model's SQL in the order in which the models read each other. One answer for validation, DDL
//! and lineage.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;

use crate::project::Project;
use crate::project::model::{ChangelogMode, Column, Model, Reference, Source, WatermarkStrategy};
use crate::sql::Outline;
use crate::sql::analysis::{Environment, InputColumn, InputTime, OutputColumn, Time, analyse, expression_type};
use crate::sql::parse::{SyntaxError, parse};
use crate::sql::types::{SqlType, parse_type};

use super::resolve::{Names, ResolvedModel};

pub use crate::sql::analysis::{Analysis, Dependency, Gap, Input};

/// A source or a model as a table that can be read.
#[derive(Clone, Default, Debug)]
pub struct Table {
    /// None = not known.
    pub columns: Option<Vec<TableColumn>>,
    pub watermark: Option<Watermark>,
    /// Of a table whose rows are updated by key.
    pub key: Option<Vec<String>>,
}

#[derive(Clone, Debug)]
pub struct TableColumn {
    pub name: Arc<str>,
    pub data_type: SqlType,
    /// What a reader's DDL writes behind the name.
    pub ddl: String,
    /// Computed, or metadata: not in the record.
    pub computed: bool,
    pub processing: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watermark {
    pub column: Arc<str>,
    pub strategy: Strategy,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// Milliseconds.
    Bounded(u64),
    Monotonous,
    Custom(String),
}

/// What was made of a model's SQL.
#[derive(Clone, Debug)]
pub struct Reading {
    /// In the order of the model's dependencies.
    pub inputs: Vec<Input>,
    pub analysis: Result<Analysis, SyntaxError>,
}

/// Tables by name, and the readings of the models with SQL.
#[derive(Clone, Default, Debug)]
pub struct Columns {
    tables: HashMap<String, Table>,
    readings: HashMap<String, Reading>,
}

impl Columns {
    /// Of every source and model. A model in a cycle is not known.
    pub fn of(project: &Project, models: &[ResolvedModel]) -> Self {
        let names = Names::of(project);
        let functions = functions(project);
        let mut columns = Self::default();
        for source in &project.sources {
            columns.tables.entry(source.name.clone()).or_insert_with(|| source_table(source));
        }
        for index in order(models) {
            let resolved = &models[index];
            let Some(model) = names.model(&resolved.name) else { continue };
            let reading = resolved.sql.as_deref().and_then(|sql| columns.read(model, resolved, sql, &functions));
            let table = columns.model_table(model, resolved, reading.as_ref());
            columns.tables.insert(resolved.name.clone(), table);
            if let Some(reading) = reading {
                columns.readings.insert(resolved.name.clone(), reading);
            }
        }
        columns
    }

    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(name)
    }

    pub fn reading(&self, model: &str) -> Option<&Reading> {
        self.readings.get(model)
    }

    fn read(
        &self,
        model: &Model,
        resolved: &ResolvedModel,
        sql: &str,
        functions: &BTreeMap<String, SqlType>,
    ) -> Option<Reading> {
        let outline = Outline::parse(sql).ok()?;
        let inputs: Vec<Input> = resolved.dependencies.iter().map(|dependency| self.input(dependency)).collect();
        let models = ml_outputs(model);
        let environment = Environment { inputs: &inputs, functions, models: &models };
        let analysis = parse(&outline).map(|query| analyse(&query, environment));
        Some(Reading { inputs, analysis })
    }

    fn input(&self, dependency: &Reference) -> Input {
        let (name, model) = match dependency {
            Reference::Source(name) => (name, false),
            Reference::Model(name) => (name, true),
        };
        let table = self.tables.get(name);
        let watermark = table.and_then(|table| table.watermark.as_ref());
        let columns = table.and_then(|table| table.columns.as_ref()).map(|columns| {
            let column = |column: &TableColumn| InputColumn {
                name: column.name.clone(),
                data_type: column.data_type.clone(),
                time: match column.processing {
                    true => InputTime::Processing,
                    false if watermark.is_some_and(|watermark| watermark.column == column.name) => InputTime::Event,
                    false => InputTime::None,
                },
            };
            columns.iter().map(column).collect()
        });
        Input { name: name.clone(), model, columns, upsert: table.is_some_and(|table| table.key.is_some()) }
    }

    fn model_table(&self, model: &Model, resolved: &ResolvedModel, reading: Option<&Reading>) -> Table {
        let upsert = model.flink.as_ref().and_then(|flink| flink.changelog_mode) == Some(ChangelogMode::Upsert);
        let key = model.primary_key.clone().filter(|_| upsert);
        let inferred =
            reading.and_then(|reading| reading.analysis.as_ref().ok()).filter(|found| found.names().is_some());
        if let Some(analysis) = inferred {
            let columns = analysis.columns.iter().filter_map(|column| {
                let name = column.name.clone()?;
                let data_type = output_type(model, column);
                let ddl = data_type.to_string();
                Some(TableColumn { name, data_type, ddl, computed: false, processing: false })
            });
            let watermark = reading.and_then(|reading| self.passed_on(&reading.inputs, &analysis.columns));
            return Table { columns: Some(columns.collect()), watermark, key };
        }
        let outlined = match reading {
            Some(_) => resolved.sql.as_deref().and_then(outline_names),
            None => None,
        };
        if let Some(names) = outlined {
            let columns = names.into_iter().map(|name| {
                let data_type = declared_type(model, &name).unwrap_or(SqlType::Unknown);
                let ddl = data_type.to_string();
                TableColumn { name: name.as_str().into(), data_type, ddl, computed: false, processing: false }
            });
            return Table { columns: Some(columns.collect()), watermark: None, key };
        }
        let declared: Vec<TableColumn> = model.columns.iter().map(|column| table_column(column, false)).collect();
        Table { columns: (!declared.is_empty()).then_some(declared), watermark: None, key }
    }

    /// The watermark of the first column that is an input's event time or a window's.
    fn passed_on(&self, inputs: &[Input], columns: &[OutputColumn]) -> Option<Watermark> {
        columns.iter().find_map(|column| {
            let name = column.name.clone()?;
            match &column.time {
                Time::Window => Some(Watermark { column: name, strategy: Strategy::Monotonous }),
                Time::Event(base) => {
                    let watermark = self.tables.get(&inputs.get(base.input)?.name)?.watermark.as_ref()?;
                    let strategy = match &watermark.strategy {
                        // It speaks of the column by its name.
                        Strategy::Custom(_) if watermark.column != name => return None,
                        strategy => strategy.clone(),
                    };
                    Some(Watermark { column: name, strategy })
                }
                Time::None | Time::Processing => None,
            }
        })
    }
}

/// The type of an output column: what the SQL says, else what the model declares.
pub fn output_type(model: &Model, column: &OutputColumn) -> SqlType {
    match (&column.data_type, &column.name) {
        (SqlType::Unknown, Some(name)) => declared_type(model, name).unwrap_or(SqlType::Unknown),
        (known, _) => known.clone(),
    }
}

fn declared_type(model: &Model, name: &str) -> Option<SqlType> {
    let declared = model.columns.iter().find(|column| column.name == name).and_then(|c| c.data_type.as_deref());
    let promised = model.contract.iter().flat_map(|contract| &contract.columns);
    let promised = promised.filter(|column| column.name == name).find_map(|column| column.data_type.as_deref());
    parse_type(declared.or(promised)?).ok()
}

/// Names of the outermost select list, when each item has one.
pub(super) fn outline_names(sql: &str) -> Option<Vec<String>> {
    let outline = Outline::parse(sql).ok()?;
    outline.select()?.items.iter().map(|item| item.name.clone()).collect()
}

fn source_table(source: &Source) -> Table {
    if source.columns.is_empty() {
        return Table::default();
    }
    let event = source.event_time.as_ref();
    let is_event = |column: &Column| event.is_some_and(|event| event.column == column.name);
    let mut columns: Vec<TableColumn> =
        source.columns.iter().map(|column| table_column(column, is_event(column))).collect();
    computed_types(source, &mut columns);
    let watermark = event.filter(|event| columns.iter().any(|column| *column.name == *event.column)).map(|event| {
        let strategy = match &event.watermark {
            None => Strategy::Bounded(5_000),
            Some(watermark) => match (watermark.strategy, &watermark.expression) {
                (WatermarkStrategy::BoundedOutOfOrderness, _) => Strategy::Bounded(watermark.max_out_of_orderness_ms),
                (WatermarkStrategy::MonotonouslyIncreasing, _) | (WatermarkStrategy::Custom, None) => {
                    Strategy::Monotonous
                }
                (WatermarkStrategy::Custom, Some(expression)) => Strategy::Custom(expression.clone()),
            },
        };
        Watermark { column: event.column.as_str().into(), strategy }
    });
    Table { columns: Some(columns), watermark, key: None }
}

fn table_column(column: &Column, event: bool) -> TableColumn {
    let declared = column.data_type.as_deref().map(|text| (text, parse_type(text)));
    let mut known = match &declared {
        None => SqlType::String,
        Some((_, Ok(data_type))) => data_type.clone(),
        Some((_, Err(_))) => SqlType::Unknown,
    };
    let spelled = declared.as_ref().map_or("STRING".to_owned(), |(text, parsed)| spelled(text, parsed.as_ref().ok()));
    let mut computed = true;
    let ddl = if column.proctime {
        known = SqlType::TimestampLtz(3);
        "AS PROCTIME()".to_owned()
    } else if let Some(key) = &column.metadata {
        format!("{spelled} METADATA FROM '{}' VIRTUAL", key.replace('\'', "''"))
    } else if let Some(expression) = &column.expression {
        known = SqlType::Unknown;
        format!("AS {expression}")
    } else {
        computed = false;
        let kept = matches!(known, SqlType::Timestamp(0..=3) | SqlType::TimestampLtz(0..=3));
        if event && !kept {
            known = SqlType::Timestamp(3);
            "TIMESTAMP(3)".to_owned()
        } else {
            spelled
        }
    };
    TableColumn { name: column.name.as_str().into(), data_type: known, ddl, computed, processing: column.proctime }
}

/// Types of the computed columns, from those that are in the record.
fn computed_types(source: &Source, columns: &mut [TableColumn]) {
    let expressions =
        source.columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.expression.as_ref()?)));
    let plain = |columns: &[TableColumn]| {
        let column = |column: &TableColumn| InputColumn {
            name: column.name.clone(),
            data_type: column.data_type.clone(),
            time: InputTime::None,
        };
        Input {
            name: source.name.clone(),
            model: false,
            columns: Some(columns.iter().map(column).collect()),
            upsert: false,
        }
    };
    for (at, expression) in expressions {
        let found = expression_type(expression, &plain(&*columns));
        let event = source.event_time.as_ref().is_some_and(|event| event.column == *columns[at].name);
        columns[at].data_type = match found {
            SqlType::Unknown if event => SqlType::Timestamp(3),
            found => found,
        };
    }
}

/// A type text as Flink spells it; what needs no change stays as it was written.
fn spelled(text: &str, parsed: Option<&SqlType>) -> String {
    let foreign = |word: &str| {
        ["TEXT", "LONG", "BOOL", "REAL", "DATETIME"].iter().any(|foreign| word.eq_ignore_ascii_case(foreign))
    };
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let translated = words.into_iter().any(foreign);
    match parsed.filter(|_| translated) {
        Some(parsed) => parsed.to_string(),
        None => text.to_owned(),
    }
}

fn functions(project: &Project) -> BTreeMap<String, SqlType> {
    let function = |udf: &crate::project::model::Udf| {
        (udf.name.to_ascii_uppercase(), parse_type(&udf.return_type).unwrap_or(SqlType::Unknown))
    };
    project.udfs.iter().map(function).collect()
}

fn ml_outputs(model: &Model) -> BTreeMap<String, Vec<(String, SqlType)>> {
    let outputs = model.ml_outputs.iter().flatten();
    outputs
        .map(|(name, output)| {
            let columns = output.get("columns").and_then(Value::as_array).into_iter().flatten();
            let column = |column: &Value| {
                let name = column.get("name")?.as_str()?.to_owned();
                let data_type = column.get("type").and_then(Value::as_str).map(parse_type);
                Some((name, data_type.map_or(SqlType::String, |parsed| parsed.unwrap_or(SqlType::Unknown))))
            };
            (name.clone(), columns.filter_map(column).collect())
        })
        .collect()
}

/// Indices so that each model stands behind those it reads; models in cycles are left out.
pub(super) fn order(models: &[ResolvedModel]) -> Vec<usize> {
    let index = |name: &str| models.binary_search_by(|model| model.name.as_str().cmp(name)).ok();
    let mut waits = vec![0usize; models.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); models.len()];
    for (at, model) in models.iter().enumerate() {
        for dependency in &model.dependencies {
            if let Reference::Model(name) = dependency
                && let Some(read) = index(name)
            {
                waits[at] += 1;
                readers[read].push(at);
            }
        }
    }
    let mut ready: Vec<usize> = (0..models.len()).filter(|&at| waits[at] == 0).collect();
    let mut next = 0;
    while let Some(&at) = ready.get(next) {
        next += 1;
        for &reader in &readers[at] {
            waits[reader] -= 1;
            if waits[reader] == 0 {
                ready.push(reader);
            }
        }
    }
    ready
}
