//! Pass 9: what a model promises against what it declares to have, and what applications need against what is declared.
//! Types are compared by family and only where both are known: those that the SQL gives, else the declared ones.

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::compiler::kafka_streams::Field;
use crate::project::model::{Column, ContractColumn, Exposure, Model, Reference};
use crate::sql::types::SqlType;

use super::context::Ctx;
use super::facts::Facts;

pub(super) fn check(ctx: &Ctx, findings: &mut Diagnostics) {
    for facts in &ctx.facts {
        contract(facts, findings);
    }
    for exposure in &ctx.project.exposures {
        needs(ctx, exposure, findings);
    }
}

fn contract(facts: &Facts, findings: &mut Diagnostics) {
    let model = facts.model;
    let Some(contract) = &model.contract else { return };
    let (missing, mismatch) = match contract.enforced {
        true => (Code::E114ContractMissingColumn, Code::E115ContractTypeMismatch),
        false => (Code::W303ContractMissingColumn, Code::W304ContractTypeMismatch),
    };
    let produced = produced_names(facts, contract.enforced);
    for (index, promised) in contract.columns.iter().enumerate() {
        if let Some(produced) = &produced
            && !produced.contains(&promised.name.as_str())
        {
            let message = format!("Model '{}' promises column '{}' and does not have it", model.name, promised.name);
            findings.push(
                model
                    .origin
                    .mark(&format!("contract.columns.{index}.name"), Diagnostic::new(missing, message))
                    .suggest_opt(crate::codes::suggest::hint(&promised.name, "column", produced.iter().copied())),
            );
            continue;
        }
        let declared = model.columns.iter().find(|column| column.name == promised.name);
        let declared = declared.and_then(|column| column.data_type.as_deref());
        let given = given_type(facts, &promised.name);
        let verb = if given.is_some() { "gives" } else { "declares" };
        let Some((had, wanted)) = differing(given.as_deref().or(declared), promised) else { continue };
        let message =
            format!("Model '{}' promises column '{}' as {wanted} and {verb} it as {had}", model.name, promised.name);
        findings.push(model.origin.mark(&format!("contract.columns.{index}.type"), Diagnostic::new(mismatch, message)));
    }
}

/// The names of the output columns, when they are known: those of the SELECT list, else the declared ones. Declared columns
/// beside SQL may be partial notes, unless an enforced contract makes them the whole.
fn produced_names<'a>(facts: &'a Facts, enforced: bool) -> Option<Vec<&'a str>> {
    if let Some(names) = facts.output_names() {
        return Some(names);
    }
    let whole = !facts.has_sql() || enforced;
    let declared = &facts.model.columns;
    (whole && !declared.is_empty()).then(|| declared.iter().map(|column| column.name.as_str()).collect())
}

/// The type that the SQL gives a column.
fn given_type(facts: &Facts, name: &str) -> Option<String> {
    let Some(Ok(analysis)) = facts.analysis() else { return None };
    let column = analysis.columns.iter().find(|column| column.name.as_deref() == Some(name))?;
    (column.data_type != SqlType::Unknown).then(|| column.data_type.to_string())
}

fn differing<'a>(had: Option<&'a str>, promised: &'a ContractColumn) -> Option<(&'a str, &'a str)> {
    let (had, wanted) = (had?, promised.data_type.as_deref()?);
    (family(had)? != family(wanted)?).then_some((had, wanted))
}

/// What one input says of its columns: name and type.
enum Evidence<'a> {
    Contract(&'a [ContractColumn]),
    Columns(&'a [Column]),
    /// What Kafka Streams writes.
    Proven(Vec<Field>),
}

impl Evidence<'_> {
    fn names(&self) -> Vec<&str> {
        match self {
            Self::Proven(fields) => fields.iter().map(|field| field.name.as_str()).collect(),
            Self::Contract(columns) => columns.iter().map(|column| column.name.as_str()).collect(),
            Self::Columns(columns) => columns.iter().map(|column| column.name.as_str()).collect(),
        }
    }

    /// None = no such column.
    fn type_of(&self, name: &str) -> Option<Option<&str>> {
        match self {
            Self::Proven(fields) => {
                fields.iter().find(|field| field.name == name).map(|field| Some(field.data_type.as_str()))
            }
            Self::Contract(columns) => {
                columns.iter().find(|column| column.name == name).map(|column| column.data_type.as_deref())
            }
            Self::Columns(columns) => {
                columns.iter().find(|column| column.name == name).map(|column| column.data_type.as_deref())
            }
        }
    }
}

