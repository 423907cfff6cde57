//! From a directory to a `Project`: every file is read, parsed, checked and decoded on its own, side by side, and the results are
//! joined in a fixed order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::codes::{Code, Diagnostic, Diagnostics, Location};

use super::check::{Checker, MAX_ERRORS};
use super::decode::{self, Findings};
use super::env::{self, Mode, Selected};
use super::fields::{self, EXPOSURE, MODEL, ROOT, SOURCE, TEST, UDF};
use super::fs::ProjectFs;
use super::model::{Environment, Exposure, Model, Project, RuntimeDocument, Source as SourceDeclaration, Test, Udf};
use super::parse;
use super::shape::{Record, Shape};
use super::source::{Recent, Source};
use super::value::Node;

const MAX_FILE: usize = 4 << 20;
const MAX_PROJECT: usize = 64 << 20;
const PROJECT_FILES: [&str; 2] = ["stream_project.yml", "stream_project.yaml"];
const MACRO_SUFFIX: &str = ".sql.j2";

/// What the process gives the loader.
#[derive(Clone, Default)]
pub struct EnvironmentInput {
    /// The process environment.
    pub variables: BTreeMap<String, String>,
    /// `--env`; it beats `STREAMT_ENV` of `variables`.
    pub requested: Option<String>,
    pub unset: Unset,
}

/// What becomes of a `${NAME}` in `runtime` that is not set and has no default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unset {
    /// E502.
    #[default]
    Refused,
    /// The value stays as written and counts as right: for looking at an environment from a place that lacks its secrets.
    Kept,
}

/// Names alone: variables hold secrets.
impl std::fmt::Debug for EnvironmentInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnvironmentInput")
            .field("variables", &self.variables.keys())
            .field("requested", &self.requested)
            .field("unset", &self.unset)
            .finish()
    }
}

/// A project and the warnings of loading it.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub project: Project,
    pub warnings: Diagnostics,
    /// Variables that `runtime` needs and that are not set; empty unless [`Unset::Kept`].
    pub unset: BTreeSet<String>,
}

/// What loading each environment gave, by name.
pub type LoadedEnvironments = Vec<(String, Result<Loaded, Diagnostics>)>;

/// What the file of each environment says of it, by name.
pub type Policies = Vec<(String, Result<Environment, Diagnostics>)>;

/// The names of a project's environments, sorted; none when it has no directory `environments`.
pub fn environments(fs: &dyn ProjectFs) -> Result<Option<Vec<String>>, Diagnostic> {
    match env::mode(fs)? {
        Mode::Single => Ok(None),
        Mode::Multi(files) => Ok(Some(files.into_keys().collect())),
    }
}

/// Every environment in name order, each with variables of its own; one entry named `default` in a project without environments.
pub fn load_all(
    fs: &dyn ProjectFs,
    variables: &BTreeMap<String, String>,
    unset: Unset,
) -> Result<LoadedEnvironments, Diagnostic> {
    let input = |requested| EnvironmentInput { variables: variables.clone(), requested, unset };
    Ok(match environments(fs)? {
        None => vec![("default".to_owned(), load(fs, &input(None)))],
        Some(names) if names.is_empty() => return env::select(&env::mode(fs)?, None, None).map(|_| Vec::new()),
        Some(names) => names.into_iter().map(|name| (name.clone(), load(fs, &input(Some(name))))).collect(),
    })
}

/// The policies of a project's environments by name, read from their files alone: no variable, no declaration. None in a project
/// without a directory `environments`.
pub fn policies(fs: &dyn ProjectFs) -> Result<Option<Policies>, Diagnostic> {
    let Mode::Multi(files) = env::mode(fs)? else { return Ok(None) };
    let reader = Reader { fs, total: AtomicUsize::new(0), recent: Arc::default() };
    let policy = |name: &str, file: &Path| {
        let unread = || Diagnostics::from(env::unreadable(&slashed(file), &std::io::ErrorKind::NotFound.into()));
        let (source, tree) = reader.tree(file).map_err(Diagnostics::from)?.ok_or_else(unread)?;
        let mut findings = Findings::new(source);
        let environment = env::file(name, &tree, &mut findings);
        if findings.errors.is_empty() { Ok(environment) } else { Err(Diagnostics::from(findings.errors)) }
    };
    Ok(Some(files.iter().map(|(name, file)| (name.clone(), policy(name, file))).collect()))
}

