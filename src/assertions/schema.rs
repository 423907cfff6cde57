//! Tests of the declared columns: nothing is read.

use crate::compiler::columns::TableColumn;
use crate::project::model::Test;
use crate::sql::types::SqlType;

use super::{Accepted, Verdict, run, text, texts, types, unknown_word};

/// `columns`: those of the source or model; none when they are not known.
pub fn judge_schema(test: &Test, columns: Option<&[TableColumn]>) -> Verdict {
    let Some(columns) = columns else {
        return Verdict::error(test, format!("the columns of '{}' are not known: declare them", test.model));
    };
    let find = |name: &str| columns.iter().find(|column| *column.name == *name);
    let absent = |kind: &str, name: &str| format!("{kind}: '{}' has no column '{name}'", test.model);
    run(test, |kind, body, findings| match kind {
        "not_null" => {
            let missing = texts(body, "columns").filter(|name| find(name).is_none());
            findings.violations.extend(missing.map(|name| absent(kind, name)));
        }
        "accepted_types" => {
            for (name, word) in types(body) {
                match (find(name), Accepted::of(word)) {
                    (None, _) => findings.violations.push(absent(kind, name)),
                    (Some(_), None) => findings.violations.push(unknown_word(name, word)),
                    (Some(column), Some(_)) if column.data_type == SqlType::Unknown => {
                        findings.notes.push(format!("{kind}: the type of column '{name}' is not known"));
                    }
                    (Some(column), Some(accepted)) if !is_of(&column.data_type, accepted) => {
                        let message = format!("{kind}: column '{name}' is {}, not {word}", column.data_type);
                        findings.violations.push(message);
                    }
                    (Some(_), Some(_)) => {}
                }
            }
        }
        "range" => {
            let name = text(body, "column");
            match find(name) {
                None => findings.violations.push(absent(kind, name)),
                Some(column) if column.data_type == SqlType::Unknown => {
                    findings.notes.push(format!("{kind}: the type of column '{name}' is not known"));
                }
                Some(column) if !is_of(&column.data_type, Accepted::Number) => {
                    findings.violations.push(format!("{kind}: column '{name}' is {}, no number", column.data_type));
                }
                Some(_) => {}
            }
        }
        _ => {
            let name = if kind == "unique_key" { text(body, "key") } else { text(body, "column") };
            if find(name).is_none() {
                findings.violations.push(absent(kind, name));
            }
        }
    })
}

fn is_of(data_type: &SqlType, accepted: Accepted) -> bool {
    let families: &[Accepted] = match data_type {
        SqlType::Char(_) | SqlType::String | SqlType::Varchar(_) => &[Accepted::Text],
        SqlType::Boolean => &[Accepted::Boolean],
        SqlType::TinyInt | SqlType::SmallInt | SqlType::Int => &[Accepted::Int, Accepted::Number],
        SqlType::BigInt => &[Accepted::Bigint, Accepted::Number],
        SqlType::Float | SqlType::Double | SqlType::Decimal { .. } => &[Accepted::Double, Accepted::Number],
        SqlType::Date => &[Accepted::Date],
        SqlType::Time(_) => &[Accepted::Time],
        SqlType::Timestamp(_) | SqlType::TimestampLtz(_) => &[Accepted::Timestamp],
        SqlType::Binary(_)
        | SqlType::Varbinary(_)
        | SqlType::Bytes
        | SqlType::Array(_)
        | SqlType::Map(..)
        | SqlType::Multiset(_)
        | SqlType::Row(_)
        | SqlType::Variant
        | SqlType::Unknown => &[],
    };
    families.contains(&accepted)
}
