//! Judgement of a loaded project: the passes over declarations and the compiler's resolution, in one fixed order. Pure: a
//! registry's answers enter as values. It promises that every finding names the exact field, that the same project gives the
//! same list, and that a rule shared with the compiler is the compiler's own. It stands above `project` and `compiler`, so
//! that neither needs to know it; shape errors stay the loader's business.

mod assertions;
mod columns;
mod context;
mod contracts;
mod exposures;
mod facts;
mod graph;
mod kafka_streams;
mod live;
mod masking;
mod models;
mod query;
mod references;
mod refusals;
mod rules;
mod sources;
mod sql;
mod topics;
mod usage;
mod versions;

pub use live::{
    SchemaAnswer, SchemaCheck, SchemaQuestion, SchemaReport, SchemaStatus, judge_schemas, schema_questions,
};

use crate::codes::Diagnostics;
use crate::compiler::columns::Columns;
use crate::compiler::resolve::{ResolvedModel, resolve};
use crate::compiler::unique::check_names;
use crate::project::Project;

use context::{Ctx, Pass};

/// The passes after the names, the sources and the compiler's resolution, in order.
const AFTER: [Pass; 10] = [
    models::check,
    assertions::check,
    exposures::check,
    graph::check,
    columns::check,
    contracts::check,
    references::check,
    rules::check,
    topics::check,
    versions::check,
];

/// All findings of the offline passes, errors and warnings, in the order of the passes and then of the declarations.
pub fn validate(project: &Project) -> Diagnostics {
    let (resolution, resolution_findings) = resolve(project);
    validate_resolved(project, &resolution, resolution_findings)
}

fn validate_resolved(project: &Project, resolution: &[ResolvedModel], resolution_findings: Diagnostics) -> Diagnostics {
    let columns = Columns::of(project, resolution);
    let ctx = Ctx::new(project, resolution, &columns);
    let mut findings = check_names(project);
    sources::check(&ctx, &mut findings);
    findings.extend(resolution_findings);
    for pass in AFTER {
        pass(&ctx, &mut findings);
    }
    usage::check(&ctx, &mut findings);
    kafka_streams::check(&ctx, &mut findings);
    findings
}

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod examples_tests;
#[cfg(test)]
mod live_tests;
#[cfg(test)]
mod tests;
