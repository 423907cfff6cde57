//! What `init` writes: each template as embedded files and a pure `render` that fills them in. It promises a project that
//! passes strict validation offline; writing files, refusing to overwrite and checking options stay the command's business.

mod render;

pub use render::render;

/// A kind of new project.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Template {
    Quickstart,
    Flink,
    KafkaStreams,
    MultiEnv,
    Minimal,
}

impl Template {
    pub const ALL: [Template; 5] =
        [Template::Quickstart, Template::Flink, Template::KafkaStreams, Template::MultiEnv, Template::Minimal];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quickstart => "quickstart",
            Self::Flink => "flink",
            Self::KafkaStreams => "kafka-streams",
            Self::MultiEnv => "multi-env",
            Self::Minimal => "minimal",
        }
    }

    pub fn parse(text: &str) -> Option<Template> {
        Self::ALL.into_iter().find(|template| template.as_str() == text)
    }

    /// One line for `init --list-templates`.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Quickstart => {
                "two managed topics with Avro schemas, a test and an exposure; needs Kafka and a schema registry"
            }
            Self::Flink => "an external source and a SQL model on Flink",
            Self::KafkaStreams => "a managed input, a filter run by the Kafka Streams runner, a declared consumer",
            Self::MultiEnv => "the flink template with dev, staging and a protected prod",
            Self::Minimal => "an empty project",
        }
    }
}

/// What fills a template in. `None` leaves the template's own default, a `${VARIABLE:-default}` where it has one.
#[derive(Clone, Default, Debug)]
pub struct TemplateOptions {
    pub project_name: String,
    /// Bootstrap servers.
    pub kafka: Option<String>,
    /// Bootstrap servers as seen from containers; `kafka-streams` only.
    pub kafka_internal: Option<String>,
    /// Registry URL; `quickstart` only.
    pub schema_registry: Option<String>,
    /// Leaves the schemas and the registry out; `quickstart` only.
    pub without_registry: bool,
    /// Digest-pinned image; required by `kafka-streams`.
    pub runner_image: Option<String>,
    pub docker_network: Option<String>,
    pub initial_offset: Option<String>,
}

/// One file of a rendered template; the path is relative to the project directory, `/` separated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TemplateFile {
    pub path: &'static str,
    pub content: String,
}

#[cfg(test)]
mod tests;
