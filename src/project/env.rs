//! Environments: which exist, which one is meant, its variables and its file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::codes::{Code, Diagnostic, Location, suggest};

use super::check::Checker;
use super::decode::Findings;
use super::dotenv;
use super::fields::{ENVIRONMENT_FILE, RUNTIME};
use super::fs::ProjectFs;
use super::load::Unset;
use super::model::Environment;
use super::parse::printable;
use super::shape::{Shape, is_environment_name};
use super::value::Node;

pub const DIRECTORY: &str = "environments";

/// How a project is bound to services.
#[derive(Clone, Debug)]
pub enum Mode {
    /// No directory `environments`.
    Single,
    /// The environment files by name.
    Multi(BTreeMap<String, PathBuf>),
}

/// The environment to load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selected {
    Single,
    Named { name: String, file: PathBuf },
}

fn error(message: impl Into<String>, hint: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::E503EnvironmentError, message).suggest(hint)
}

/// E503 when one environment has two files.
pub fn mode(fs: &dyn ProjectFs) -> Result<Mode, Diagnostic> {
    let files = fs.files(Path::new(DIRECTORY)).map_err(|error| unreadable(DIRECTORY, &error))?;
    let Some(files) = files else { return Ok(Mode::Single) };
    let mut names: BTreeMap<String, PathBuf> = BTreeMap::new();
    for file in files {
        let is_yaml = file.extension().is_some_and(|extension| extension == "yml" || extension == "yaml");
        if !is_yaml || file.components().count() != 2 {
            continue;
        }
        let Some(name) = file.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned) else { continue };
        if let Some(other) = names.insert(name.clone(), file.clone()) {
            let (a, b) = (other.display(), file.display());
            let message = format!("the environment '{}' has two files", printable(&name));
            return Err(error(message, format!("keep one of '{a}' and '{b}'")).at(Location::named(DIRECTORY)));
        }
    }
    Ok(Mode::Multi(names))
}

pub fn unreadable(path: &str, error: &std::io::Error) -> Diagnostic {
    let why = error.get_ref().map_or_else(|| error.kind().to_string(), ToString::to_string);
    Diagnostic::new(Code::E501ParseError, format!("cannot read '{path}': {why}"))
        .at(Location::named(path))
        .suggest("check that it exists and that this user may read it")
}

/// The selection table: `--env`, then `STREAMT_ENV`, then none. A warning (W222) may come with it.
pub fn select(
    mode: &Mode,
    requested: Option<&str>,
    variable: Option<&str>,
) -> Result<(Selected, Option<Diagnostic>), Diagnostic> {
    let files = match (mode, requested) {
        (Mode::Single, Some(_)) => {
            return Err(error(
                "no environments configured: '--env' needs a directory 'environments'",
                "leave '--env' out, or create 'environments/<name>.yml'",
            ));
        }
        (Mode::Single, None) => {
            let warning = variable.map(|_| {
                Diagnostic::new(
                    Code::W222StreamtEnvIgnored,
                    "STREAMT_ENV is set, but this project has no environments; it is ignored",
                )
                .suggest("unset it, or create 'environments/<name>.yml'")
            });
            return Ok((Selected::Single, warning));
        }
        (Mode::Multi(files), _) => files,
    };
    let available = || files.keys().map(|name| format!("'{}'", printable(name))).collect::<Vec<_>>().join(", ");
    if files.is_empty() {
        return Err(error("the directory 'environments' holds no environment", "create 'environments/<name>.yml'")
            .at(Location::named(DIRECTORY)));
    }
    let Some(name) = requested.or(variable) else {
        return Err(error(
            format!("no environment chosen; available: {}", available()),
            "choose one with '--env NAME' or the variable STREAMT_ENV",
        ));
    };
    if !is_environment_name(name) {
        return Err(error(
            format!("'{}' is not a name of an environment", printable(name)),
            format!("names are letters, digits and '-', at most 128; available: {}", available()),
        ));
    }
    match files.get(name) {
        Some(file) => Ok((Selected::Named { name: name.to_owned(), file: file.clone() }, None)),
        None => {
            let hint = suggest::did_you_mean(name, files.keys().map(String::as_str));
            let message = format!("there is no environment '{name}'; available: {}", available());
            Err(error(message, hint.unwrap_or_else(|| format!("create 'environments/{name}.yml'"))))
        }
    }
}

