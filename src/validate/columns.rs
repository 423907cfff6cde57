//! Pass 8: type texts of columns. Whether the SQL uses existing columns needs the query's scopes and is not decided here.

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::project::origin::Origin;
use crate::sql::types::parse_type;

use super::context::Ctx;

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    let project = ctx.project;
    for source in &project.sources {
        let owner = format!("Source '{}'", source.name);
        let columns = source.columns.iter().map(|column| (column.name.as_str(), column.data_type.as_deref()));
        types(&owner, &source.origin, "columns", columns, findings);
    }
    for model in &project.models {
        let owner = format!("Model '{}'", model.name);
        let columns = model.columns.iter().map(|column| (column.name.as_str(), column.data_type.as_deref()));
        types(&owner, &model.origin, "columns", columns, findings);
        let promised = model.contract.iter().flat_map(|contract| &contract.columns);
        let promised = promised.map(|column| (column.name.as_str(), column.data_type.as_deref()));
        types(&owner, &model.origin, "contract.columns", promised, findings);
    }
    for exposure in &project.exposures {
        let owner = format!("Exposure '{}'", exposure.name);
        let columns = exposure.columns.iter().map(|column| (column.name.as_str(), column.data_type.as_deref()));
        types(&owner, &exposure.origin, "columns", columns, findings);
    }
}

fn types<'a>(
    owner: &str,
    origin: &Origin,
    field: &str,
    columns: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    findings: &mut Diagnostics,
) {
    for (index, (name, data_type)) in columns.enumerate() {
        let Some(data_type) = data_type else { continue };
        if let Err(error) = parse_type(data_type) {
            let message = format!("{owner}: '{data_type}' of column '{name}' is not a type that Flink knows");
            let place = format!("{field}.{index}.type");
            let diagnostic = Diagnostic::new(Code::W302UnknownTypeText, message).suggest(error.to_string());
            findings.push(origin.mark(&place, diagnostic));
        }
    }
}