/// Loads the project for one environment. All errors of all files are returned together, in file order (E501, E502, E503).
pub fn load(fs: &dyn ProjectFs, input: &EnvironmentInput) -> Result<Loaded, Diagnostics> {
    let reader = Reader { fs, total: AtomicUsize::new(0), recent: Arc::default() };
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());

    let selected = select(fs, input, &mut errors, &mut warnings);
    let variables = selected
        .as_ref()
        .and_then(|selected| env::variables(fs, selected, &input.variables).map_err(|found| errors.extend(found)).ok());
    let root = root_file(&reader, selected.as_ref(), variables.as_ref(), input).map_err(Diagnostics::from);
    let bound = match (&selected, &variables) {
        (Some(Selected::Named { name, file }), Some(variables)) => {
            Some(environment_file(&reader, name, file, variables, input))
        }
        _ => None,
    };
    let files = declaration_files(fs, &mut errors, &mut warnings);
    let parts: Vec<Part> = files.par_iter().map(|(kind, path)| declaration_file(&reader, *kind, path)).collect();
    let macros = macros(&reader, &mut errors);
    if reader.total.load(Ordering::Relaxed) > MAX_PROJECT {
        errors.push(
            Diagnostic::new(Code::E501ParseError, "the files of the project hold more than 64 MiB")
                .at(Location::named("."))
                .suggest("split the project, or move data out of it"),
        );
    }

    let mut root = match root {
        Ok(root) => root,
        Err(found) => {
            errors.extend(found.into_vec());
            Root::default()
        }
    };
    errors.append(&mut root.part.errors);
    warnings.append(&mut root.part.warnings);
    if let Some(bound) = bound {
        let Bound { environment, runtime, unset, deployment_state, errors: found, warnings: told } = bound;
        errors.extend(found);
        warnings.extend(told);
        root.environment = Some(environment);
        root.runtime = runtime;
        root.unset = unset;
        if deployment_state.is_some() {
            root.deployment_state = deployment_state;
        }
    }
    let mut sections = root.part;
    sections.models.reserve_exact(parts.iter().map(|part| part.models.len()).sum());
    sections.sources.reserve_exact(parts.iter().map(|part| part.sources.len()).sum());
    for mut part in parts {
        errors.append(&mut part.errors);
        warnings.append(&mut part.warnings);
        sections.sources.append(&mut part.sources);
        sections.models.append(&mut part.models);
        sections.tests.append(&mut part.tests);
        sections.exposures.append(&mut part.exposures);
    }
    if !errors.is_empty() {
        return Err(Diagnostics::from(errors));
    }
    let Some((runtime, runtime_document)) = root.runtime else {
        return Err(Diagnostics::from(
            Diagnostic::new(Code::E501ParseError, "'runtime' is required").suggest("add 'runtime:'"),
        ));
    };
    let deployment_state = root.deployment_state.unwrap_or_else(decode::local_state);
    let state_variables = variables
        .as_ref()
        .map(|variables| super::model::StateVariables::of(&deployment_state, variables, &input.variables))
        .unwrap_or_default();
    let project = Project {
        root: fs.root().to_path_buf(),
        name: root.name,
        version: root.version,
        description: root.description,
        environment: root.environment.unwrap_or_else(Environment::single),
        runtime,
        runtime_document,
        deployment_state,
        state_variables,
        defaults: root.defaults,
        rules: root.rules,
        connector_removals: root.connector_removals,
        gateway_rule_removals: root.gateway_rule_removals,
        connections: root.connections,
        sources: sections.sources,
        models: sections.models,
        tests: sections.tests,
        exposures: sections.exposures,
        udfs: sections.udfs,
        macros,
    };
    Ok(Loaded { project, warnings: Diagnostics::from(warnings), unset: root.unset })
}

fn select(
    fs: &dyn ProjectFs,
    input: &EnvironmentInput,
    errors: &mut Vec<Diagnostic>,
    warnings: &mut Vec<Diagnostic>,
) -> Option<Selected> {
    let variable = input.variables.get("STREAMT_ENV").filter(|name| !name.is_empty()).map(String::as_str);
    let mode = env::mode(fs).map_err(|error| errors.push(error)).ok()?;
    let (selected, warning) =
        env::select(&mode, input.requested.as_deref(), variable).map_err(|error| errors.push(error)).ok()?;
    warnings.extend(warning);
    Some(selected)
}

struct Reader<'a> {
    fs: &'a dyn ProjectFs,
    total: AtomicUsize,
    recent: Arc<Recent>,
}

