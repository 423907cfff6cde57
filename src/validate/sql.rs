//! Pass 4, the SQL of a model: what can be said from its tokens and its outline.

use crate::codes::{Code, Diagnostic, Diagnostics};
use crate::project::model::Materialized;
use crate::sql::outline::Outline;
use crate::sql::parse::DOUBLE_QUOTE;
use crate::sql::{Span, Token, TokenKind};

use super::context::Ctx;
use super::facts::Facts;
use super::models::has_confluent_flink;

pub(super) fn check(ctx: &Ctx, facts: &Facts, findings: &mut Diagnostics) {
    let Some(outline) = facts.outline() else { return };
    no_from(facts, outline, findings);
    double_quotes(facts, outline, findings);
    // A Gateway filter can express nothing but `SELECT *`.
    if facts.materialized() != Materialized::VirtualTopic {
        select_star(facts, outline, findings);
    }
    ml_functions(ctx, facts, outline, findings);
}

fn no_from(facts: &Facts, outline: &Outline, findings: &mut Diagnostics) {
    let reads = outline.tokens().iter().any(|token| token.is_word(outline.text(), "FROM"));
    if !reads {
        let message = format!("Model '{}': the SQL has no FROM, so it reads nothing", facts.model.name);
        let span = outline.tokens().first().map_or(Span::new(0, 0), |token| token.span);
        findings.push(facts.mark_sql(span, Diagnostic::new(Code::W204SqlNoFrom, message)));
    }
}

fn double_quotes(facts: &Facts, outline: &Outline, findings: &mut Diagnostics) {
    let Some(token) = outline.tokens().iter().find(|token| token.is_symbol(outline.text(), "\"")) else { return };
    let message = format!("Model '{}': {DOUBLE_QUOTE}", facts.model.name);
    findings.push(facts.mark_sql(token.span, Diagnostic::new(Code::W201SqlParseWarning, message)));
}

fn select_star(facts: &Facts, outline: &Outline, findings: &mut Diagnostics) {
    let Some(select) = outline.select() else { return };
    let star = select.items.iter().find(|item| {
        let text = item.span.of(outline.text());
        text == "*" || text.ends_with(".*")
    });
    if let Some(item) = star {
        let message =
            format!("Model '{}' selects everything: a new input column becomes an output column", facts.model.name);
        findings.push(
            facts.mark_sql(item.span, Diagnostic::new(Code::W213SelectStar, message)).suggest("List the columns"),
        );
    }
}

fn ml_functions(ctx: &Ctx, facts: &Facts, outline: &Outline, findings: &mut Diagnostics) {
    let (text, tokens) = (outline.text(), outline.tokens());
    for (index, token) in tokens.iter().enumerate() {
        let predict = token.is_word(text, "ML_PREDICT");
        let called = tokens.get(index + 1).is_some_and(|next| next.is_symbol(text, "("));
        if !called || !(predict || token.is_word(text, "ML_EVALUATE")) {
            continue;
        }
        let function = token.span.of(text).to_ascii_uppercase();
        if !has_confluent_flink(ctx) {
            let message = format!("Model '{}': {function} needs a Flink cluster of type confluent", facts.model.name);
            findings.push(
                facts
                    .mark_sql(token.span, Diagnostic::new(Code::E203ConfluentFlinkRequired, message))
                    .suggest("Add a cluster of type confluent to runtime.flink"),
            );
            continue;
        }
        let Some((name, span)) = first_argument(text, &tokens[index + 2..]) else { continue };
        if predict && !facts.model.ml_outputs.as_ref().is_some_and(|outputs| outputs.contains_key(&name)) {
            let message = format!("Model '{}': the output of ML model '{name}' is not declared", facts.model.name);
            findings.push(
                facts
                    .mark_sql(span, Diagnostic::new(Code::W218MlPredictOpaqueOutput, message))
                    .suggest(format!("Declare ml_outputs.{name}.columns")),
            );
        }
    }
}

/// An identifier, a string, or either inside `TABLE …` or `TABLE(…)`.
fn first_argument(text: &str, tokens: &[Token]) -> Option<(String, Span)> {
    let token = tokens.iter().find(|token| !token.is_word(text, "TABLE") && !token.is_symbol(text, "("))?;
    let raw = token.span.of(text);
    let name = match token.kind {
        TokenKind::Word => raw.to_owned(),
        TokenKind::QuotedIdentifier => raw.trim_matches('`').replace("``", "`"),
        TokenKind::String => raw.trim_matches('\'').replace("''", "'"),
        TokenKind::Number | TokenKind::Comment | TokenKind::Hint | TokenKind::Call(_) | TokenKind::Symbol => {
            return None;
        }
    };
    Some((name, token.span))
}
