//! Each model resolved once: its SQL behind macros, its dependencies, its effective materialization, where its output goes.
//! Everything downstream reads the frozen answer and never the declaration's SQL again.

use std::collections::{BTreeMap, HashMap};

use crate::codes::{Code, Diagnostic, Diagnostics, suggest};
use crate::project::model::{Executor, Materialized, Model, Project, Reference, Runtime, Source};
use crate::sql::outline::Obstacle;
use crate::sql::{self, Call, CallKind, Outline, Span, SqlError, TokenKind};

use super::dag::distinct;
use super::macros;

/// Who runs a model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Process {
    Flink,
    Gateway,
    Connect,
    KafkaStreams,
}

impl Process {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Flink => "flink",
            Self::Gateway => "gateway",
            Self::Connect => "connect",
            Self::KafkaStreams => "kafka_streams",
        }
    }
}

/// Where a model's records can be read: a topic, or an alias that Gateway serves.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Output {
    Kafka(String),
    Gateway(String),
}

impl Output {
    pub fn name(&self) -> &str {
        match self {
            Self::Kafka(name) | Self::Gateway(name) => name,
        }
    }

    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Kafka(_) => "kafka",
            Self::Gateway(_) => "gateway",
        }
    }
}

/// One model with everything the compiler decided about it, frozen once. It holds no secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedModel {
    pub name: String,
    /// Index of the declaration in the project's models.
    pub declaration: usize,
    /// SQL after macro rendering; templates still in place.
    pub sql: Option<String>,
    /// The template calls of `sql`, in text order.
    pub calls: Vec<Call>,
    /// Sources first, then models, each in text order, without repetition; without SQL the entries of `from`.
    pub dependencies: Vec<Reference>,
    pub materialized: Materialized,
    /// What the rules made of the declaration before they looked at the runtime. It differs from `materialized` when a
    /// virtual topic became a Flink job, because there is no Gateway or because Gateway cannot run its SQL.
    pub inferred: Materialized,
    /// The predicate of a virtual topic's filter, as written.
    pub filter: Option<String>,
    pub process: Option<Process>,
    /// None for a sink.
    pub output: Option<Output>,
    /// Topic or alias that feeds a virtual topic.
    pub gateway_input: Option<String>,
    /// Topics or aliases that feed a sink.
    pub connector_inputs: Vec<String>,
}

/// Sources and models by name; of two with one name, the first.
pub struct Names<'a> {
    sources: HashMap<&'a str, &'a Source>,
    models: HashMap<&'a str, &'a Model>,
}

impl<'a> Names<'a> {
    pub fn of(project: &'a Project) -> Self {
        let mut names = Self { sources: HashMap::new(), models: HashMap::new() };
        for source in &project.sources {
            names.sources.entry(&source.name).or_insert(source);
        }
        for model in &project.models {
            names.models.entry(&model.name).or_insert(model);
        }
        names
    }

    pub fn source(&self, name: &str) -> Option<&'a Source> {
        self.sources.get(name).copied()
    }

    pub fn model(&self, name: &str) -> Option<&'a Model> {
        self.models.get(name).copied()
    }

    /// What a name that is not declared may stand for, in either kind.
    fn meant(&self, reference: &Reference, in_sql: bool) -> Option<String> {
        let name = reference.name();
        let (sources, models) = (self.sources.keys().copied(), self.models.keys().copied());
        let (own, other): (Vec<&str>, Vec<&str>) = match reference {
            Reference::Source(_) => (sources.collect(), models.collect()),
            Reference::Model(_) => (models.collect(), sources.collect()),
        };
        let (noun, other_noun, other_call) = match reference {
            Reference::Source(_) => ("source", "model", CallKind::Ref),
            Reference::Model(_) => ("model", "source", CallKind::Source),
        };
        let written = |name: &str| match in_sql {
            true => format!("{{{{ {}(\"{name}\") }}}}", other_call.as_str()),
            false => format!("`{}: {name}`", other_call.as_str()),
        };
        if other.contains(&name) {
            return Some(format!("'{name}' is a {other_noun}: write {}", written(name)));
        }
        let similar = suggest::closest(name, other.iter().copied());
        suggest::did_you_mean(name, own.iter().copied())
            .or_else(|| similar.first().map(|name| format!("Did you mean {}?", written(name))))
            .or_else(|| suggest::hint(name, noun, own))
    }
}

