//! What is no declaration: the settings of the project file, and the file of an environment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::EnvironmentInput;
use super::declared::{Kind, Part, declarations, finish};
use super::reader::{Reader, slashed};
use crate::codes::{Code, Diagnostic, Location};
use crate::project::check::Checker;
use crate::project::decode::{self, Findings};
use crate::project::env::{self, Selected};
use crate::project::fields::ROOT;
use crate::project::model::{self, Environment, RuntimeDocument};
use crate::project::shape::Shape;
use crate::project::source::Source;
use crate::project::value::Node;

const PROJECT_FILES: [&str; 2] = ["stream_project.yml", "stream_project.yaml"];

#[derive(Default)]
pub(super) struct Root {
    pub part: Part,
    pub name: String,
    pub version: Option<String>,
    pub description: Option<String>,
    pub environment: Option<Environment>,
    pub runtime: Option<(model::Runtime, RuntimeDocument)>,
    pub unset: BTreeSet<String>,
    pub deployment_state: Option<model::DeploymentState>,
    pub defaults: model::Defaults,
    pub rules: model::Rules,
    pub connector_removals: Vec<model::ConnectorRemoval>,
    pub gateway_rule_removals: Vec<model::GatewayRuleRemoval>,
    pub connections: BTreeMap<String, model::Connection>,
}

pub(super) fn root_file(
    reader: &Reader<'_>,
    selected: Option<&Selected>,
    variables: Option<&BTreeMap<String, String>>,
    input: &EnvironmentInput,
) -> Result<Root, Vec<Diagnostic>> {
    let present: Vec<&str> = PROJECT_FILES.into_iter().filter(|file| reader.fs.exists(Path::new(file))).collect();
    let file = match present.as_slice() {
        [file] => *file,
        [] => {
            return Err(vec![
                Diagnostic::new(Code::E501ParseError, "there is no 'stream_project.yml' in this directory")
                    .at(Location::named(PROJECT_FILES[0]))
                    .suggest("change to the project's directory, name it with '--project-dir', or create one with 'streamt init'"),
            ]);
        }
        _ => {
            return Err(vec![
                Diagnostic::new(Code::E501ParseError, "both 'stream_project.yml' and 'stream_project.yaml' exist")
                    .at(Location::named(PROJECT_FILES[1]))
                    .suggest("keep one of them"),
            ]);
        }
    };
    let Some((source, tree)) = reader.tree(Path::new(file))? else {
        return Err(vec![
            Diagnostic::new(Code::E501ParseError, format!("'{file}' is not a file"))
                .at(Location::named(file))
                .suggest("replace it by a file"),
        ]);
    };
    let mut findings = Findings::new(source.clone());
    let mut root = Root::default();
    let multi = matches!(selected, Some(Selected::Named { .. }));

    let mut checker = Checker::new(&source, Code::E501ParseError);
    let required: &[&str] = if selected == Some(&Selected::Single) { &["project", "runtime"] } else { &["project"] };
    checker.check_root(&tree, &ROOT, required);
    let mut sound = BTreeSet::new();
    const SETTINGS: [&str; 7] =
        ["apiVersion", "project", "deployment_state", "defaults", "rules", "lifecycle", "connections"];
    for name in SETTINGS {
        let shape = ROOT.field(name).map_or(Shape::Any, |field| field.shape);
        if let Some(node) = tree.get(name)
            && checker.check_at(&[name], node, shape)
        {
            sound.insert(name);
        }
    }
    findings.errors.extend(checker.into_errors());
    let section = |name: &'static str| tree.get(name).filter(|_| sound.contains(name));

    if let Some(project) = section("project") {
        let text = |key: &str| project.get(key).and_then(Node::as_str).map(str::to_owned);
        root.name = text("name").unwrap_or_default();
        root.version = text("version");
        root.description = text("description");
    }
    root.deployment_state = section("deployment_state")
        .map(|node| decode::deployment_state(Some(node), Code::E501ParseError, &mut findings));
    root.defaults = decode::defaults(section("defaults"));
    root.rules = decode::rules(section("rules"), &mut findings);
    (root.connector_removals, root.gateway_rule_removals) = decode::lifecycle(section("lifecycle"), &mut findings);
    root.connections = decode::connections(section("connections"), &mut findings);

    root_notices(&source, &tree, multi, &mut findings);
    if !multi && let Some(variables) = variables {
        (root.runtime, root.unset) = bind_runtime(reader, &tree, Code::E501ParseError, variables, input, &mut findings);
    }
    let mut part = Part::default();
    for (kind, name) in [
        (Kind::Source, "sources"),
        (Kind::Model, "models"),
        (Kind::Test, "tests"),
        (Kind::Exposure, "exposures"),
        (Kind::Udf, "udfs"),
    ] {
        declarations(&tree, kind, name, &mut part, &mut findings);
    }
    long_ids(&root, &mut findings);
    finish(&mut part, findings);
    root.part = part;
    Ok(root)
}

