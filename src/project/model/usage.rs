//! Tests, exposures and functions.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::origin::Origin;
use super::models::Reference;
use super::sources::Freshness;

/// When a test runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TestType {
    Schema,
    Sample,
    Continuous,
}

/// What a failed assertion means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

/// What happens when a test fails.
#[derive(Clone, Debug, Serialize)]
pub struct OnFailure {
    pub severity: Severity,
    /// As authored: `{"dlq": true}` or `{"dlq": {"model"?, "topic"?}}`.
    pub actions: Vec<Value>,
}

/// Assertions about one source or model.
#[derive(Clone, Debug, Serialize)]
pub struct Test {
    pub name: String,
    pub model: String,
    #[serde(rename = "type")]
    pub test_type: TestType,
    /// As authored: one-key maps, shapes checked at load.
    pub assertions: Vec<Value>,
    pub sample_size: Option<u32>,
    pub flink_cluster: Option<String>,
    pub on_failure: Option<OnFailure>,
    #[serde(skip)]
    pub origin: Origin,
}

/// Kinds of applications around a project.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExposureType {
    Application,
    Dashboard,
    MlTraining,
    MlInference,
    Api,
}

/// How an application uses its topics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExposureRole {
    Producer,
    Consumer,
    Both,
}

/// A column that an application needs.
#[derive(Clone, Debug, Serialize)]
pub struct ExposureColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub data_type: Option<String>,
}

/// An application outside the project that reads or writes its topics.
#[derive(Clone, Debug, Serialize)]
pub struct Exposure {
    pub name: String,
    #[serde(rename = "type")]
    pub exposure_type: ExposureType,
    pub role: Option<ExposureRole>,
    pub description: Option<String>,
    pub owner: Option<String>,
    pub owners: Vec<BTreeMap<String, String>>,
    pub url: Option<String>,
    pub repo: Option<String>,
    pub language: Option<String>,
    pub tool: Option<String>,
    pub consumer_group: Option<String>,
    pub schedule: Option<String>,
    /// Entries that named neither or both of `source` and `ref` are kept as none, for E113.
    pub produces: Vec<Option<Reference>>,
    pub consumes: Vec<Option<Reference>>,
    pub depends_on: Vec<Option<Reference>>,
    pub columns: Vec<ExposureColumn>,
    pub sla: Option<Map<String, Value>>,
    pub contracts: Option<Map<String, Value>>,
    pub access: Option<Map<String, Value>>,
    pub freshness: Option<Freshness>,
    pub data_requirements: Option<Map<String, Value>>,
    #[serde(skip)]
    pub origin: Origin,
}

/// A function that SQL may call.
#[derive(Clone, Debug, Serialize)]
pub struct Udf {
    pub name: String,
    pub return_type: String,
    pub class: Option<String>,
    pub language: Option<String>,
    #[serde(skip)]
    pub origin: Origin,
}