/// Every model, sorted by name, and what is wrong: E101, E102, E104 (a model that reads itself), E105, E119, E219, E220,
/// E222, E501. A model with errors is still there, with what is known of it.
pub fn resolve(project: &Project) -> (Vec<ResolvedModel>, Diagnostics) {
    let names = Names::of(project);
    let mut findings = Diagnostics::new();
    let mut models: Vec<ResolvedModel> = project
        .models
        .iter()
        .enumerate()
        .map(|(index, model)| {
            let mut resolver = Resolver { project, names: &names, model, findings: &mut findings };
            resolver.resolve(index)
        })
        .collect();
    models.sort_by(|a, b| a.name.cmp(&b.name));
    connect_inputs(&names, &mut models);
    (models, findings)
}

struct Resolver<'a> {
    project: &'a Project,
    names: &'a Names<'a>,
    model: &'a Model,
    findings: &'a mut Diagnostics,
}

impl Resolver<'_> {
    fn resolve(&mut self, declaration: usize) -> ResolvedModel {
        let model = self.model;
        self.check_executor();
        let sql = match (&model.macro_name, &model.sql) {
            (Some(name), _) => match macros::render(self.project, model, name) {
                Ok(sql) => Some(sql),
                Err(finding) => {
                    self.findings.push(finding);
                    None
                }
            },
            (None, sql) => sql.clone(),
        };
        let outline = sql.as_deref().map(Outline::parse).and_then(|parsed| match parsed {
            Ok(outline) => Some(outline),
            Err(error) => {
                self.findings.push(sql_finding(model, &error));
                None
            }
        });
        let calls = match (&outline, &sql) {
            (Some(outline), _) => calls(outline),
            (None, Some(sql)) => sql::references(sql).unwrap_or_default(),
            (None, None) => Vec::new(),
        };
        let dependencies = self.dependencies(&calls);
        let has_sql = model.sql.is_some() || model.macro_name.is_some();
        let decision = Decision::of(model, has_sql, outline.as_ref(), &self.project.runtime);
        if !has_sql || outline.is_some() {
            self.check_virtual_topic(&decision, outline.as_ref());
        }
        if decision.effective == Materialized::Flink && !has_sql {
            let message = format!("model '{}' is materialized as flink but has no SQL", model.name);
            self.findings.push(model.origin.mark("materialized", Diagnostic::new(Code::E119CompileFailed, message)));
        }
        let virtual_topic = decision.effective == Materialized::VirtualTopic;
        let filter = decision.filter.filter(|_| virtual_topic).zip(sql.as_deref());
        let (process, output) = destination(model, decision.effective, has_sql);
        ResolvedModel {
            name: model.name.clone(),
            declaration,
            filter: filter.map(|(span, sql)| span.of(sql).to_owned()),
            sql,
            calls,
            dependencies,
            materialized: decision.effective,
            inferred: decision.inferred,
            process,
            output,
            gateway_input: None,
            connector_inputs: Vec::new(),
        }
    }

    fn dependencies(&mut self, calls: &[Call]) -> Vec<Reference> {
        let model = self.model;
        if model.sql.is_none() && model.macro_name.is_none() {
            let from = model.from.iter().flatten();
            for (index, reference) in from.clone().enumerate() {
                let field = format!("from.{index}");
                self.check_reference(reference, false, |finding| model.origin.mark(&field, finding));
            }
            return distinct(from.cloned());
        }
        for call in calls {
            let place = |finding| at_sql(model, call.name_span, finding);
            self.check_reference(&reference(call), true, place);
        }
        let of_kind = |kind| calls.iter().filter(move |call| call.kind == kind).map(reference);
        distinct(of_kind(CallKind::Source).chain(of_kind(CallKind::Ref)))
    }

    fn check_reference(&mut self, reference: &Reference, in_sql: bool, place: impl Fn(Diagnostic) -> Diagnostic) {
        let finding = match reference {
            Reference::Source(name) if self.names.source(name).is_none() => {
                Diagnostic::new(Code::E101SourceNotFound, format!("Source '{name}' not found"))
                    .suggest_opt(self.names.meant(reference, in_sql))
            }
            Reference::Model(name) if *name == self.model.name => {
                let message = format!("Dependency cycle: {name} -> {name}");
                Diagnostic::new(Code::E104CycleDetected, message).suggest("A model cannot read its own output.")
            }
            Reference::Model(name) if self.names.model(name).is_none() => {
                Diagnostic::new(Code::E102ModelNotFound, format!("Model '{name}' not found"))
                    .suggest_opt(self.names.meant(reference, in_sql))
            }
            Reference::Source(_) | Reference::Model(_) => return,
        };
        self.findings.push(place(finding));
    }

    /// The executor's rules, checked at load too; here for projects that were not loaded from files.
    fn check_executor(&mut self) {
        let model = self.model;
        let Some(executor) = model.executor else { return };
        let kafka_streams = executor == Executor::KafkaStreams;
        let mut refuse = |code, field: &str, message: String| {
            self.findings.push(model.origin.mark(field, Diagnostic::new(code, message)));
        };
        let word = match executor {
            Executor::Flink => "flink",
            Executor::KafkaStreams => "kafka_streams",
        };
        if model.sql.is_none() && model.macro_name.is_none() {
            refuse(Code::E501ParseError, "executor", format!("executor {word} needs sql or macro"));
        }
        let allowed = match model.materialized {
            None | Some(Materialized::Topic) => true,
            Some(Materialized::Flink) => !kafka_streams,
            Some(Materialized::VirtualTopic | Materialized::Sink) => false,
        };
        if !allowed {
            refuse(Code::E501ParseError, "materialized", format!("executor {word} does not go with this materialized"));
        }
        let runner_only = [
            ("flink", model.flink.is_some()),
            ("flink_cluster", model.flink_cluster.is_some()),
            ("connect_cluster", model.connect_cluster.is_some()),
            ("key", model.key.is_some()),
            ("primary_key", model.primary_key.is_some()),
            ("schema", model.schema.is_some()),
            ("security", model.security.is_some()),
            ("ml_outputs", model.ml_outputs.is_some()),
            ("from", model.from.is_some()),
        ];
        let both = [("gateway", model.gateway.is_some()), ("sink", model.sink.is_some())];
        for (field, _) in runner_only.iter().filter(|_| kafka_streams).chain(&both).filter(|(_, present)| *present) {
            refuse(Code::E501ParseError, field, format!("executor {word} does not go with `{field}`"));
        }
        if kafka_streams && self.project.runtime.kafka_streams.is_none() {
            let message = format!("model '{}' runs on Kafka Streams, but the runtime has no kafka_streams", model.name);
            refuse(Code::E222KafkaStreamsRequired, "executor", message);
        }
    }

    fn check_virtual_topic(&mut self, decision: &Decision, outline: Option<&Outline<'_>>) {
        let model = self.model;
        if decision.effective != Materialized::VirtualTopic {
            return;
        }
        if let (Some(obstacle), Some(outline)) = (&decision.obstacle, outline) {
            let part = outline.text().get(obstacle.span.start..obstacle.span.end).unwrap_or_default();
            let part: String = part.chars().take(60).collect();
            let message = format!("Gateway cannot run the SQL of virtual topic '{}': {}", model.name, obstacle.what);
            let finding = Diagnostic::new(Code::E220GatewaySqlUnsupported, message)
                .explain(format!("The obstacle is `{part}`."))
                .suggest("Use `SELECT *` with a simple WHERE, or `materialized: flink`.");
            self.findings.push(at_sql(model, obstacle.span, finding));
        }
        let masked = model.security.as_ref().and_then(|security| security.masks().next());
        if let Some((index, column, _)) = masked {
            let message = format!("virtual topic '{}' cannot mask column '{column}'", model.name);
            let finding = Diagnostic::new(Code::E219MaskUnsupported, message)
                .suggest("Mask in a Flink model or in a sink; Gateway filters only.");
            self.findings.push(model.origin.mark(&format!("security.policies.{index}"), finding));
        }
    }
}

