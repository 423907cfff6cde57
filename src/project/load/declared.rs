//! Declarations: which files hold some, and what each of them holds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::reader::{Reader, slashed};
use crate::codes::{Code, Diagnostic, Location};
use crate::project::check::{Checker, MAX_ERRORS};
use crate::project::decode::{self, Findings};
use crate::project::env;
use crate::project::fields::{self, EXPOSURE, MODEL, ROOT, SOURCE, TEST, UDF};
use crate::project::fs::ProjectFs;
use crate::project::model::{Exposure, Model, Source as SourceDeclaration, Test, Udf};
use crate::project::shape::{Record, Shape};
use crate::project::value::{Content, Node};

const MACRO_SUFFIX: &str = ".sql.j2";

/// The declarations of one file.
#[derive(Default)]
pub(super) struct Part {
    pub sources: Vec<SourceDeclaration>,
    pub models: Vec<Model>,
    pub tests: Vec<Test>,
    pub exposures: Vec<Exposure>,
    pub udfs: Vec<Udf>,
    pub errors: Vec<Diagnostic>,
    pub warnings: Vec<Diagnostic>,
}

impl Part {
    fn failed(errors: Vec<Diagnostic>) -> Self {
        Self { errors, ..Self::default() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
pub(super) fn declaration_files(
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

pub(super) fn declaration_file(reader: &Reader<'_>, kind: Kind, path: &Path) -> Part {
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

pub(super) fn declarations(tree: &Node, kind: Kind, section: &'static str, part: &mut Part, findings: &mut Findings) {
    let Some(list) = tree.get(section) else { return };
    let source = findings.source.clone();
    let mut checker = Checker::new(&source, Code::E501ParseError);
    if !matches!(list.content, Content::Sequence(_)) {
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
pub(super) fn finish(part: &mut Part, findings: Findings) {
    let place = |diagnostic: &Diagnostic| diagnostic.location.as_ref().map(|location| (location.line, location.column));
    let Findings { mut errors, mut warnings, .. } = findings;
    errors.sort_by_key(place);
    errors.truncate(MAX_ERRORS);
    warnings.sort_by_key(place);
    part.errors = errors;
    part.warnings = warnings;
}

pub(super) fn macros(reader: &Reader<'_>, errors: &mut Vec<Diagnostic>) -> BTreeMap<String, String> {
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
