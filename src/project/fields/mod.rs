//! The table of the whole language, section by section. A field exists when it stands here, and nowhere else.

mod declarations;
mod models;
mod runtime;
mod settings;

pub use declarations::{EXPOSURE, EXPOSURES_FILE, SOURCE, SOURCES_FILE, TEST, TESTS_FILE, UDF};
pub use models::{MODEL, MODELS_FILE};
pub use runtime::RUNTIME;
pub use settings::{CONNECTION, DEPLOYMENT_STATE, ENVIRONMENT_FILE};

use super::shape::{API_VERSION, NAME, PROJECT_NAME, Record, STRING, Shape, def, opt, req};

pub static PROJECT: Record = Record {
    name: "project",
    doc: "Who the project is.",
    fields: &[
        req("name", Shape::Text(PROJECT_NAME), "Name of the project; the first part of every resource id."),
        opt("version", Shape::Text(STRING), "Version of the project's declarations, free text; quote numbers."),
        opt("description", Shape::Text(STRING), "What the project is for."),
    ],
};

/// `stream_project.yml`. Root keys that begin with `x-` are free.
pub static ROOT: Record = Record {
    name: "project_file",
    doc: "The file `stream_project.yml`. Root keys that begin with `x-` are free: a place for YAML anchors.",
    fields: &[
        def("apiVersion", Shape::Text(API_VERSION), "\"streamt.dev/v1alpha1\"", "Version of the language."),
        req("project", Shape::Record(&PROJECT), "Name, version and description."),
        def(
            "runtime",
            Shape::Record(&RUNTIME),
            "null",
            "The services to deploy to; required unless there is a directory `environments`.",
        ),
        def(
            "deployment_state",
            Shape::Tagged(&DEPLOYMENT_STATE),
            "{\"backend\":\"local\"}",
            "Where ownership is recorded.",
        ),
        opt("defaults", Shape::Record(&settings::DEFAULTS), "Values for what declarations leave open."),
        opt("rules", Shape::Record(&settings::RULES), "Governance rules that validation enforces."),
        def("lifecycle", Shape::Record(&settings::LIFECYCLE), "{}", "Explicit removals; nothing else ever deletes."),
        def(
            "connections",
            Shape::Map { key: NAME, value: &Shape::Record(&CONNECTION) },
            "{}",
            "Connector configurations shared by sinks, by name.",
        ),
        def("sources", Shape::List(&Shape::Record(&SOURCE), usize::MAX), "[]", "Topics that others write."),
        def("models", Shape::List(&Shape::Record(&MODEL), usize::MAX), "[]", "Topics and processes of this project."),
        def(
            "tests",
            Shape::List(&Shape::Record(&TEST), usize::MAX),
            "[]",
            "Assertions about the data of models and sources.",
        ),
        def("exposures", Shape::List(&Shape::Record(&EXPOSURE), usize::MAX), "[]", "Applications that use the data."),
        def("udfs", Shape::List(&Shape::Record(&UDF), usize::MAX), "[]", "User-defined functions that SQL may call."),
        opt("environments", Shape::Any, "Ignored: environments are the files of the directory `environments`."),
    ],
};