/// Effective materialization and what led to it.
struct Decision {
    effective: Materialized,
    inferred: Materialized,
    /// What Gateway cannot run, when a virtual topic was asked for or inferred.
    obstacle: Option<Obstacle>,
    filter: Option<Span>,
}

impl Decision {
    fn of(model: &Model, has_sql: bool, outline: Option<&Outline<'_>>, runtime: &Runtime) -> Self {
        let alias_declared = model.gateway.as_ref().is_some_and(|gateway| gateway.virtual_topic.is_some());
        let inferred = match (model.executor, model.materialized) {
            (Some(Executor::KafkaStreams), _) => Materialized::Topic,
            (Some(Executor::Flink), None) => Materialized::Flink,
            (Some(Executor::Flink) | None, Some(written)) => written,
            (None, None) if model.from.is_some() && !has_sql => Materialized::Sink,
            (None, None) if alias_declared => Materialized::VirtualTopic,
            (None, None) if !has_sql => Materialized::Topic,
            (None, None) => match outline {
                None => Materialized::Flink,
                Some(outline) if outline.stateful().is_some() => Materialized::Flink,
                Some(outline) if outline.is_plain_copy() => Materialized::Topic,
                Some(_) => Materialized::VirtualTopic,
            },
        };
        if inferred != Materialized::VirtualTopic {
            return Self { effective: inferred, inferred, obstacle: None, filter: None };
        }
        let explicit = alias_declared || model.materialized == Some(Materialized::VirtualTopic);
        let (filter, obstacle) = match outline.map(Outline::gateway_filter) {
            None => (None, None),
            Some(Ok(filter)) => (filter, None),
            Some(Err(obstacle)) => (None, Some(obstacle)),
        };
        let to_flink = !explicit && (runtime.gateway.is_none() || (obstacle.is_some() && runtime.flink.is_some()));
        let effective = if to_flink { Materialized::Flink } else { Materialized::VirtualTopic };
        Self { effective, inferred, obstacle, filter }
    }
}

