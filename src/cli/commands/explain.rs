//! `streamt explain`: what a code or a word of a plan means, and what to do about it.

use clap::Args;
use serde::Serialize;

use crate::cli::doc::{Doc, Line, Tone};
use crate::cli::outcome::{CmdResult, Failure, Outcome, exit};
use crate::codes::{Code, Diagnostic, Page, find_page, pages, suggest};
use crate::project::schema::describe;

/// Explain an error code, a warning code, or a word of a plan
///
/// CODE is the full code (E409_PLAN_STALE), its number (E409) or a word such as kafka_partition_reduction.
/// `streamt explain yaml models.topic.partitions` explains a field of the project files.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A code, a word, or `yaml`
    #[arg(value_name = "CODE|NAME|yaml", required_unless_present = "list")]
    name: Option<String>,

    /// The field to explain, after `yaml`: for example models.topic.partitions
    #[arg(value_name = "PATH")]
    path: Option<String>,

    /// List every code and word
    #[arg(long, conflicts_with_all = ["name", "path"])]
    list: bool,

    /// Only codes of one family: the first digit, 1 to 9
    #[arg(long, value_name = "N", requires = "list", value_parser = clap::value_parser!(u8).range(1..=9))]
    family: Option<u8>,
}

#[derive(Serialize)]
struct PageData {
    code: &'static str,
    family: Option<String>,
    #[serde(flatten)]
    page: PageRest,
}

#[derive(Serialize)]
struct PageRest {
    kind: serde_json::Value,
    title: &'static str,
    meaning: String,
    causes: Vec<String>,
    remedy: Vec<String>,
    emitted_by: Vec<&'static str>,
    retry: serde_json::Value,
    docs_url: Option<String>,
    aliases: Vec<&'static str>,
}

#[derive(Serialize)]
struct ListData {
    codes: Vec<ListRow>,
}

#[derive(Serialize)]
struct ListRow {
    code: &'static str,
    kind: serde_json::Value,
    title: &'static str,
}

pub fn run(args: &ExplainArgs) -> CmdResult {
    match (args.name.as_deref(), args.path.as_deref()) {
        (None, _) => Ok(list(args.family)),
        (Some("yaml"), Some(path)) => explain_field(path),
        (Some("yaml"), None) => Err(Failure::usage("`explain yaml` needs the path of a field")
            .hint("For example: streamt explain yaml models.topic.partitions")),
        (Some(name), Some(_)) => Err(Failure::usage(format!("`explain {name}` takes no second argument"))),
        (Some(name), None) => explain(name),
    }
}

fn explain(name: &str) -> CmdResult {
    let Some(page) = find_page(name) else {
        let known: Vec<Page> = pages().collect();
        let candidates = known.iter().map(|page| page.code);
        let error = Diagnostic::new(Code::E902Usage, format!("'{name}' is neither a code nor a word of a plan"))
            .suggest_opt(suggest::did_you_mean(name, candidates).or(Some("streamt explain --list shows all".into())));
        return Err(Failure::new(error).exit(exit::USAGE));
    };
    let text = text(&page);
    Ok(Outcome::new(&data(page), text))
}

/// A field of the project files, as the JSON Schema knows it.
fn explain_field(path: &str) -> CmdResult {
    let field = describe(path).map_err(|error| Failure::new(error).exit(exit::USAGE))?;
    let mut text = Doc::new();
    text.line(Line::new().tone(Tone::Heading, field.path.as_str()).plain(format!(": {}", field.kind)));
    if !field.description.is_empty() {
        text.line(field.description);
    }
    let mut rows = vec![("required", if field.required { "yes" } else { "no" }.to_owned())];
    if let Some(default) = &field.default {
        rows.push(("default", default.to_string()));
    }
    if !field.values.is_empty() {
        rows.push(("values", field.values.join(", ")));
    }
    rows.extend(field.minimum.map(|minimum| ("minimum", minimum.to_string())));
    rows.extend(field.maximum.map(|maximum| ("maximum", maximum.to_string())));
    if !field.fields.is_empty() {
        rows.push(("fields", field.fields.join(", ")));
    }
    rows.push(("wrong value", field.code.to_string()));
    text.pairs(2, rows);
    Ok(Outcome::new(&field, text))
}

fn family(code: &str) -> Option<String> {
    let digit =
        code.as_bytes().get(1).filter(|digit| digit.is_ascii_digit() && code.as_bytes()[0].is_ascii_uppercase());
    digit.map(|&digit| char::from(digit).to_string())
}

fn data(page: Page) -> PageData {
    PageData {
        code: page.code,
        family: family(page.code),
        page: PageRest {
            kind: crate::cli::outcome::json(&page.kind),
            title: page.title,
            meaning: page.meaning,
            causes: page.causes,
            remedy: page.remedy,
            emitted_by: page.emitted_by,
            retry: crate::cli::outcome::json(&page.retry),
            docs_url: None,
            aliases: page.aliases,
        },
    }
}

fn text(page: &Page) -> Doc {
    let mut doc = Doc::new();
    doc.line(Line::new().tone(Tone::Heading, page.code).plain(format!(": {}", page.title)));
    doc.blank().text(0, page.meaning.clone());
    for (heading, items) in [("Causes", &page.causes), ("What to do", &page.remedy)] {
        if !items.is_empty() {
            doc.blank().heading(heading);
            for item in items {
                doc.line(format!("  - {item}"));
            }
        }
    }
    let retry = match page.retry {
        crate::codes::Retry::Safe => "the same command may simply be repeated",
        crate::codes::Retry::AfterChange => "something has to change first",
        crate::codes::Retry::Stop => "do not repeat before the outcome is known",
    };
    doc.blank();
    doc.pairs(0, [("Raised by", page.emitted_by.join(", ")), ("Repeat", retry.to_owned())]);
    doc
}

fn list(family_asked: Option<u8>) -> Outcome {
    let wanted = family_asked.map(|digit| digit.to_string());
    let rows: Vec<ListRow> = pages()
        .filter(|page| wanted.is_none() || family(page.code) == wanted)
        .map(|page| ListRow { code: page.code, kind: crate::cli::outcome::json(&page.kind), title: page.title })
        .collect();
    let mut text = Doc::new();
    text.table(&["CODE", "MEANING"], rows.iter().map(|row| vec![row.code.to_owned(), row.title.to_owned()]).collect());
    Outcome::new(&ListData { codes: rows }, text)
}
