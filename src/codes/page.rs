//! The pages behind the codes and words: one Markdown file each, embedded, and read into the parts that `explain` prints.

use serde::Serialize;

use super::Code;

/// What a page is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PageKind {
    Error,
    Warning,
    /// A safety blocker of a plan.
    Blocker,
    /// Why a resource is not this project's to change.
    Reason,
    /// How an unfinished operation ended, as its durable record says.
    Failure,
}

/// Whether the same command may be repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    Safe,
    AfterChange,
    /// Not before the outcome is known.
    Stop,
}

/// A page in parts. Texts are single lines; list items keep their order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Page {
    /// The full name: `E501_PARSE_ERROR`, `kafka_partition_reduction`.
    pub code: &'static str,
    pub kind: PageKind,
    pub title: &'static str,
    pub meaning: String,
    pub causes: Vec<String>,
    pub remedy: Vec<String>,
    pub emitted_by: Vec<&'static str>,
    pub retry: Retry,
    /// Other spellings that lead here.
    pub aliases: Vec<&'static str>,
}

macro_rules! words {
    ($($name:literal,)+) => {
        /// Words of plans and operation records that have a page: blockers, ownership reasons, failure codes.
        pub const WORDS: &[&str] = &[$($name,)+];

        fn word_text(word: &str) -> Option<&'static str> {
            match word {
                $($name => Some(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/codes/", $name, ".md"))),)+
                _ => None,
            }
        }
    };
}

words! {
    "kafka_partition_reduction",
    "schema_incompatible",
    "flink_update_requires_savepoint",
    "flink_resubmit_requires_state_evidence",
    "flink_input_missing",
    "connector_removal_state_provider_drift",
    "connector_removal_ownership_required",
    "deletion_forbidden",
    "external",
    "requires_adoption",
    "state_mismatch",
    "ownership_mismatch",
    "invalid_ownership",
    "runtime_action_failed",
    "connector_removal_drift",
    "state_commit_uncertain",
    "operation_interrupted",
}

/// Spellings of other tools and older versions, which are never printed.
const ALIASES: &[(&str, Code)] = &[
    ("PARSE_ERROR", Code::E501ParseError),
    ("DIFF_ERROR", Code::E523DiffObservationFailed),
    ("INIT_OPTIONS_INVALID", Code::E711InitOptionsInvalid),
    ("INIT_STARTER_FAILED", Code::E712InitStarterFailed),
];

/// The page of a code.
pub fn page(code: Code) -> Page {
    let aliases = ALIASES.iter().filter(|(_, target)| *target == code).map(|(alias, _)| *alias).collect();
    parse(code.as_str(), code.page_text(), aliases)
}

/// The page that a user asks for: a full code, its number, a word, or an alias, in any casing.
pub fn find_page(name: &str) -> Option<Page> {
    let name = name.trim();
    let same = |candidate: &str| candidate.eq_ignore_ascii_case(name);
    let code = Code::ALL.iter().copied().find(|code| same(code.as_str()) || same(code.number()));
    let code = code.or_else(|| ALIASES.iter().find(|(alias, _)| same(alias)).map(|(_, code)| *code));
    if let Some(code) = code {
        return Some(page(code));
    }
    let word = WORDS.iter().copied().find(|word| same(word))?;
    Some(parse(word, word_text(word)?, Vec::new()))
}

/// Every page, codes first, for `explain --list`.
pub fn pages() -> impl Iterator<Item = Page> {
    let codes = Code::ALL.iter().copied().map(page);
    codes.chain(WORDS.iter().filter_map(|word| Some(parse(word, word_text(word)?, Vec::new()))))
}

/// Reads `# NAME: title`, the three fields and the three sections. A part that is missing stays empty; a test refuses that.
fn parse(code: &'static str, text: &'static str, aliases: Vec<&'static str>) -> Page {
    let title = text.lines().next().and_then(|line| line.split_once(": ")).map_or("", |(_, title)| title);
    let field = |name: &str| {
        let mark = format!("- {name}: ");
        text.lines().find_map(|line| line.strip_prefix(&mark)).unwrap_or_default()
    };
    Page {
        code,
        kind: match field("Kind") {
            "warning" => PageKind::Warning,
            "blocker" => PageKind::Blocker,
            "reason" => PageKind::Reason,
            "failure" => PageKind::Failure,
            _ => PageKind::Error,
        },
        title,
        meaning: section(text, "Meaning").join(" "),
        causes: items(&section(text, "Causes")),
        remedy: items(&section(text, "Remedy")),
        emitted_by: field("Emitted by").split(", ").filter(|command| !command.is_empty()).collect(),
        retry: match field("Retry") {
            "safe" => Retry::Safe,
            "stop" => Retry::Stop,
            _ => Retry::AfterChange,
        },
        aliases,
    }
}

/// The lines of a section, without blank ones.
fn section<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let heading = format!("## {name}");
    text.lines()
        .skip_while(|line| *line != heading)
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| !line.trim().is_empty())
        .collect()
}

