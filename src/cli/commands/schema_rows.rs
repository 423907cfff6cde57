//! Schemas in `status`: whether the subject exists, and its newest version.

use serde::Serialize;

use crate::cli::doc::Doc;
use crate::compiler::artifact::{Kind, SchemaArtifact};
use crate::planner::Cause;
use crate::planner::observation::SchemaObservation;

use super::cells::{existence, number};
use super::why::{self, Differing};

#[derive(Serialize)]
pub struct SchemaRow {
    pub subject: String,
    pub exists: Option<bool>,
    version: Option<u32>,
    schema_type: Option<&'static str>,
    /// Why it is not as declared, when that could be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<Cause>,
}

impl SchemaRow {
    pub fn of(schema: &SchemaArtifact, live: Option<&SchemaObservation>) -> Self {
        Self {
            subject: schema.subject.clone(),
            exists: live.map(|live| live.exists),
            version: live.and_then(|live| live.version),
            schema_type: live.and_then(|live| live.schema_type).map(|schema_type| schema_type.as_str()),
            cause: None,
        }
    }

    /// None when the subject exists, or was not read.
    pub fn differing(&mut self) -> Option<Differing<'_>> {
        let Self { subject, exists, cause, .. } = self;
        let missing = *exists == Some(false);
        missing.then_some(Differing { kind: Kind::Schema, name: subject, exists: false, live: None, cause })
    }
}

pub fn table(doc: &mut Doc, rows: &[SchemaRow]) {
    if rows.is_empty() {
        return;
    }
    let cells = rows.iter().map(|row| {
        let status = why::told(existence(row.exists), row.cause);
        vec![row.subject.clone(), status, number(row.version), row.schema_type.unwrap_or("-").to_owned()]
    });
    doc.blank().table(&["SCHEMA", "STATUS", "VERSION", "TYPE"], cells.collect());
}
