//! Pass 12: versions of models. A name is one model (E103), so a number alone says nothing about others; only where a name is
//! declared several times are the numbers compared, to say what is wrong with them.

use std::collections::HashMap;

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
    for model in &ctx.project.models {
        let Some(version) = model.version.filter(|version| *version > 1) else { continue };
        let has_older = first.keys().any(|(name, older)| *name == model.name && *older < version);
        if has_older && !first.contains_key(&(model.name.as_str(), version - 1)) {
            let message = format!("Model '{}' has version {version} and no version {}", model.name, version - 1);
            findings.push(model.origin.mark("version", Diagnostic::new(Code::W217VersionGap, message)));
        }
    }
}
