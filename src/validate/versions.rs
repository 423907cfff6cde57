//! Pass 12: versions of models. A name is one model (E103): versions side by side are models with names of their own, each the
//! common name with `_v` and its number. A number that stands alone says nothing about others and is not warned of.

use std::collections::{BTreeSet, HashMap};

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::project::model::Model;

use super::context::{Ctx, place};

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    let mut first: HashMap<(&str, i64), &Model> = HashMap::new();
    for model in &ctx.project.models {
        let Some(version) = model.version else { continue };
        match first.get(&(model.name.as_str(), version)) {
            None => {
                first.insert((&model.name, version), model);
            }
            Some(earlier) => {
                let message = format!(
                    "Model '{}' declares version {version} again: first declared{}",
                    model.name,
                    place(&earlier.origin)
                );
                findings.push(
                    model
                        .origin
                        .mark("version", Diagnostic::new(Code::E118DuplicateVersion, message))
                        .suggest("Give the newer declaration the next number"),
                );
            }
        }
    }
    let mut families: HashMap<&str, BTreeSet<i64>> = HashMap::new();
    for model in &ctx.project.models {
        if let Some(version) = model.version {
            families.entry(family(model, version)).or_default().insert(version);
        }
    }
    for model in &ctx.project.models {
        let Some(version) = model.version else { continue };
        let name = family(model, version);
        let Some(older) = families.get(name).and_then(|versions| versions.range(..version).next_back()) else {
            continue;
        };
        if *older < version - 1 {
            let message = format!("'{name}' has versions {older} and {version} and none in between");
            findings.push(model.origin.mark("version", Diagnostic::new(Code::W217VersionGap, message)));
        }
    }
}

/// What versions of one model have in common: `orders` of `orders_v2`, if that has version 2.
fn family(model: &Model, version: i64) -> &str {
    let suffix = format!("_v{version}");
    model.name.strip_suffix(&suffix).filter(|common| !common.is_empty()).unwrap_or(&model.name)
}
