//! `${NAME}` and `${NAME:-default}` in the strings of `runtime`.

use std::collections::{BTreeMap, BTreeSet};

use super::shape::is_variable;
use super::value::{Content, Node, Style};

/// Fills in the variables of every string below `node`; the names that are not set, sorted, each once. A string that needs one
/// of them stays as written and stands for any value.
pub fn interpolate(node: &mut Node, variables: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut missing = BTreeSet::new();
    walk(node, variables, &mut missing);
    missing
}

fn walk(node: &mut Node, variables: &BTreeMap<String, String>, missing: &mut BTreeSet<String>) {
    match &mut node.content {
        Content::Sequence(items) => items.iter_mut().for_each(|item| walk(item, variables, missing)),
        Content::Mapping(entries) => entries.iter_mut().for_each(|entry| walk(&mut entry.value, variables, missing)),
        Content::Scalar { text, style } => {
            let mut unset = Vec::new();
            if let Some(expanded) = expand(text, &|name| variables.get(name).cloned(), &mut unset) {
                if unset.is_empty() {
                    *text = expanded.into();
                    *style = Style::Interpolated;
                } else {
                    *style = Style::Unset;
                }
            }
            missing.extend(unset);
        }
    }
}

/// The text with its variables filled in; none when it holds none. Unset names are added to `missing`.
pub fn expand(text: &str, look_up: &impl Fn(&str) -> Option<String>, missing: &mut Vec<String>) -> Option<String> {
    let mut expanded = String::new();
    let (mut rest, mut found) = (text, false);
    while let Some(start) = rest.find("${") {
        let body = &rest[start + 2..];
        let Some((name, default, length)) = placeholder(body) else {
            expanded.push_str(&rest[..start + 2]);
            rest = body;
            continue;
        };
        found = true;
        expanded.push_str(&rest[..start]);
        match (look_up(name), default) {
            (Some(value), _) => expanded.push_str(&value),
            (None, Some(default)) => expanded.push_str(default),
            (None, None) => missing.push(name.to_owned()),
        }
        rest = &body[length..];
    }
    expanded.push_str(rest);
    found.then_some(expanded)
}

/// The name of the first `${NAME` or `${NAME:-` that no `}` ends.
pub fn unclosed(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let body = &rest[start + 2..];
        if let Some((_, _, length)) = placeholder(body) {
            rest = &body[length..];
            continue;
        }
        let end = body.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(body.len());
        let (name, after) = body.split_at(end);
        // Nothing but the missing end keeps a default from being read.
        if is_variable(name) && (after.starts_with(":-") || !after.contains('}')) {
            return Some(name);
        }
        rest = body;
    }
    None
}

/// Name, default and length of what follows `${`. A default ends at the first `}` that no backslash precedes.
fn placeholder(body: &str) -> Option<(&str, Option<&str>, usize)> {
    let end = body.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    let name = &body[..end];
    if !is_variable(name) {
        return None;
    }
    let rest = &body[end..];
    if rest.starts_with('}') {
        return Some((name, None, end + 1));
    }
    let default = rest.strip_prefix(":-")?;
    let close = default.match_indices('}').find(|(at, _)| !default[..*at].ends_with('\\')).map(|(at, _)| at)?;
    Some((name, Some(&default[..close]), end + 2 + close + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> (Option<String>, Vec<String>) {
        let look_up = |name: &str| match name {
            "A" => Some("a".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let mut missing = Vec::new();
        let text = expand(text, &look_up, &mut missing);
        (text, missing)
    }

    #[test]
    fn variables_and_defaults_are_filled_in() {
        assert_eq!(filled("x${A}y${B:-d}").0.unwrap(), "xayd");
        assert_eq!(filled("${EMPTY:-d}").0.unwrap(), "");
        assert_eq!(filled("${B:-}").0.unwrap(), "");
        assert_eq!(filled(r"${B:-a\}b}c").0.unwrap(), r"a\}bc");
        assert_eq!(filled("${B:-${A}}").0.unwrap(), "${A}");
    }

    #[test]
    fn other_dollar_signs_are_text() {
        for text in ["$A", "$$", "${1}", "${", "${A", "${A-x}", "${}"] {
            assert_eq!(filled(text), (None, Vec::new()), "{text}");
        }
    }

    #[test]
    fn a_variable_that_does_not_end_is_told_from_other_text() {
        for text in ["${A", "x${A}:${B", "${A:-", "${A:-d", r"${A:-d\}", "${A,b:9092", "${${A"] {
            assert!(unclosed(text).is_some(), "{text}");
        }
        for text in ["", "$A", "$$", "${1}", "${1", "${", "${A-x}", "${}", "${A}", "${B:-${A}}", "${A:-}"] {
            assert_eq!(unclosed(text), None, "{text}");
        }
        assert_eq!(unclosed("${A}${B:-x"), Some("B"));
    }

    #[test]
    fn unset_names_are_collected() {
        assert_eq!(filled("${B}${C}${A}").1, ["B", "C"]);
    }
}
