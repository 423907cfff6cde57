//! Pass 10: clusters, connections and key columns that are named.

use crate::codes::{Code, Diagnostic, Diagnostics, suggest};
use crate::project::model::{Materialized, Model};

use super::context::{Ctx, at_path};
use super::facts::Facts;

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    defaults(ctx, findings);
    for facts in &ctx.facts {
        flink_cluster(ctx, facts.model, findings);
        connect_cluster(ctx, facts, findings);
        connection(ctx, facts.model, findings);
        keys(facts, findings);
    }
    for test in &ctx.project.tests {
        if let Some(alias) = &test.flink_cluster
            && let Some(hint) = unknown(alias, flink_aliases(ctx))
        {
            let message = format!("Test '{}' names Flink cluster '{alias}', which is not defined", test.name);
            let diagnostic = Diagnostic::new(Code::E209InvalidClusterRef, message).suggest(hint);
            findings.push(test.origin.mark("flink_cluster", diagnostic));
        }
    }
}

fn flink_aliases<'a>(ctx: &Ctx<'a>) -> Vec<&'a str> {
    ctx.project.runtime.flink.iter().flat_map(|flink| flink.clusters.keys()).map(String::as_str).collect()
}

/// None = the alias exists; else what to do.
fn unknown(alias: &str, aliases: Vec<&str>) -> Option<String> {
    if aliases.contains(&alias) {
        return None;
    }
    let hint = suggest::hint(alias, "cluster", aliases);
    Some(hint.unwrap_or_else(|| "Define it in the runtime of this environment".to_owned()))
}

/// The defaults of the runtime itself are the loader's to check: they stand beside what they name.
fn defaults(ctx: &Ctx, findings: &mut Diagnostics) {
    let named = [
        ("defaults.models.cluster", ctx.project.defaults.model_cluster.as_deref()),
        ("defaults.tests.flink_cluster", ctx.project.defaults.test_flink_cluster.as_deref()),
    ];
    for (path, alias) in named {
        let Some(alias) = alias else { continue };
        if let Some(hint) = unknown(alias, flink_aliases(ctx)) {
            let message = format!("{path} names Flink cluster '{alias}', which is not defined");
            findings.push(at_path(Code::E209InvalidClusterRef, path, message).suggest(hint));
        }
    }
}

fn flink_cluster(ctx: &Ctx, model: &Model, findings: &mut Diagnostics) {
    if let Some(alias) = &model.flink_cluster
        && let Some(hint) = unknown(alias, flink_aliases(ctx))
    {
        let message = format!("Model '{}' names Flink cluster '{alias}', which is not defined", model.name);
        let diagnostic = Diagnostic::new(Code::E209InvalidClusterRef, message).suggest(hint);
        findings.push(model.origin.mark("flink_cluster", diagnostic));
    }
}

/// Connectors run on the default cluster only.
fn connect_cluster(ctx: &Ctx, facts: &Facts, findings: &mut Diagnostics) {
    let model = facts.model;
    let Some(connect) = &ctx.project.runtime.connect else { return };
    let default = connect.default.as_deref();
    let (field, message, suggestion) = match (&model.connect_cluster, default) {
        (Some(alias), _) if !connect.clusters.contains_key(alias) => (
            "connect_cluster",
            format!("Model '{}' names Connect cluster '{alias}', which is not defined", model.name),
            suggest::hint(alias, "cluster", connect.clusters.keys().map(String::as_str)),
        ),
        (Some(alias), Some(default)) if alias != default => (
            "connect_cluster",
            format!(
                "Model '{}' names Connect cluster '{alias}'; connectors run on the default, '{default}'",
                model.name
            ),
            Some(format!("Remove connect_cluster, or make '{alias}' runtime.connect.default")),
        ),
        (_, None) if facts.materialized() == Materialized::Sink => (
            if model.connect_cluster.is_some() { "connect_cluster" } else { "sink" },
            format!("Model '{}' is a sink, and runtime.connect has no default cluster", model.name),
            Some("Set runtime.connect.default".to_owned()),
        ),
        (Some(_) | None, Some(_) | None) => return,
    };
    findings
        .push(model.origin.mark(field, Diagnostic::new(Code::E209InvalidClusterRef, message)).suggest_opt(suggestion));
}

fn connection(ctx: &Ctx, model: &Model, findings: &mut Diagnostics) {
    let Some(name) = model.sink.as_ref().and_then(|sink| sink.connection.as_ref()) else { return };
    if ctx.project.connections.contains_key(name) {
        return;
    }
    let message = format!("Model '{}' names connection '{name}', which is not declared", model.name);
    let names = ctx.project.connections.keys().map(String::as_str);
    findings.push(
        model
            .origin
            .mark("sink.connection", Diagnostic::new(Code::E210InvalidConnectionRef, message))
            .suggest_opt(suggest::hint(name, "connection", names)),
    );
}

/// Keys are output columns: those of the SELECT list when all of it has names, else the declared ones, else unknown.
fn keys(facts: &Facts, findings: &mut Diagnostics) {
    let model = facts.model;
    let declared: Vec<&str> = model.columns.iter().map(|column| column.name.as_str()).collect();
    let known = facts.output_names().unwrap_or(declared);
    if known.is_empty() {
        return;
    }
    let key = model.key.iter().map(|column| ("key".to_owned(), column));
    let primary = model.primary_key.iter().flatten().enumerate();
    let primary = primary.map(|(index, column)| (format!("primary_key.{index}"), column));
    for (field, column) in key.chain(primary) {
        if known.contains(&column.as_str()) {
            continue;
        }
        let message = format!("Model '{}' has no output column '{column}', which is a key", model.name);
        findings.push(
            model.origin.mark(&field, Diagnostic::new(Code::E211InvalidKeyColumn, message)).suggest_opt(suggest::hint(
                column,
                "column",
                known.iter().copied(),
            )),
        );
    }
}