/// A contract speaks even when it lists nothing; columns only when there are some.
fn evidence<'a>(ctx: &Ctx<'a>, reference: &Reference) -> Option<Evidence<'a>> {
    let of_model = |model: &&'a Model| match &model.contract {
        Some(contract) => Some(Evidence::Contract(&contract.columns)),
        None => (!model.columns.is_empty()).then_some(Evidence::Columns(&model.columns)),
    };
    match reference {
        Reference::Model(name) => match ctx.plans.get(name.as_str()) {
            Some(Ok(plan)) => Some(Evidence::Proven(plan.gives())),
            Some(Err(_)) | None => ctx.models.get(name.as_str()).and_then(of_model),
        },
        Reference::Source(name) => {
            let source = ctx.sources.get(name.as_str())?;
            (!source.columns.is_empty()).then_some(Evidence::Columns(&source.columns))
        }
    }
}

/// Every column of an exposure is needed from every input that it consumes.
fn needs(ctx: &Ctx, exposure: &Exposure, findings: &mut Diagnostics) {
    for reference in exposure.consumes.iter().flatten() {
        let Some(evidence) = evidence(ctx, reference) else { continue };
        for (index, needed) in exposure.columns.iter().enumerate() {
            let Some(declared) = evidence.type_of(&needed.name) else {
                let message = format!(
                    "Exposure '{}' needs column '{}' of '{}', which does not declare it",
                    exposure.name,
                    needed.name,
                    reference.name()
                );
                findings.push(
                    exposure
                        .origin
                        .mark(
                            &format!("columns.{index}.name"),
                            Diagnostic::new(Code::E116ContractBreakingChange, message),
                        )
                        .suggest_opt(crate::codes::suggest::hint(&needed.name, "column", evidence.names())),
                );
                continue;
            };
            let (Some(declared), Some(wanted)) = (declared, needed.data_type.as_deref()) else { continue };
            let (Some(had), Some(want)) = (family(declared), family(wanted)) else { continue };
            if had != want {
                let message = format!(
                    "Exposure '{}' needs column '{}' of '{}' as {wanted}, which declares it as {declared}",
                    exposure.name,
                    needed.name,
                    reference.name()
                );
                findings.push(exposure.origin.mark(
                    &format!("columns.{index}.type"),
                    Diagnostic::new(Code::E117ContractConsumerTypeMismatch, message),
                ));
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Family {
    Text,
    Int,
    Bigint,
    Float,
    Boolean,
    Timestamp,
    Date,
    Time,
    Bytes,
}

/// The family of a type text: one word, at most two numbers in parentheses. None = not compared.
pub(super) fn family(data_type: &str) -> Option<Family> {
    let text = data_type.trim();
    let (word, rest) = text.split_at(text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let rest = rest.trim();
    let numbers = match rest.strip_prefix('(') {
        Some(inner) => {
            let inner = inner.strip_suffix(')')?;
            let numeric = |part: &str| !part.trim().is_empty() && part.trim().bytes().all(|byte| byte.is_ascii_digit());
            inner.split(',').count() <= 2 && inner.split(',').all(numeric)
        }
        None => rest.is_empty(),
    };
    if !numbers {
        return None;
    }
    match word.to_ascii_uppercase().as_str() {
        "STRING" | "VARCHAR" | "TEXT" | "CHAR" => Some(Family::Text),
        "INT" | "INTEGER" | "SMALLINT" | "TINYINT" => Some(Family::Int),
        "BIGINT" | "LONG" => Some(Family::Bigint),
        "DOUBLE" | "FLOAT" | "DECIMAL" | "NUMERIC" | "REAL" => Some(Family::Float),
        "BOOLEAN" | "BOOL" => Some(Family::Boolean),
        "TIMESTAMP" | "DATETIME" => Some(Family::Timestamp),
        "DATE" => Some(Family::Date),
        "TIME" => Some(Family::Time),
        "BYTES" => Some(Family::Bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_ignore_precision_and_leave_structured_types_out() {
        for (text, expected) in [
            ("VARCHAR(20)", Some(Family::Text)),
            (" decimal( 10 , 2 ) ", Some(Family::Float)),
            ("SMALLINT", Some(Family::Int)),
            ("LONG", Some(Family::Bigint)),
            ("TIMESTAMP(3)", Some(Family::Timestamp)),
            ("TIME", Some(Family::Time)),
            ("TIMESTAMP_LTZ(3)", None),
            ("ARRAY<INT>", None),
            ("ROW<a INT>", None),
            ("DECIMAL(1,2,3)", None),
            ("DECIMAL()", None),
            ("STRING NOT NULL", None),
            ("", None),
        ] {
            assert_eq!(family(text), expected, "{text}");
        }
    }
}
