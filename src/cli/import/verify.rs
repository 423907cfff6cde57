//! The project as it would be with the new file, read and judged before the file exists.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::columns::Column;
use super::{Declaration, Form, format};
use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::{self, Compiled};
use crate::project::model::{OwnershipMode, SchemaFormat, SchemaVersion};
use crate::project::{DiskFs, EnvironmentInput, Project, ProjectFs, load};
use crate::validate::validate;

/// A project directory with one more file.
struct Prospect<'a> {
    disk: &'a DiskFs,
    path: &'a Path,
    bytes: &'a [u8],
}

impl ProjectFs for Prospect<'_> {
    fn root(&self) -> &Path {
        self.disk.root()
    }

    fn read(&self, path: &Path, limit: usize) -> io::Result<Option<Vec<u8>>> {
        match path == self.path {
            true => Ok(Some(self.bytes[..self.bytes.len().min(limit.saturating_add(1))].to_vec())),
            false => self.disk.read(path, limit),
        }
    }

    fn files(&self, directory: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        let mut found = self.disk.files(directory)?;
        if self.path.starts_with(directory) {
            let files = found.get_or_insert_default();
            if !files.iter().any(|path| path == self.path) {
                files.push(self.path.to_owned());
            }
        }
        Ok(found)
    }

    fn exists(&self, path: &Path) -> bool {
        path == self.path || self.disk.exists(path)
    }
}

/// The project with the file. E705 unless it is read and has no error that it has not without it.
pub fn prospect(
    disk: &DiskFs,
    input: &EnvironmentInput,
    project: &Arc<Project>,
    path: &Path,
    text: &str,
) -> Result<Arc<Project>, Diagnostic> {
    let prospect = Prospect { disk, path, bytes: text.as_bytes() };
    let loaded = load(&prospect, input).map_err(|findings| match findings.errors().next() {
        Some(first) => refused(first),
        None => invalid("it cannot be read"),
    })?;
    let with = Arc::new(loaded.project);
    let mut known: BTreeMap<(Code, String), usize> = BTreeMap::new();
    for error in errors(project) {
        *known.entry(key(&error)).or_default() += 1;
    }
    for error in errors(&with) {
        match known.get_mut(&key(&error)) {
            Some(count) if *count > 0 => *count -= 1,
            Some(_) | None => return Err(refused(&error)),
        }
    }
    Ok(with)
}

/// E705 unless the project says of each topic what was discovered.
pub fn says(declarations: &[Declaration], form: Form, project: &Arc<Project>) -> Result<(), Diagnostic> {
    match form {
        Form::External => declarations.iter().try_for_each(|one| external(one, project)),
        Form::Adoptable => adoptable(declarations, project),
    }
}

pub(super) fn compiled(project: &Arc<Project>) -> Result<Compiled, Diagnostic> {
    compiler::compile(Arc::clone(project)).map_err(|findings| match findings.errors().next() {
        Some(first) => refused(first),
        None => invalid("it does not compile"),
    })
}

fn errors(project: &Arc<Project>) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = validate(project).into_iter().filter(Diagnostic::is_error).collect();
    let compiled: Diagnostics = compiler::check(Arc::clone(project)).err().unwrap_or_default();
    found.extend(compiled.into_iter().filter(Diagnostic::is_error));
    found
}

fn key(error: &Diagnostic) -> (Code, String) {
    (error.code, error.location.as_ref().map_or_else(String::new, ToString::to_string))
}

fn refused(first: &Diagnostic) -> Diagnostic {
    let place = first.location.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
    let mut error = invalid(&format!("{}{place}: {}", first.code, first.message));
    error.location = first.location.clone();
    error.suggest("leave it out with --exclude and declare it by hand")
}

fn invalid(why: &str) -> Diagnostic {
    Diagnostic::new(Code::E705ImportValidationFailed, format!("the imported declarations are not valid: {why}"))
        .suggest("nothing was written; leave out with --exclude what is not valid, and declare it by hand")
}

pub(super) fn unlike(name: &str, what: &str) -> Diagnostic {
    invalid(&format!("'{name}' would not say the {what} that was discovered"))
}

fn external(one: &Declaration, project: &Project) -> Result<(), Diagnostic> {
    let source = project.sources.iter().find(|source| source.name == one.name);
    let source = source.ok_or_else(|| unlike(&one.name, "name"))?;
    if source.topic != one.found.topic.name || source.ownership.mode != OwnershipMode::External {
        return Err(unlike(&one.name, "topic"));
    }
    let read = source.schema.as_ref().map(|block| {
        let word = block.format.map(|format| match format {
            SchemaFormat::Avro => "avro",
            SchemaFormat::Json => "json",
            SchemaFormat::Protobuf => "protobuf",
        });
        (block.subject.clone().unwrap_or_default(), block.version, word)
    });
    let wanted = one.schema().map(|schema| {
        (schema.subject.clone(), SchemaVersion::Number(schema.version), Some(format(schema.schema_type)))
    });
    if read != wanted {
        return Err(unlike(&one.name, "schema"));
    }
    let read = source.columns.iter().map(|column| Column {
        name: column.name.clone(),
        data_type: column.data_type.clone().unwrap_or_default(),
        required: column.required,
    });
    if !read.eq(one.inferred().iter().cloned()) {
        return Err(unlike(&one.name, "columns"));
    }
    Ok(())
}

/// What is compiled of each declaration is exactly what is live, so that a plan after its adoption is empty.
fn adoptable(declarations: &[Declaration], project: &Arc<Project>) -> Result<(), Diagnostic> {
    let compiled = compiled(project)?;
    for one in declarations {
        let live = &one.found.topic;
        let topic = compiled.artifacts.topics.iter().find(|topic| topic.name == live.name);
        let same = topic.is_some_and(|topic| {
            Some(topic.partitions) == live.partitions
                && Some(topic.replication_factor) == live.replication_factor
                && topic.config == live.config
                && topic.ownership.mode == OwnershipMode::Adopted
                && topic.ownership.name == one.name
        });
        if !same {
            return Err(unlike(&one.name, "topic"));
        }
        let Some(schema) = one.schema() else { continue };
        let declared = compiled.artifacts.schemas.iter().find(|artifact| artifact.subject == schema.subject);
        let mut references = schema.references.clone();
        references.sort();
        let same = declared.is_some_and(|artifact| {
            compiler::canonical::Checksum::of(&artifact.schema).ok()
                == compiler::canonical::Checksum::of(&schema.schema).ok()
                && artifact.schema_type == schema.schema_type
                && artifact.references == references
                && artifact.compatibility == schema.compatibility
                && artifact.ownership.mode == OwnershipMode::Adopted
        });
        if !same {
            return Err(unlike(&one.name, "schema"));
        }
    }
    Ok(())
}
