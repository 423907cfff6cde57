//! Kinds that this version compiles but cannot deploy.

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::DesiredResource;
use crate::compiler::artifact::Kind;
use crate::project::model::OwnershipMode;

use super::{Desired, Selection};

/// More names than this are counted, not listed.
const LISTED: usize = 10;

/// One E221 naming every resource to deploy whose kind has no deployer; empty when there is none. External ones are fine.
pub fn refuse_undeployable(desired: &Desired<'_>, selection: Option<&Selection>) -> Diagnostics {
    let owners = desired.owners();
    let kept = |owner: &str| selection.is_none_or(|selection| selection.names(owner));
    let mut first = None;
    let mut names = Vec::new();
    for resource in desired.resources.iter().filter(|r| !r.kind.deployable() && r.mode != OwnershipMode::External) {
        let owner = owners.get(&(resource.kind, resource.physical_name.as_str()));
        if kept(owner.map_or(resource.logical_name.as_str(), |owner| owner.name.as_str())) {
            first = first.or(Some(resource));
            names.push(format!("{} '{}'", resource.kind, shown(resource)));
        }
    }
    // A removal forbids any selection, so it is never outside one.
    for (kind, owner) in desired.declared.removals.iter().filter(|(kind, _)| !kind.deployable()) {
        names.push(format!("removal of {kind} '{owner}'"));
    }
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Diagnostics::new();
    }
    let more = names.len().saturating_sub(LISTED);
    let mut list = names[..names.len() - more].join(", ");
    if more > 0 {
        list.push_str(&format!(" and {more} more"));
    }
    Diagnostic::new(Code::E221KindNotDeployable, format!("this version cannot deploy {list}"))
        .at_opt(first.and_then(|resource| resource.location()))
        .explain(
            "it deploys topics, schemas, Flink jobs and connectors; the other kinds are validated and compiled only",
        )
        .suggest(
            "declare those models `ownership: {mode: external}`, take them out of this project, \
             or limit a direct apply to models without them: `apply --target` or `--select`",
        )
        .into()
}

/// Of a runner job the physical name is an id, which nobody wrote.
fn shown(resource: &DesiredResource) -> &str {
    match resource.kind {
        Kind::KafkaStreamsJob => &resource.logical_name,
        Kind::Schema | Kind::Topic | Kind::FlinkJob | Kind::Connector | Kind::GatewayRule => &resource.physical_name,
    }
}
