//! Sources, and the blocks that sources and models share.

use serde::Serialize;

use super::super::origin::Origin;

/// Who owns a resource: only `managed` and `adopted` may be written to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnershipMode {
    External,
    Managed,
    Adopted,
}

impl OwnershipMode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Managed => "managed",
            Self::Adopted => "adopted",
        }
    }
}

/// The `ownership` block.
#[derive(Clone, Debug, Serialize)]
pub struct OwnershipBlock {
    pub mode: OwnershipMode,
}

/// Languages of schemas.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaFormat {
    Avro,
    Json,
    Protobuf,
}

/// Compatibility levels of a registry's subject.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Compatibility {
    None,
    Backward,
    BackwardTransitive,
    Forward,
    ForwardTransitive,
    Full,
    FullTransitive,
}

impl Compatibility {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Backward => "BACKWARD",
            Self::BackwardTransitive => "BACKWARD_TRANSITIVE",
            Self::Forward => "FORWARD",
            Self::ForwardTransitive => "FORWARD_TRANSITIVE",
            Self::Full => "FULL",
            Self::FullTransitive => "FULL_TRANSITIVE",
        }
    }
}

/// A version of a subject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchemaVersion {
    Latest,
    Number(u32),
}

impl Serialize for SchemaVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Latest => serializer.serialize_str("latest"),
            Self::Number(number) => serializer.serialize_u32(*number),
        }
    }
}

/// A schema that a text imports: `name` is the import name, `version` a positive number, never `latest`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaReference {
    pub name: String,
    pub subject: String,
    pub version: u32,
}

/// The `schema` block of a source or a model.
#[derive(Clone, Debug, Serialize)]
pub struct SchemaBlock {
    pub registry: Option<String>,
    pub subject: Option<String>,
    pub version: SchemaVersion,
    pub format: Option<SchemaFormat>,
    pub definition: Option<String>,
    pub fields: Option<Vec<Column>>,
    pub compatibility: Option<Compatibility>,
    pub references: Vec<SchemaReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp_format: Option<TimestampFormat>,
}

/// How JSON carries timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimestampFormat {
    Sql,
    #[serde(rename = "iso_8601")]
    Iso8601,
}

/// How sensitive a column is, least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Classification {
    Public,
    Internal,
    Confidential,
    Sensitive,
    HighlySensitive,
}

impl Classification {
    pub fn is_sensitive(self) -> bool {
        matches!(self, Self::Sensitive | Self::HighlySensitive)
    }
}

/// A declared column.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    pub name: String,
    /// Flink SQL type text.
    #[serde(rename = "type")]
    pub data_type: Option<String>,
    pub classification: Option<Classification>,
    pub description: Option<String>,
    pub required: bool,
    pub proctime: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
}

/// How old the newest record of a source may be.
#[derive(Clone, Debug, Serialize)]
pub struct Freshness {
    pub max_lag_seconds: Option<i64>,
    pub warn_after_seconds: Option<i64>,
}

/// How far behind the newest event time a watermark stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WatermarkStrategy {
    BoundedOutOfOrderness,
    MonotonouslyIncreasing,
    Custom,
}

/// The watermark of an event time column.
#[derive(Clone, Debug, Serialize)]
pub struct Watermark {
    pub strategy: WatermarkStrategy,
    pub max_out_of_orderness_ms: u64,
    pub expression: Option<String>,
}

/// Which column holds the event time.
#[derive(Clone, Debug, Serialize)]
pub struct EventTime {
    pub column: String,
    pub watermark: Option<Watermark>,
    pub allowed_lateness_ms: Option<i64>,
}

/// A topic that the project reads.
#[derive(Clone, Debug, Serialize)]
pub struct Source {
    pub name: String,
    pub topic: String,
    pub description: Option<String>,
    pub owner: Option<String>,
    pub region: Option<String>,
    pub cluster: Option<String>,
    pub tags: Vec<String>,
    pub ownership: OwnershipBlock,
    #[serde(rename = "schema_")]
    pub schema: Option<SchemaBlock>,
    pub columns: Vec<Column>,
    pub freshness: Option<Freshness>,
    pub event_time: Option<EventTime>,
    #[serde(skip)]
    pub origin: Origin,
}
