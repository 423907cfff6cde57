//! The text form.

use crate::cli::doc::{Doc, Line, Tone};
use crate::compiler::artifact::Kind;
use crate::planner::impact::ImpactEntry;
use crate::planner::model::{RequirementReason, Verb};
use crate::planner::observation::EvidenceStatus;
use crate::planner::payload::{PlanPayload, PlannedResource};
use crate::planner::risk::{Assessment, ChangeRisk};

use super::values::change_lines;

/// A plan and what to say around it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub plan: &'a PlanPayload,
    pub offline: bool,
    /// Resources that differ from their record through no change of the declaration.
    pub drifted: &'a [(Kind, String)],
    /// Ids of records whose resource is no longer declared.
    pub no_longer_declared: &'a [String],
    /// The exact next command, when there is one.
    pub next: Option<&'a str>,
}

pub fn sign(verb: Option<Verb>) -> (&'static str, Tone) {
    match verb {
        None => ("=", Tone::Unchanged),
        Some(Verb::Create | Verb::Register | Verb::Submit | Verb::Adopt) => ("+", Tone::Create),
        Some(Verb::Update) => ("~", Tone::Update),
        Some(Verb::Delete | Verb::Cancel) => ("-", Tone::Delete),
    }
}

pub fn render(view: View<'_>) -> Doc {
    let View { plan, offline, drifted, no_longer_declared, next } = view;
    let mut doc = Doc::new();
    if offline {
        doc.line(
            Line::new().tone(Tone::Warning, "Offline plan: assumes no existing resources and authorises nothing."),
        );
        doc.blank();
    }
    resources(&mut doc, plan, drifted);
    if !plan.summary.has_changes {
        doc.line("No changes detected.");
    }
    drift(&mut doc, plan, drifted);
    risks(&mut doc, plan);
    requirements(&mut doc, plan);
    removals(&mut doc, plan);
    blockers(&mut doc, plan);
    impact(&mut doc, &plan.impact);
    if !no_longer_declared.is_empty() {
        doc.blank().heading("No longer declared (nothing is deleted):");
        for id in no_longer_declared {
            doc.line(format!("  {id}"));
        }
    }
    doc.blank();
    counts(&mut doc, plan);
    if let Some(next) = next {
        doc.line(Line::new().tone(Tone::Heading, "Next:").plain(format!(" {next}")));
    }
    doc
}

/// What a blocker stops is not put back.
fn drift(doc: &mut Doc, plan: &PlanPayload, drifted: &[(Kind, String)]) {
    let stopped =
        |(kind, name): &&(Kind, String)| plan.safety_blockers.iter().any(|blocker| blocker.stops(*kind, name));
    let blocked = drifted.iter().filter(stopped).count();
    for (count, end) in [(drifted.len() - blocked, "applying puts it back"), (blocked, "a blocker keeps it so")] {
        let subject = match count {
            0 => continue,
            1 => "1 of these was".to_owned(),
            more => format!("{more} of these were"),
        };
        doc.line(format!("{subject} changed outside this project [drift]; {end}."));
    }
}

/// Lines in kind order: every change, and what is unchanged for a reason worth knowing.
fn resources(doc: &mut Doc, plan: &PlanPayload, drifted: &[(Kind, String)]) {
    let shown: Vec<(&PlannedResource, Vec<String>)> = (plan.resources.iter())
        .map(|resource| (resource, flags(plan, resource, drifted)))
        .filter(|(resource, flags)| resource.action.is_some() || !flags.is_empty())
        .collect();
    let kinds = shown.iter().map(|(resource, _)| resource.kind.as_str().len()).max().unwrap_or(0);
    let names = shown.iter().map(|(resource, _)| resource.name.chars().count()).max().unwrap_or(0).min(60);
    for (resource, flags) in shown {
        let (sign, tone) = sign(resource.action);
        let head = format!(" {:<kinds$}  {:<names$}", resource.kind.as_str(), resource.name);
        let line = Line::new().tone(tone, sign);
        doc.line(match flags.is_empty() {
            true => line.plain(head.trim_end().to_owned()),
            false => line.plain(head).tone(tone, format!("  [{}]", flags.join(", "))),
        });
        doc.pairs(4, change_lines(&resource.changes));
    }
}

fn flags(plan: &PlanPayload, resource: &PlannedResource, drifted: &[(Kind, String)]) -> Vec<String> {
    let mut flags = Vec::new();
    let risk = risk_of(plan, resource.kind, &resource.name);
    match risk.map(|risk| risk.assessment) {
        None | Some(Assessment::Safe) => {}
        Some(Assessment::StateMigrationRequired) => flags.push("state-migration".to_owned()),
        Some(
            other @ (Assessment::Risky | Assessment::SchemaBreaking | Assessment::Destructive | Assessment::Unknown),
        ) => {
            flags.push(other.as_str().replace('_', "-"));
        }
    }
    let here = |kind: Kind, name: &str| kind == resource.kind && name == resource.name;
    flags.extend(
        (plan.safety_blockers.iter())
            .filter(|blocker| blocker.stops(resource.kind, &resource.name))
            .map(|blocker| format!("blocked: {}", blocker.code.as_str())),
    );
    flags.extend((plan.ownership_requirements.iter()).filter(|entry| here(entry.kind, &entry.physical_name)).map(
        |entry| match entry.reason {
            RequirementReason::External => "external".to_owned(),
            RequirementReason::RequiresAdoption => "not ours".to_owned(),
            RequirementReason::InvalidOwnership
            | RequirementReason::OwnershipMismatch
            | RequirementReason::StateMismatch => format!("blocked: {}", entry.reason.as_str()),
        },
    ));
    if drifted.iter().any(|(kind, name)| here(*kind, name)) {
        flags.push("drift".to_owned());
    }
    flags
}

