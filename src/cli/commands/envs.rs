//! `streamt envs`: the environments of a project, their policy and their runtime, secrets masked.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Map, Value, json};

use crate::cli::args::ProjectArgs;
use crate::cli::context::Context;
use crate::cli::doc::Doc;
use crate::cli::outcome::{CmdResult, Failure, Outcome, exit};
use crate::cli::project;
use crate::codes::{Code, Diagnostic, Diagnostics, suggest};
use crate::project::load::{LoadedEnvironments, Policies, environments};
use crate::project::{DiskFs, Loaded, Project, Unset, load_all, policies};

/// List the environments
#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    project: ProjectArgs,
}

/// Show one environment
#[derive(Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
}

/// Compare two environments
#[derive(Debug, Args)]
pub struct DiffArgs {
    #[command(flatten)]
    project: ProjectArgs,

    /// The one environment
    #[arg(value_name = "A")]
    a: String,

    /// The other environment
    #[arg(value_name = "B")]
    b: String,
}

const MASK: &str = "****";

/// Whether `envs` masks a value by its key.
fn is_masked(key: &str) -> bool {
    let key = key.to_lowercase();
    ["password", "secret", "key", "token", "credential"].iter().any(|word| key.contains(word))
}

fn masked(value: &Value, hidden: bool) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, part)| (key.clone(), masked(part, is_masked(key)))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| masked(item, hidden)).collect()),
        Value::String(_) if hidden => json!(MASK),
        Value::String(text) => json!(crate::codes::redact::redact_text(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn all(context: &Context, args: &ProjectArgs) -> Result<(DiskFs, LoadedEnvironments), Failure> {
    let fs = project::directory(context, args)?;
    let loaded = load_all(&fs, &context.variables, Unset::Kept)?;
    Ok((fs, loaded))
}

pub fn list(context: &Context, args: &ListArgs) -> CmdResult {
    let fs = project::directory(context, &args.project)?;
    let (mode, policies) = match policies(&fs)? {
        Some(policies) => {
            if policies.is_empty() {
                // E503: a directory without an environment.
                all(context, &args.project)?;
            }
            ("multi", policies)
        }
        None => {
            let (_, loaded) = all(context, &args.project)?;
            let policy = |loaded: Loaded| loaded.project.environment;
            ("single", loaded.into_iter().map(|(name, loaded)| (name, loaded.map(policy))).collect::<Policies>())
        }
    };
    let mut errors = Diagnostics::new();
    let mut text = Doc::new();
    let mut rows = Vec::new();
    for (name, policy) in policies {
        match policy {
            Ok(environment) => {
                rows.push(json!({
                    "name": name, "description": environment.description, "protected": environment.protected,
                    "reviewed_plan_required": environment.requires_reviewed_plan(),
                }));
                let marks = match (environment.protected, environment.requires_reviewed_plan()) {
                    (true, _) => " [protected]",
                    (false, true) => " [reviewed-plan]",
                    (false, false) => "",
                };
                text.line(format!("{name:<12} {}{marks}", environment.description).trim_end().to_owned());
            }
            Err(findings) => {
                let failure = Failure::from(findings);
                let message = failure.errors.iter().next().map(|error| error.message.clone()).unwrap_or_default();
                rows.push(json!({ "name": name, "error": crate::cli::sanitize::free_text(&message) }));
                text.line(format!("{name:<12} not readable"));
                project::merge(&mut errors, failure.errors);
            }
        }
    }
    let data = json!({ "mode": mode, "environments": rows });
    let outcome = Outcome::new(&data, text);
    if errors.is_empty() { Ok(outcome) } else { Err(outcome.fail(errors).exit(exit::FAILURE)) }
}

/// The named environment's project.
fn one(fs: &DiskFs, loaded: &mut LoadedEnvironments, name: &str) -> Result<Loaded, Failure> {
    let Some(names) = environments(fs)? else {
        return Err(Failure::new(
            Diagnostic::new(Code::E503EnvironmentError, "The project has no environments")
                .suggest("Add environments/<name>.yml to have several"),
        ));
    };
    match loaded.iter().position(|(known, _)| known == name) {
        Some(index) => Ok(loaded.swap_remove(index).1?),
        None => Err(Failure::new(
            Diagnostic::new(Code::E503EnvironmentError, format!("Environment '{name}' does not exist"))
                .suggest_opt(suggest::hint(name, "environment", names.iter().map(String::as_str))),
        )),
    }
}

fn safety(project: &Project) -> Value {
    let environment = &project.environment;
    json!({
        "confirm_apply": environment.confirm_apply, "allow_destructive": environment.allow_destructive,
        "forbid_deletion": environment.forbid_deletion,
        "require_reviewed_plan": environment.require_reviewed_plan, "require_remote_state": environment.require_remote_state,
        "reviewed_plan_max_age_minutes": environment.reviewed_plan_max_age_minutes,
    })
}

pub fn show(context: &Context, args: &ShowArgs) -> CmdResult {
    let (fs, mut loaded) = all(context, &args.project)?;
    let Loaded { project, unset, .. } = one(&fs, &mut loaded, &args.name)?;
    let environment = &project.environment;
    let mut data = json!({
        "name": environment.name, "description": environment.description, "protected": environment.protected,
        "reviewed_plan_required": environment.requires_reviewed_plan(),
        "runtime": masked(project.runtime_document.expose(), false), "safety": safety(&project),
    });
    if !unset.is_empty() {
        data["unset_variables"] = json!(unset);
    }
    let mut text = Doc::new();
    text.heading(format!("Environment {}", environment.name));
    let mut rows = BTreeMap::new();
    flatten("runtime", &data["runtime"], &mut rows);
    flatten("safety", &data["safety"], &mut rows);
    let mut lines = vec![
        ("description".to_owned(), environment.description.clone()),
        ("protected".to_owned(), environment.protected.to_string()),
    ];
    lines.extend(rows.into_iter().map(|(key, value)| (key, plain(&value))));
    text.pairs(2, lines);
    if !unset.is_empty() {
        text.blank().line(format!("Not set here: {}", unset.into_iter().collect::<Vec<_>>().join(", ")));
    }
    Ok(Outcome::new(&data, text))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn flatten(path: &str, value: &Value, into: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) => {
            for (key, part) in map {
                flatten(&if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, part, into);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            into.insert(path.to_owned(), value.clone());
        }
    }
}

/// Everything that two environments may differ in, unmasked.
fn facts(project: &Project) -> BTreeMap<String, Value> {
    let mut facts = BTreeMap::new();
    flatten("", project.runtime_document.expose(), &mut facts);
    flatten("safety", &safety(project), &mut facts);
    facts.insert("protected".to_owned(), json!(project.environment.protected));
    facts
}

pub fn diff(context: &Context, args: &DiffArgs) -> CmdResult {
    let (fs, mut loaded) = all(context, &args.project)?;
    let a = facts(&one(&fs, &mut loaded, &args.a)?.project);
    let b = match args.a == args.b {
        true => a.clone(),
        false => facts(&one(&fs, &mut loaded, &args.b)?.project),
    };
    let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let mut rows = Vec::new();
    let mut table = Vec::new();
    for key in keys.into_iter().filter(|key| a.get(*key) != b.get(*key)) {
        let hidden = key.rsplit('.').next().is_some_and(is_masked);
        let side = |facts: &BTreeMap<String, Value>| facts.get(key).map_or(Value::Null, |value| masked(value, hidden));
        let (left, right) = (side(&a), side(&b));
        let mut row = Map::new();
        row.insert("key".to_owned(), json!(key));
        row.insert(args.a.clone(), left.clone());
        row.insert(args.b.clone(), right.clone());
        if left == right {
            row.insert("differs".to_owned(), json!(true));
        }
        rows.push(Value::Object(row));
        table.push(vec![key.clone(), plain(&left), plain(&right)]);
    }
    let mut text = Doc::new();
    if table.is_empty() {
        text.line("No differences.");
    }
    text.table(&["KEY", &args.a, &args.b], table);
    Ok(Outcome::new(&json!({ "env_a": args.a, "env_b": args.b, "diffs": rows }), text))
}