fn destination(model: &Model, effective: Materialized, has_sql: bool) -> (Option<Process>, Option<Output>) {
    let topic = || Some(Output::Kafka(model.topic_name().to_owned()));
    match effective {
        Materialized::Topic if !has_sql => (None, topic()),
        Materialized::Topic => match model.executor {
            Some(Executor::KafkaStreams) => (Some(Process::KafkaStreams), topic()),
            Some(Executor::Flink) | None => (Some(Process::Flink), topic()),
        },
        Materialized::Flink => (Some(Process::Flink), topic()),
        Materialized::VirtualTopic => (Some(Process::Gateway), Some(Output::Gateway(model.alias().to_owned()))),
        Materialized::Sink => (Some(Process::Connect), None),
    }
}

/// Inputs of rules and connectors need every model's output first. A sink among them has none and is left out.
fn connect_inputs(names: &Names<'_>, models: &mut [ResolvedModel]) {
    let outputs: BTreeMap<String, Option<Output>> =
        models.iter().map(|model| (model.name.clone(), model.output.clone())).collect();
    for model in models {
        let wanted = matches!(model.materialized, Materialized::VirtualTopic | Materialized::Sink);
        if !wanted {
            continue;
        }
        let topics = model.dependencies.iter().filter_map(|dependency| match dependency {
            Reference::Source(name) => names.source(name).map(|source| source.topic.clone()),
            Reference::Model(name) => outputs.get(name)?.as_ref().map(|output| output.name().to_owned()),
        });
        if model.materialized == Materialized::Sink {
            model.connector_inputs = topics.collect();
        } else {
            model.gateway_input = topics.take(1).next();
        }
    }
}

fn reference(call: &Call) -> Reference {
    match call.kind {
        CallKind::Source => Reference::Source(call.name.clone()),
        CallKind::Ref => Reference::Model(call.name.clone()),
    }
}

fn calls(outline: &Outline<'_>) -> Vec<Call> {
    let found = outline.tokens().iter().filter_map(|token| match token.kind {
        TokenKind::Call(kind) => Some(sql::lex::call_of(outline.text(), token.span, kind)),
        TokenKind::Word
        | TokenKind::QuotedIdentifier
        | TokenKind::String
        | TokenKind::Number
        | TokenKind::Comment
        | TokenKind::Hint
        | TokenKind::Symbol => None,
    });
    found.collect()
}

/// A finding of the SQL layers at its place in the user's file, or at the macro whose text it is in.
pub fn sql_finding(model: &Model, error: &SqlError) -> Diagnostic {
    let span = Span::new(error.offset, error.offset + error.width);
    let message = match &model.macro_name {
        Some(name) => format!("the SQL that macro '{name}' gives model '{}': {}", model.name, error.message),
        None => format!("the SQL of model '{}': {}", model.name, error.message),
    };
    at_sql(model, span, Diagnostic::new(error.code(), message))
}

/// Places a finding at a span of the model's SQL; rendered SQL has no place but its macro's name.
pub fn at_sql(model: &Model, span: Span, finding: Diagnostic) -> Diagnostic {
    if model.macro_name.is_some() {
        return model.origin.mark("macro", finding);
    }
    let mut finding = finding.path(model.origin.path("sql"));
    if let Some((location, excerpt)) = model.origin.in_text("sql", span.start, span.len()) {
        finding.location = Some(location);
        finding.excerpt = excerpt;
    }
    finding
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
