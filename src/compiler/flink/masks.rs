//! Masks of a model's columns: the items of the outermost SELECT that give them, and nothing else of the text, are written anew.

use crate::codes::{Code, Diagnostic};
use crate::compiler::context::Context;
use crate::project::model::Model;
use crate::sql::Outline;
use crate::sql::types::{SqlType, quoted};

use super::{Refusal, SinkColumn};

/// The query with its masks. E219 for a mask that the query cannot carry, W227 for one that is only near to what was asked.
pub(super) fn apply(
    context: &mut Context<'_>,
    model: &Model,
    text: String,
    columns: &[SinkColumn],
) -> Result<String, Refusal> {
    let Some(security) = &model.security else { return Ok(text) };
    let masks: Vec<(usize, &str, &str)> = security.masks().collect();
    if masks.is_empty() {
        return Ok(text);
    }
    let refuse = |index: usize, message: String, hint: &str| {
        let finding = Diagnostic::new(Code::E219MaskUnsupported, message).suggest(hint);
        Box::new(model.origin.mark(&format!("security.policies.{index}"), finding))
    };
    let outline = Outline::parse(&text).ok();
    let select = outline.as_ref().and_then(Outline::select);
    let mut edits = Vec::new();
    for (index, column, method) in masks {
        let cannot = format!("model '{}' cannot mask column '{column}'", model.name);
        let hint = "List the column in one plain SELECT, or mask it in a model that reads this one";
        if outline.as_ref().is_some_and(combines) {
            return Err(refuse(index, format!("{cannot}: its SQL combines several queries"), hint));
        }
        let Some(select) = select else {
            return Err(refuse(index, format!("{cannot}: its SQL is no plain SELECT"), hint));
        };
        let items: Vec<_> = select.items.iter().filter(|item| item.name.as_deref() == Some(column)).collect();
        if items.is_empty() {
            return Err(refuse(index, format!("{cannot}: it is not in the SELECT list"), hint));
        }
        let data_type = columns.iter().find(|known| known.name == column).map(|known| &known.data_type);
        let data_type = data_type.unwrap_or(&SqlType::Unknown);
        for item in items {
            let Some(masked) = masked(item.expression.of(&text), method, data_type) else {
                let message = format!("{cannot} by {method}: it is {data_type}, not a text");
                return Err(refuse(index, message, "Use the method null, or cast the column to STRING"));
            };
            edits.push((item.span, format!("{} AS {}", masked.text, name(column))));
            if masked.approximate {
                let message = format!("model '{}' masks column '{column}' by {method} only approximately", model.name);
                let finding = Diagnostic::new(Code::W227MaskMethodApproximated, message);
                context.findings.push(model.origin.mark(&format!("security.policies.{index}"), finding));
            }
        }
        let roles = security.policies[index]["mask"].get("for_roles").and_then(|roles| roles.as_array());
        if roles.is_some_and(|roles| !roles.is_empty()) {
            let message = format!("model '{}' masks column '{column}' for everybody: Flink knows no roles", model.name);
            let finding = Diagnostic::new(Code::W227MaskMethodApproximated, message);
            context.findings.push(model.origin.mark(&format!("security.policies.{index}"), finding));
        }
    }
    edits.sort_by_key(|(span, _)| span.start);
    let mut result = String::with_capacity(text.len() * 2);
    let mut end = 0;
    for (span, replacement) in edits {
        // Of two policies for one item the first stands.
        if span.start < end {
            continue;
        }
        result.push_str(&text[end..span.start]);
        result.push_str(&replacement);
        end = span.end;
    }
    result.push_str(&text[end..]);
    Ok(result)
}

/// The name as it may stand behind AS; a plain word needs no quotes.
fn name(column: &str) -> String {
    let plain = column.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && column.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !crate::sql::parse::is_reserved(column);
    if plain { column.to_owned() } else { quoted(column) }
}

/// Whether a UNION or its like stands at the outermost level: a mask of its first query would leave the others bare.
fn combines(outline: &Outline<'_>) -> bool {
    let text = outline.text();
    let mut open = 0i32;
    for token in outline.tokens() {
        if token.is_symbol(text, "(") {
            open += 1;
        } else if token.is_symbol(text, ")") {
            open -= 1;
        } else if open == 0 && ["UNION", "INTERSECT", "EXCEPT"].iter().any(|word| token.is_word(text, word)) {
            return true;
        }
    }
    false
}

struct Masked {
    text: String,
    approximate: bool,
}

/// None: the method cannot be had for the type.
fn masked(expression: &str, method: &str, data_type: &SqlType) -> Option<Masked> {
    let is_text = matches!(data_type, SqlType::String | SqlType::Char(_) | SqlType::Varchar(_));
    let unknown = *data_type == SqlType::Unknown;
    let x = if unknown { format!("CAST({expression} AS STRING)") } else { expression.to_owned() };
    let exactly = |text: String| Some(Masked { text, approximate: false });
    let about = |text: String| Some(Masked { text, approximate: true });
    match (method, is_text || unknown) {
        ("hash", true) => exactly(format!("SHA256({x})")),
        ("redact", true) => exactly(format!("CASE WHEN {x} IS NULL THEN CAST(NULL AS STRING) ELSE '***' END")),
        ("partial", true) => exactly(format!(
            "CASE WHEN CHAR_LENGTH({x}) > 4 THEN CONCAT(REPEAT('*', CHAR_LENGTH({x}) - 4), RIGHT({x}, 4)) \
             ELSE REPEAT('*', CHAR_LENGTH({x})) END"
        )),
        ("tokenize", true) => about(format!("CONCAT('tok_', SHA256({x}))")),
        ("hash" | "tokenize", false) => None,
        ("redact" | "partial", false) => about(format!("CAST(NULL AS {data_type})")),
        _ => exactly(format!("CAST(NULL AS {data_type})")),
    }
}
