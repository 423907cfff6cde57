//! Names that must not meet: declarations by name, artifacts by physical name.

use std::collections::HashMap;

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::project::Project;
use crate::project::model::TestType;
use crate::project::origin::Origin;

use super::artifact::{Artifacts, OwnerType, Ownership};
use super::context::Context;
use super::resolve::{Process, ResolvedModel};
use super::topics::has_condition;

/// E103 for a name twice within a kind, E111 for one shared by source, model and exposure. Each names the first place.
pub fn check_names(project: &Project) -> Diagnostics {
    let mut findings = Diagnostics::new();
    let sources = project.sources.iter().map(|item| ("source", item.name.as_str(), &item.origin));
    let models = project.models.iter().map(|item| ("model", item.name.as_str(), &item.origin));
    let exposures = project.exposures.iter().map(|item| ("exposure", item.name.as_str(), &item.origin));
    let tests = project.tests.iter().map(|item| ("test", item.name.as_str(), &item.origin));
    let udfs = project.udfs.iter().map(|item| ("function", item.name.as_str(), &item.origin));
    claim_names(sources.chain(models).chain(exposures), &mut findings);
    claim_names(tests, &mut findings);
    claim_names(udfs, &mut findings);
    findings
}

fn claim_names<'a>(
    declarations: impl Iterator<Item = (&'static str, &'a str, &'a Origin)>,
    findings: &mut Diagnostics,
) {
    let mut claimed: HashMap<&str, (&str, &Origin)> = HashMap::new();
    for (kind, name, origin) in declarations {
        let Some((first, earlier)) = claimed.get(name) else {
            claimed.insert(name, (kind, origin));
            continue;
        };
        let place = earlier.location().map_or_else(String::new, |place| format!(" at {place}"));
        let finding = if *first == kind {
            let message = match place.as_str() {
                "" => format!("Duplicate {kind} name '{name}'"),
                place => format!("Duplicate {kind} name '{name}': first declared{place}"),
            };
            Diagnostic::new(Code::E103DuplicateName, message).suggest("Rename one of the two")
        } else {
            let message = format!("'{name}' is the name of both the {first}{place} and this {kind}");
            Diagnostic::new(Code::E111NameCollision, message).suggest(format!("Rename the {first} or the {kind}"))
        };
        findings.push(origin.mark("name", finding));
    }
}

/// E111 for two artifacts of one kind with one physical name. A topic for tests never meets another: it is not added twice.
pub(super) fn check_artifacts(context: &mut Context<'_>, artifacts: &Artifacts, models: &[ResolvedModel]) {
    let project = context.project;
    let connect = project.runtime.connect.as_ref().and_then(|connect| connect.default.as_deref());
    let mut claims = Claims { claimed: HashMap::new() };
    let mut findings = Vec::new();
    {
        let mut claim = |what: &'static str, name: &str, field: &str, owner: &Ownership| {
            let origin = origin(context, owner);
            findings.extend(claims.claim(
                what,
                name,
                field,
                format!("{} '{}'", owner.owner_type.as_str(), owner.name),
                origin,
            ));
        };
        for schema in &artifacts.schemas {
            claim("schema subject", &schema.subject, "schema.subject", &schema.ownership);
        }
        for topic in &artifacts.topics {
            claim("topic", &topic.name, "topic.name", &topic.ownership);
        }
        for connector in &artifacts.connectors {
            let cluster = connector.cluster.as_deref().or(connect).unwrap_or_default();
            claim("connector", &format!("{cluster}/{}", connector.name), "name", &connector.ownership);
        }
        for rule in &artifacts.gateway_rules {
            claim("Gateway rule", &rule.name, "name", &rule.ownership);
            claim("Gateway alias", &rule.virtual_topic, "gateway.virtual_topic.name", &rule.ownership);
        }
    }
    for (model, job) in models.iter().filter_map(|model| Some((model, flink_job_name(model)?))) {
        let origin = context.names.model(&model.name).map(|model| &model.origin);
        findings.extend(claims.claim("Flink job", &job, "name", format!("model '{}'", model.name), origin));
    }
    let continuous = project.tests.iter().filter(|test| test.test_type == TestType::Continuous);
    for test in continuous.filter(|test| has_condition(&test.assertions)) {
        let (job, by) = (format!("test_{}", test.name), format!("test '{}'", test.name));
        findings.extend(claims.claim("Flink job", &job, "name", by, Some(&test.origin)));
    }
    context.findings.extend(findings);
}

/// The name of a model's Flink job.
pub(super) fn flink_job_name(model: &ResolvedModel) -> Option<String> {
    use crate::project::model::Materialized;
    if model.process != Some(Process::Flink) {
        return None;
    }
    Some(match model.materialized {
        Materialized::Topic => format!("{}_processor", model.name),
        Materialized::Flink | Materialized::VirtualTopic | Materialized::Sink => model.name.clone(),
    })
}

fn origin<'a>(context: &Context<'a>, owner: &Ownership) -> Option<&'a Origin> {
    match owner.owner_type {
        OwnerType::Model => context.names.model(&owner.name).map(|model| &model.origin),
        OwnerType::Source => context.names.source(&owner.name).map(|source| &source.origin),
    }
}

struct Claims {
    claimed: HashMap<(&'static str, String), String>,
}

impl Claims {
    fn claim(
        &mut self,
        what: &'static str,
        name: &str,
        field: &str,
        by: String,
        origin: Option<&Origin>,
    ) -> Option<Diagnostic> {
        let first = self.claimed.get(&(what, name.to_owned()));
        let Some(first) = first else {
            self.claimed.insert((what, name.to_owned()), by);
            return None;
        };
        let finding =
            Diagnostic::new(Code::E111NameCollision, format!("{by} and {first} both make the {what} '{name}'"));
        Some(match origin {
            Some(origin) => origin.mark(field, finding),
            None => finding,
        })
    }
}