impl Reader<'_> {
    /// None = no such file.
    fn text(&self, path: &Path) -> Result<Option<String>, Diagnostic> {
        let shown = slashed(path);
        let refuse = |message: &str, hint: &str| {
            Err(Diagnostic::new(Code::E501ParseError, message).at(Location::named(shown.clone())).suggest(hint))
        };
        let bytes = match self.fs.read(path, MAX_FILE) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(error) => return Err(env::unreadable(&shown, &error)),
        };
        if bytes.len() > MAX_FILE {
            return refuse("the file is larger than 4 MiB", "split it into several files");
        }
        if self.total.fetch_add(bytes.len(), Ordering::Relaxed) > MAX_PROJECT {
            return Ok(Some(String::new()));
        }
        let bytes = match bytes.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) => rest.to_vec(),
            None => bytes,
        };
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(error) => {
                let line =
                    error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
                Err(Diagnostic::new(Code::E501ParseError, "the file is not UTF-8")
                    .at(Location::new(shown, line as u32 + 1, 1))
                    .suggest("save it as UTF-8"))
            }
        }
    }

    fn tree(&self, path: &Path) -> Result<Option<(Arc<Source>, Node)>, Vec<Diagnostic>> {
        let Some(text) = self.text(path).map_err(|error| vec![error])? else { return Ok(None) };
        let parsed = parse::parse(&text);
        let source = Arc::new(Source::new(slashed(path), text, false).among(&self.recent));
        match parsed {
            Ok(tree) => Ok(Some((source, tree))),
            Err(problems) => Err(problems
                .into_iter()
                .take(MAX_ERRORS)
                .map(|problem| {
                    let mut diagnostic = Diagnostic::new(Code::E501ParseError, problem.message)
                        .at(source.location(problem.line, problem.column))
                        .suggest_opt(problem.suggestion);
                    if !problem.path.is_empty() {
                        diagnostic = diagnostic.path(problem.path.join(" → "));
                    }
                    diagnostic.excerpt = source.excerpt(problem.line, problem.column, problem.width as usize);
                    diagnostic
                })
                .collect()),
        }
    }
}

