//! The summary of a plan for a pull request. Cells are bounded and escaped; nothing in them can become markup.

use std::fmt::Write;

use crate::cli::sanitize;
use crate::planner::payload::PlanPayload;

/// What stands above the tables.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub offline: bool,
    pub project_directory: &'a str,
    pub environment: &'a str,
    /// `sha256:…` of the saved plan.
    pub checksum: Option<&'a str>,
}

const CELL: usize = 300;

fn cell(text: &str) -> String {
    let text = sanitize::free_text(text).replace("<redacted authorization>", "***").replace("<redacted>", "***");
    let mut safe = String::new();
    let mut characters = text.chars().filter(|c| !c.is_control() || *c == '\n');
    for character in characters.by_ref().take(CELL) {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '|' => safe.push_str("&#124;"),
            '\n' => safe.push(' '),
            other => safe.push(other),
        }
    }
    if characters.next().is_some() {
        safe.push('…');
    }
    safe
}

fn table(out: &mut String, title: &str, header: &[&str], rows: Vec<Vec<String>>, limit: usize) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n### {title}\n");
    let _ = writeln!(out, "| {} |\n|{}", header.join(" | "), " --- |".repeat(header.len()));
    for row in rows.iter().take(limit) {
        let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    if rows.len() > limit {
        let _ = writeln!(out, "| … and {} more |{}", rows.len() - limit, " |".repeat(header.len() - 1));
    }
}

pub fn summary(plan: &PlanPayload, facts: Facts<'_>) -> String {
    let mut out = String::from("## streamt reviewed plan\n\n");
    let authority = match (facts.offline, plan.summary.is_apply_blocked) {
        (true, _) => "not authorised (offline)",
        (false, true) => "blocked",
        (false, false) => "ready",
    };
    for (name, value) in [
        ("Validation", "passed"),
        ("Plan", "created"),
        ("Mode", if facts.offline { "offline" } else { "online" }),
        ("Project directory", facts.project_directory),
        ("Environment", facts.environment),
        ("Apply", authority),
    ] {
        let _ = writeln!(out, "- {name}: **{}**", cell(value));
    }
    let _ = writeln!(
        out,
        "\n| Create | Update | Delete |\n| --- | --- | --- |\n| {} | {} | {} |",
        plan.summary.creates, plan.summary.updates, plan.summary.deletes
    );
    if !plan.change_risks.is_empty() {
        let _ = writeln!(out, "\nOverall risk: {}", plan.risk_summary.overall.as_str());
    }
    let words = |words: Vec<&str>| words.join(", ");
    table(
        &mut out,
        "Change risk",
        &["Kind", "Resource", "Action", "Assessment", "Flags", "Evidence"],
        (plan.change_risks.iter())
            .map(|risk| {
                let evidence = crate::cli::outcome::json(&risk.evidence.status);
                vec![
                    risk.kind.to_string(),
                    risk.resource.clone(),
                    risk.action.to_string(),
                    risk.assessment.as_str().to_owned(),
                    words(risk.risk_flags.iter().map(|flag| flag.as_str()).collect()),
                    evidence.as_str().unwrap_or_default().to_owned(),
                ]
            })
            .collect(),
        50,
    );
    table(
        &mut out,
        "Changes",
        &["Kind", "Name", "Action"],
        (plan.resources.iter())
            .filter_map(|r| Some(vec![r.kind.to_string(), r.name.clone(), r.action?.to_string()]))
            .collect(),
        50,
    );
    table(
        &mut out,
        "Ownership requirements",
        &["Resource", "Reason", "Message"],
        (plan.ownership_requirements.iter())
            .map(|r| vec![r.resource_id.to_string(), r.reason.as_str().to_owned(), r.message.clone()])
            .collect(),
        20,
    );
    table(
        &mut out,
        "Safety blockers",
        &["Code", "Resource", "Message"],
        (plan.safety_blockers.iter())
            .map(|b| vec![b.code.as_str().to_owned(), b.resource.clone(), b.message.clone()])
            .collect(),
        20,
    );
    table(
        &mut out,
        "Impact",
        &["Topic", "Models", "Exposures", "Owners", "Undeclared groups"],
        (plan.impact.iter())
            .map(|entry| {
                vec![
                    entry.resource.clone(),
                    entry.downstream_models.len().to_string(),
                    entry.exposures.len().to_string(),
                    entry.owners.join(", "),
                    entry.consumers.iter().filter(|consumer| !consumer.declared).count().to_string(),
                ]
            })
            .collect(),
        20,
    );
    if let Some(checksum) = facts.checksum {
        let _ = writeln!(out, "\nPlan checksum: `{checksum}`");
    }
    out
}
