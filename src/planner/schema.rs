//! A declared schema against the latest version of its subject.

use serde_json::{Map, Value};

use crate::project::model::{Compatibility, SchemaReference};

use super::model::Verb;
use super::observation::CompatibilityVerdict;
use super::topic::FromTo;

/// The new version that differing content asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContentChange {
    pub from_version: u32,
    pub to_version: u32,
    pub verdict: CompatibilityVerdict,
}

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct SchemaDiff {
    pub exists: bool,
    pub content: Option<ContentChange>,
    pub references: Option<FromTo<Vec<SchemaReference>>>,
    pub compatibility: Option<FromTo<Option<Compatibility>>>,
}

impl SchemaDiff {
    pub fn verb(&self) -> Option<Verb> {
        match self.exists {
            false => Some(Verb::Register),
            true => (self.content.is_some() || self.compatibility.is_some()).then_some(Verb::Update),
        }
    }

    pub fn changes(&self) -> Map<String, Value> {
        Map::new()
    }
}