/// W219, W220, W221.
fn root_notices(source: &Arc<Source>, tree: &Node, multi: bool, findings: &mut Findings) {
    if tree.entry("apiVersion").is_none() {
        findings.warnings.push(
            Diagnostic::new(Code::W219ApiVersionMissing, "'apiVersion' is not set; 'streamt.dev/v1alpha1' is assumed")
                .at(source.location(1, 1))
                .suggest("add 'apiVersion: streamt.dev/v1alpha1' as the first line"),
        );
    }
    let mut notice = |key: &str, code, message: &str, hint: &str| {
        if let Some(entry) = tree.entry(key) {
            let mut diagnostic =
                Diagnostic::new(code, message).at(source.location(entry.line, entry.column)).path(key).suggest(hint);
            diagnostic.excerpt = source.excerpt(entry.line, entry.column, key.len());
            findings.warnings.push(diagnostic);
        }
    };
    if multi {
        notice(
            "runtime",
            Code::W220ProjectRuntimeIgnored,
            "'runtime' of the project file is ignored: every environment has its own",
            "remove it; 'environments/<name>.yml' holds the runtime",
        );
    }
    notice(
        "environments",
        Code::W221EnvironmentsKeyIgnored,
        "'environments' is ignored: environments are the files of the directory 'environments'",
        "move each environment to 'environments/<name>.yml'",
    );
}

/// The resource id of a removal must fit 512 characters.
fn long_ids(root: &Root, findings: &mut Findings) {
    for (index, removal) in root.connector_removals.iter().enumerate() {
        // The longest environment name stands in for the one that is bound later.
        let length =
            "streamt:////connector/".len() + root.name.chars().count() + 128 + removal.logical_owner.chars().count();
        if length > 512 {
            let origin = findings.origin("lifecycle.connector_removals", index.to_string());
            let message = "the resource id of this removal is longer than 512 characters";
            findings.errors.push(origin.mark(
                "logical_owner",
                Diagnostic::new(Code::E501ParseError, message).suggest("shorten the project's name or the owner"),
            ));
        }
    }
}

fn bind_runtime(
    reader: &Reader<'_>,
    tree: &Node,
    code: Code,
    variables: &BTreeMap<String, String>,
    input: &EnvironmentInput,
    findings: &mut Findings,
) -> (Option<(model::Runtime, RuntimeDocument)>, BTreeSet<String>) {
    let Some(env::Bound { node, unset }) = env::runtime(tree, code, variables, input.unset, findings) else {
        return (None, BTreeSet::new());
    };
    let document = RuntimeDocument::new(node.to_json());
    if !unset.is_empty() {
        // Rules between fields, and files that they name, cannot be judged before the variables are set.
        let mut unjudged = Findings::new(findings.source.clone());
        return (Some((decode::runtime(&node, &mut unjudged), document)), unset);
    }
    let strict = input.variables.get("STREAMT_STRICT_SSL").is_some_and(|value| value == "1");
    decode::check_tls(reader.fs, &node, strict, findings);
    (Some((decode::runtime(&node, findings), document)), unset)
}

pub(super) struct Bound {
    pub environment: Environment,
    pub runtime: Option<(model::Runtime, RuntimeDocument)>,
    pub unset: BTreeSet<String>,
    pub deployment_state: Option<model::DeploymentState>,
    pub errors: Vec<Diagnostic>,
    pub warnings: Vec<Diagnostic>,
}

pub(super) fn environment_file(
    reader: &Reader<'_>,
    name: &str,
    file: &Path,
    variables: &BTreeMap<String, String>,
    input: &EnvironmentInput,
) -> Bound {
    let mut bound = Bound {
        environment: Environment::single(),
        runtime: None,
        unset: BTreeSet::new(),
        deployment_state: None,
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    let (source, tree) = match reader.tree(file) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => {
            let shown = slashed(file);
            bound.errors.push(env::unreadable(&shown, &std::io::Error::from(std::io::ErrorKind::NotFound)));
            return bound;
        }
        Err(errors) => {
            bound.errors = errors;
            return bound;
        }
    };
    let mut findings = Findings::new(source);
    bound.environment = env::file(name, &tree, &mut findings);
    if findings.errors.is_empty()
        && let Some(node) = tree.get("deployment_state")
    {
        bound.deployment_state = Some(decode::deployment_state(Some(node), Code::E503EnvironmentError, &mut findings));
    }
    (bound.runtime, bound.unset) =
        bind_runtime(reader, &tree, Code::E503EnvironmentError, variables, input, &mut findings);
    let mut part = Part::default();
    finish(&mut part, findings);
    bound.errors = part.errors;
    bound.warnings = part.warnings;
    bound
}