fn risk_of<'a>(plan: &'a PlanPayload, kind: Kind, name: &str) -> Option<&'a ChangeRisk> {
    plan.change_risks.iter().find(|risk| risk.kind == kind && risk.resource == name)
}

fn risks(doc: &mut Doc, plan: &PlanPayload) {
    let notable: Vec<&ChangeRisk> =
        plan.change_risks.iter().filter(|risk| risk.assessment != Assessment::Safe).collect();
    if notable.is_empty() {
        return;
    }
    doc.blank().heading("Risk Classification:");
    for risk in notable {
        let flags: Vec<&str> = risk.risk_flags.iter().map(|flag| flag.as_str()).collect();
        let flags = if flags.is_empty() { String::new() } else { format!(" ({})", flags.join(", ")) };
        doc.line(format!("  {} {}: {}{flags}", risk.kind, risk.resource, risk.assessment.as_str()));
    }
}

fn requirements(doc: &mut Doc, plan: &PlanPayload) {
    let blocking: Vec<_> = plan.ownership_requirements.iter().filter(|entry| entry.reason.blocks()).collect();
    if blocking.is_empty() {
        return;
    }
    doc.blank().heading("Ownership Requirements:");
    for entry in blocking {
        doc.line(format!("  {} [{}]: {}", entry.resource_id, entry.reason.as_str(), entry.message));
    }
}

fn blockers(doc: &mut Doc, plan: &PlanPayload) {
    if plan.safety_blockers.is_empty() {
        return;
    }
    doc.blank().heading("Safety Blockers:");
    for blocker in &plan.safety_blockers {
        let line = Line::new().tone(Tone::Delete, format!("  {}", blocker.code.as_str()));
        doc.line(line.plain(format!(" {} {}: {}", blocker.kind, blocker.resource, blocker.message)));
    }
}

fn removals(doc: &mut Doc, plan: &PlanPayload) {
    if plan.connector_removal_assessments.is_empty() {
        return;
    }
    doc.blank().heading("Connector Removals:");
    for assessment in &plan.connector_removal_assessments {
        doc.line(format!("  [{}] {}", assessment.status.as_str(), assessment.message()));
    }
}

fn impact(doc: &mut Doc, impact: &[ImpactEntry]) {
    let affected: Vec<&ImpactEntry> = (impact.iter())
        .filter(|entry| {
            !entry.downstream_models.is_empty() || !entry.exposures.is_empty() || !entry.consumers.is_empty()
        })
        .collect();
    if affected.is_empty() {
        return;
    }
    doc.blank().heading("Impact Analysis:");
    for entry in affected {
        doc.line(format!("  {}", entry.resource));
        let mut rows = Vec::new();
        if !entry.downstream_models.is_empty() {
            rows.push(("models", entry.downstream_models.join(", ")));
        }
        if !entry.exposures.is_empty() {
            let names: Vec<&str> = entry.exposures.iter().map(|exposure| exposure.name.as_str()).collect();
            rows.push(("exposures", names.join(", ")));
        }
        if !entry.owners.is_empty() {
            rows.push(("owners", entry.owners.join(", ")));
        }
        rows.push(("consumers", consumers(entry)));
        doc.pairs(4, rows);
    }
}

/// Nobody known is never presented as nobody there.
fn consumers(entry: &ImpactEntry) -> String {
    let known: Vec<String> = (entry.consumers.iter())
        .map(|consumer| {
            let undeclared = if consumer.declared { "" } else { " [undeclared]" };
            format!("{} (lag {}){undeclared}", consumer.group_id, consumer.lag)
        })
        .collect();
    let reason = entry.consumer_evidence.reason.as_deref().unwrap_or("not observed");
    match (entry.consumer_evidence.status, known.is_empty()) {
        (EvidenceStatus::Verified, true) => "none seen".to_owned(),
        (EvidenceStatus::Verified, false) => known.join(", "),
        (EvidenceStatus::Partial | EvidenceStatus::Unavailable | EvidenceStatus::Failed, true) => {
            format!("unknown ({reason})")
        }
        (EvidenceStatus::Partial | EvidenceStatus::Unavailable | EvidenceStatus::Failed, false) => {
            format!("{}, others unknown ({reason})", known.join(", "))
        }
    }
}

fn counts(doc: &mut Doc, plan: &PlanPayload) {
    let summary = &plan.summary;
    let mut text = format!(
        "Plan: {} to create, {} to update, {} to delete, risk: {}",
        summary.creates,
        summary.updates,
        summary.deletes,
        plan.risk_summary.overall.as_str()
    );
    let blocking = plan.ownership_requirements.iter().filter(|entry| entry.reason.blocks()).count();
    if blocking > 0 {
        text.push_str(&format!(", {blocking} ownership requirement{}", if blocking == 1 { "" } else { "s" }));
    }
    if summary.safety_blockers > 0 {
        let many = if summary.safety_blockers == 1 { "" } else { "s" };
        text.push_str(&format!(", {} safety blocker{many}", summary.safety_blockers));
    }
    if summary.is_apply_blocked {
        text.push_str(" (blocked)");
    }
    doc.line(Line::new().tone(Tone::Heading, text));
}