fn slashed(path: &Path) -> String {
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

/// The declarations of one file.
#[derive(Default)]
struct Part {
    sources: Vec<SourceDeclaration>,
    models: Vec<Model>,
    tests: Vec<Test>,
    exposures: Vec<Exposure>,
    udfs: Vec<Udf>,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl Part {
    fn failed(errors: Vec<Diagnostic>) -> Self {
        Self { errors, ..Self::default() }
    }
}

#[derive(Default)]
struct Root {
    part: Part,
    name: String,
    version: Option<String>,
    description: Option<String>,
    environment: Option<Environment>,
    runtime: Option<(super::model::Runtime, RuntimeDocument)>,
    unset: BTreeSet<String>,
    deployment_state: Option<super::model::DeploymentState>,
    defaults: super::model::Defaults,
    rules: super::model::Rules,
    connector_removals: Vec<super::model::ConnectorRemoval>,
    gateway_rule_removals: Vec<super::model::GatewayRuleRemoval>,
    connections: BTreeMap<String, super::model::Connection>,
}

fn root_file(
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
    let mut sound = std::collections::BTreeSet::new();
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
) -> (Option<(super::model::Runtime, RuntimeDocument)>, BTreeSet<String>) {
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

struct Bound {
    environment: Environment,
    runtime: Option<(super::model::Runtime, RuntimeDocument)>,
    unset: BTreeSet<String>,
    deployment_state: Option<super::model::DeploymentState>,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

fn environment_file(
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Source,
    Model,
    Test,
    Exposure,
    Udf,
}

impl Kind {
    const DIRECTORIES: [(Self, &'static str); 4] =
        [(Self::Source, "sources"), (Self::Model, "models"), (Self::Test, "tests"), (Self::Exposure, "exposures")];

    const fn section(self) -> &'static str {
        match self {
            Self::Source => "sources",
            Self::Model => "models",
            Self::Test => "tests",
            Self::Exposure => "exposures",
            Self::Udf => "udfs",
        }
    }

    const fn record(self) -> &'static Record {
        match self {
            Self::Source => &SOURCE,
            Self::Model => &MODEL,
            Self::Test => &TEST,
            Self::Exposure => &EXPOSURE,
            Self::Udf => &UDF,
        }
    }

    /// The closed root of a file of this kind's directory.
    const fn file(self) -> &'static Record {
        match self {
            Self::Source => &fields::SOURCES_FILE,
            Self::Model => &fields::MODELS_FILE,
            Self::Test => &fields::TESTS_FILE,
            Self::Exposure => &fields::EXPOSURES_FILE,
            Self::Udf => &ROOT,
        }
    }
}

/// All declaration files, sorted by path, with W223 for SQL files beside them.
fn declaration_files(
    fs: &dyn ProjectFs,
    errors: &mut Vec<Diagnostic>,
    warnings: &mut Vec<Diagnostic>,
) -> Vec<(Kind, PathBuf)> {
    let (mut found, mut sql) = (Vec::new(), Vec::new());
    for (kind, directory) in Kind::DIRECTORIES {
        match fs.files(Path::new(directory)) {
            Ok(files) => {
                for path in files.unwrap_or_default() {
                    let extension = path.extension().and_then(|extension| extension.to_str());
                    match extension {
                        Some("yml" | "yaml") => found.push((slashed(&path), kind, path)),
                        Some("sql") if kind == Kind::Model => sql.push(slashed(&path)),
                        Some(_) | None => {}
                    }
                }
            }
            Err(error) => errors.push(env::unreadable(directory, &error)),
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    sql.sort();
    if !sql.is_empty() {
        let mut names: Vec<String> = sql.iter().take(5).map(|name| format!("'{name}'")).collect();
        if sql.len() > 5 {
            names.push(format!("and {} more", sql.len() - 5));
        }
        warnings.push(
            Diagnostic::new(
                Code::W223SqlFilesIgnored,
                format!("SQL files are not read from 'models': {}", names.join(", ")),
            )
            .at(Location::named("models"))
            .suggest("put the SQL under 'sql:' of a model, or in 'macros/<name>.sql.j2'"),
        );
    }
    found.into_iter().map(|(_, kind, path)| (kind, path)).collect()
}

fn declaration_file(reader: &Reader<'_>, kind: Kind, path: &Path) -> Part {
    let (source, tree) = match reader.tree(path) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return Part::default(),
        Err(errors) => return Part::failed(errors),
    };
    let mut findings = Findings::new(source.clone());
    let mut checker = Checker::new(&source, Code::E501ParseError);
    checker.check_root(&tree, kind.file(), &[]);
    findings.errors.extend(checker.into_errors());
    let mut part = Part::default();
    declarations(&tree, kind, kind.section(), &mut part, &mut findings);
    finish(&mut part, findings);
    part
}

fn declarations(tree: &Node, kind: Kind, section: &'static str, part: &mut Part, findings: &mut Findings) {
    let Some(list) = tree.get(section) else { return };
    let source = findings.source.clone();
    let mut checker = Checker::new(&source, Code::E501ParseError);
    if !matches!(list.content, super::value::Content::Sequence(_)) {
        checker.check_at(&[section], list, Shape::List(&Shape::Any, usize::MAX));
    }
    for (index, node) in list.items().iter().enumerate() {
        if !checker.check_item(section, index, node, kind.record()) {
            continue;
        }
        let origin = findings.origin(section, index.to_string()).standing_at(node);
        match kind {
            Kind::Source => part.sources.push(decode::source(node, origin, findings)),
            Kind::Model => part.models.push(decode::model(node, origin, findings)),
            Kind::Test => part.tests.push(decode::test(node, origin, findings)),
            Kind::Exposure => part.exposures.push(decode::exposure(node, origin)),
            Kind::Udf => part.udfs.push(decode::udf(node, origin)),
        }
    }
    findings.errors.extend(checker.into_errors());
}

/// Findings in the order of the file, errors up to the limit.
fn finish(part: &mut Part, findings: Findings) {
    let place = |diagnostic: &Diagnostic| diagnostic.location.as_ref().map(|location| (location.line, location.column));
    let Findings { mut errors, mut warnings, .. } = findings;
    errors.sort_by_key(place);
    errors.truncate(MAX_ERRORS);
    warnings.sort_by_key(place);
    part.errors = errors;
    part.warnings = warnings;
}

fn macros(reader: &Reader<'_>, errors: &mut Vec<Diagnostic>) -> BTreeMap<String, String> {
    let mut macros = BTreeMap::new();
    let files = match reader.fs.files(Path::new("macros")) {
        Ok(files) => files.unwrap_or_default(),
        Err(error) => {
            errors.push(env::unreadable("macros", &error));
            return macros;
        }
    };
    for path in files.into_iter().filter(|path| path.components().count() == 2) {
        let Some(name) =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(MACRO_SUFFIX))
        else {
            continue;
        };
        match reader.text(&path) {
            Ok(text) => {
                macros.insert(name.to_owned(), text.unwrap_or_default());
            }
            Err(error) => errors.push(error),
        }
    }
    macros
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "env_tests.rs"]
mod env_tests;

#[cfg(test)]
#[path = "refusal_tests/mod.rs"]
mod refusal_tests;