/// The variables of an environment: `.env`, then `.env.<name>`, then the process; the later wins. The map is never written back.
pub fn variables(
    fs: &dyn ProjectFs,
    selected: &Selected,
    process: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Vec<Diagnostic>> {
    const LIMIT: usize = 1 << 20;
    let mut files = vec![".env".to_owned()];
    if let Selected::Named { name, .. } = selected {
        files.push(format!(".env.{name}"));
    }
    let (mut known, mut errors) = (BTreeMap::new(), Vec::new());
    for file in files {
        let bytes = match fs.read(Path::new(&file), LIMIT) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => continue,
            Err(problem) => {
                let hint = "check that it is a file and that this user may read it";
                errors.push(error(format!("cannot read '{file}': {}", problem.kind()), hint).at(Location::named(file)));
                continue;
            }
        };
        let path: Arc<str> = file.into();
        if bytes.len() > LIMIT {
            errors.push(error("the file is larger than 1 MiB", "keep variables only").at(Location::named(path)));
            continue;
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => errors.extend(dotenv::read(&path, text, process, &mut known)),
            Err(_) => errors.push(error("the file is not UTF-8", "save it as UTF-8").at(Location::named(path))),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    known.extend(process.iter().map(|(name, value)| (name.clone(), value.clone())));
    Ok(known)
}

/// Checks an environment file but for what is inside `runtime` (E503), and decodes its policy.
pub fn file(name: &str, tree: &Node, findings: &mut Findings) -> Environment {
    let source = findings.source.clone();
    let mut checker = Checker::new(&source, Code::E503EnvironmentError);
    checker.check_root(tree, &ENVIRONMENT_FILE, &["runtime"]);
    for field in ENVIRONMENT_FILE.fields.iter().filter(|field| field.name != "runtime") {
        if let Some(node) = tree.get(field.name) {
            checker.check_at(&[field.name], node, field.shape);
        }
    }
    let errors = checker.into_errors();
    let sound = errors.is_empty();
    findings.errors.extend(errors);
    let mut environment = Environment { name: name.to_owned(), multi: true, ..Environment::single() };
    if !sound {
        return environment;
    }
    let own = tree.nearest("environment");
    if let Some(written) = own.get("name").and_then(Node::as_str)
        && written != name
    {
        let origin = findings.origin("", "environment");
        let diagnostic = error(
            "'name' must equal the file's name without its extension",
            format!("write 'name: {name}', or rename the file"),
        );
        findings.errors.push(origin.mark("name", diagnostic));
    }
    let flag =
        |section: &str, field: &str| tree.get(section).and_then(|node| node.get(field)).and_then(super::check::as_bool);
    environment.description = own.get("description").and_then(Node::as_str).unwrap_or_default().to_owned();
    environment.protected = flag("environment", "protected").unwrap_or(false);
    environment.confirm_apply = flag("safety", "confirm_apply").unwrap_or(environment.protected);
    environment.allow_destructive = flag("safety", "allow_destructive").unwrap_or(false);
    environment.forbid_deletion = flag("safety", "forbid_deletion").unwrap_or(false);
    environment.require_reviewed_plan = flag("safety", "require_reviewed_plan").unwrap_or(false);
    environment.require_remote_state = flag("safety", "require_remote_state").unwrap_or(false);
    environment.reviewed_plan_max_age_minutes = tree
        .get("safety")
        .and_then(|safety| safety.get("reviewed_plan_max_age_minutes"))
        .and_then(super::check::as_int)
        .and_then(|minutes| u32::try_from(minutes).ok());
    environment
}

/// A `runtime` block with its variables filled in, and the names of those that are not set.
pub struct Bound {
    pub node: Node,
    pub unset: BTreeSet<String>,
}

/// Fills in the variables of a `runtime` block and checks it. None when it cannot be decoded.
pub fn runtime(
    tree: &Node,
    code: Code,
    variables: &BTreeMap<String, String>,
    policy: Unset,
    findings: &mut Findings,
) -> Option<Bound> {
    let mut node = tree.get("runtime")?.clone();
    let source = findings.source.clone();
    if node.entries().is_empty() && node.as_str().is_none() && node.items().is_empty() {
        let origin = findings.origin("", "runtime");
        let diagnostic = Diagnostic::new(code, "'runtime' must not be empty")
            .suggest("add at least 'kafka:' with 'bootstrap_servers:'");
        findings.errors.push(origin.mark("", diagnostic));
        return None;
    }
    let mut unclosed = Vec::new();
    texts(&node, &mut Vec::new(), &mut |text, path| {
        unclosed.extend(super::interpolate::unclosed(text).map(|name| (name.to_owned(), path.join("."))));
    });
    if !unclosed.is_empty() {
        let origin = findings.origin("", "runtime");
        findings.errors.extend(unclosed.into_iter().map(|(name, path)| {
            let diagnostic = Diagnostic::new(Code::E501ParseError, format!("'${{{name}' has no closing '}}'"))
                .suggest("write ${NAME} or ${NAME:-default}");
            origin.mark(&path, diagnostic)
        }));
        return None;
    }
    let unset = super::interpolate::interpolate(&mut node, variables);
    if policy == Unset::Refused && !unset.is_empty() {
        findings.errors.push(not_set(&unset, findings));
        return None;
    }
    let mut checker = Checker::new(&source, Code::E501ParseError);
    let sound = checker.check_at(&["runtime"], &node, Shape::Record(&RUNTIME));
    findings.errors.extend(checker.into_errors());
    sound.then_some(Bound { node, unset })
}

fn not_set(missing: &BTreeSet<String>, findings: &Findings) -> Diagnostic {
    let names: Vec<&str> = missing.iter().map(String::as_str).collect();
    let origin = findings.origin("", "runtime");
    let noun = if names.len() == 1 { "this environment variable is" } else { "these environment variables are" };
    let mut diagnostic = Diagnostic::new(Code::E502EnvVarError, format!("{noun} not set: {}", names.join(", ")))
        .suggest("set them in the environment or in a '.env' file, or give a default: ${NAME:-default}");
    // The first place that needs one of them.
    if let Some(tree) = findings.source.tree() {
        let mut first = None;
        texts(tree.nearest("runtime"), &mut Vec::new(), &mut |text, path| {
            if first.is_none() && names.iter().any(|name| text.contains(&format!("${{{name}}}"))) {
                first = Some(path.join("."));
            }
        });
        if let Some(path) = first {
            diagnostic = origin.mark(&path, diagnostic);
        }
    }
    diagnostic
}

/// Every text below a node, with its path.
fn texts(node: &Node, path: &mut Vec<String>, visit: &mut impl FnMut(&str, &[String])) {
    if let Some(text) = node.as_str() {
        visit(text, path);
    }
    for (index, item) in node.items().iter().enumerate() {
        path.push(index.to_string());
        texts(item, path, visit);
        path.pop();
    }
    for entry in node.entries() {
        path.push(entry.key.to_string());
        texts(&entry.value, path, visit);
        path.pop();
    }
}
