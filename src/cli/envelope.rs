//! The one JSON document of a command. Key order is the order of the fields.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;

use crate::codes::{Code, Diagnostic, Diagnostics};

use super::sanitize;

#[derive(Serialize)]
pub struct Envelope<'a> {
    status: &'static str,
    command: &'a str,
    data: &'a Value,
    errors: Vec<ErrorEntry>,
    warnings: Vec<WarningEntry>,
    /// Only in envelopes of commands whose shape is our own.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_version: Option<u32>,
}

#[derive(Serialize)]
struct ErrorEntry {
    code: Code,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<String>,
}

#[derive(Serialize)]
struct WarningEntry {
    code: Code,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
}

/// Where a finding stands: the place in a file, else the logical path.
pub fn location(diagnostic: &Diagnostic) -> Option<String> {
    diagnostic.location.as_ref().map(ToString::to_string).or_else(|| diagnostic.path.clone())
}

/// The first line of what to do.
pub fn suggestion(diagnostic: &Diagnostic) -> Option<String> {
    let text = diagnostic.suggestion.as_deref()?;
    text.lines().next().filter(|line| !line.is_empty()).map(sanitize::free_text)
}

fn error_entry(error: &Diagnostic) -> ErrorEntry {
    ErrorEntry {
        code: error.code,
        message: sanitize::free_text(&error.message),
        location: location(error),
        suggestion: suggestion(error),
        operation_id: error.operation_id.map(|id| id.to_string()),
    }
}

impl<'a> Envelope<'a> {
    pub fn new(command: &'a str, data: &'a Value, errors: &Diagnostics, warnings: &Diagnostics) -> Self {
        let mut seen = HashSet::new();
        Self {
            status: if errors.is_empty() { "ok" } else { "error" },
            command,
            data,
            errors: errors.iter().map(error_entry).collect(),
            warnings: warnings
                .iter()
                .map(|warning| WarningEntry {
                    code: warning.code,
                    message: sanitize::free_text(&warning.message),
                    location: location(warning),
                })
                .filter(|entry| seen.insert((entry.code, entry.message.clone(), entry.location.clone())))
                .collect(),
            schema_version: matches!(command, "explain" | "review" | "version").then_some(1),
        }
    }

    /// Two-space indent and a final newline.
    pub fn render(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}