/// List items with their continuation lines joined.
fn items(lines: &[&str]) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in lines {
        match (line.strip_prefix("- "), items.last_mut()) {
            (Some(first), _) => items.push(first.to_owned()),
            (None, Some(item)) => {
                item.push(' ');
                item.push_str(line.trim());
            }
            (None, None) => {}
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn text_of(page: &Page) -> &'static str {
        Code::ALL
            .iter()
            .find(|code| code.as_str() == page.code)
            .map(|code| code.page_text())
            .or_else(|| word_text(page.code))
            .unwrap()
    }

    #[test]
    fn every_code_and_word_has_a_page_with_all_parts() {
        for page in pages() {
            let text = text_of(&page);
            assert!(text.starts_with(&format!("# {}: {}\n", page.code, page.title)), "{}: heading", page.code);
            assert!(!page.title.is_empty() && !page.title.ends_with('.'), "{}: title", page.code);
            assert!(page.meaning.ends_with('.'), "{}: meaning", page.code);
            assert!(!page.causes.is_empty() && page.causes.iter().all(|c| c.ends_with('.')), "{}: causes", page.code);
            assert!(!page.remedy.is_empty(), "{}: remedy", page.code);
            assert!(!page.emitted_by.is_empty(), "{}: emitted by", page.code);
            let kind = match page.kind {
                PageKind::Error => "error",
                PageKind::Warning => "warning",
                PageKind::Blocker => "blocker",
                PageKind::Reason => "reason",
                PageKind::Failure => "failure",
            };
            assert!(text.contains(&format!("\n- Kind: {kind}\n")), "{}: kind", page.code);
            let retry = match page.retry {
                Retry::Safe => "safe",
                Retry::AfterChange => "after_change",
                Retry::Stop => "stop",
            };
            assert!(text.contains(&format!("\n- Retry: {retry}\n")), "{}: retry", page.code);
            let expected = match page.code.as_bytes()[..2] {
                [b'E', b'0'..=b'9'] => PageKind::Error,
                [b'W', b'0'..=b'9'] => PageKind::Warning,
                _ => page.kind,
            };
            assert_eq!(page.kind, expected, "{}", page.code);
        }
    }

    #[test]
    fn no_page_stands_without_a_code_or_word() {
        let known: BTreeSet<String> = pages().map(|page| format!("{}.md", page.code)).collect();
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/codes");
        let found: BTreeSet<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "README.md")
            .collect();
        assert_eq!(found, known);
    }

    #[test]
    fn the_reference_of_codes_is_current() {
        let mut index = String::from(
            "# Codes\n\nEvery code and word that the program prints, from its catalogue; `streamt explain CODE` prints a page.\n",
        );
        let sections = [
            ("Errors", PageKind::Error),
            ("Warnings", PageKind::Warning),
            ("Safety blockers", PageKind::Blocker),
            ("Reasons why a resource is not this project's to change", PageKind::Reason),
            ("Failures of an operation", PageKind::Failure),
        ];
        for (heading, kind) in sections {
            index.push_str(&format!("\n## {heading}\n\n| Code | Meaning |\n|---|---|\n"));
            for page in pages().filter(|page| page.kind == kind) {
                index.push_str(&format!("| [`{0}`](../codes/{0}.md) | {1} |\n", page.code, page.title));
            }
        }
        crate::golden::is_current("docs/reference/codes.md", &index);
    }

    #[test]
    fn codes_are_sorted_and_their_numbers_are_unique() {
        assert!(Code::ALL.windows(2).all(|pair| pair[0].as_str() < pair[1].as_str()));
        let numbers: BTreeSet<&str> = Code::ALL.iter().map(|code| code.number()).collect();
        assert_eq!(numbers.len(), Code::ALL.len());
    }

    #[test]
    fn a_page_is_found_by_full_name_number_word_and_alias_in_any_casing() {
        for name in ["E501_PARSE_ERROR", "e501", " E501 ", "parse_error", "e501_parse_error"] {
            assert_eq!(find_page(name).unwrap().code, "E501_PARSE_ERROR", "{name}");
        }
        assert_eq!(find_page("Kafka_Partition_Reduction").unwrap().kind, PageKind::Blocker);
        assert_eq!(find_page("requires_adoption").unwrap().kind, PageKind::Reason);
        assert_eq!(find_page("operation_interrupted").unwrap().retry, Retry::Stop);
        assert_eq!(find_page("E999"), None);
        assert_eq!(find_page(""), None);
        assert_eq!(page(Code::E501ParseError).aliases, ["PARSE_ERROR"]);
    }
}
