//! "Did you mean": the one place where a wrong name is compared with the known ones.

/// Similarity of two names, 0 to 1: `1 - damerau_levenshtein / length of the longer`, over lower-cased text.
pub fn similarity(a: &str, b: &str) -> f64 {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    strsim::normalized_damerau_levenshtein(&a, &b)
}

/// At most three candidates that are similar enough to be meant, best first, ties by name.
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // A name of this length is no slip of the keyboard, and the distance is quadratic in it.
    if name.len() > 256 {
        return Vec::new();
    }
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= 256)
        .map(|candidate| (similarity(name, candidate), candidate))
        .filter(|(score, _)| *score >= 0.6)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

/// The hint for an unknown name: the similar ones, else the known ones when they are few, else their number.
/// `noun` is singular, for example `model`.
pub fn hint<'a>(name: &str, noun: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut known: Vec<&str> = candidates.into_iter().collect();
    known.sort_unstable();
    known.dedup();
    if let Some(meant) = did_you_mean(name, known.iter().copied()) {
        return Some(meant);
    }
    match known.len() {
        0 => None,
        1..=5 => Some(format!("Available {noun}s: {}", quoted(&known))),
        count => Some(format!("Available {noun}s: {count} defined")),
    }
}

/// Only the first half of [`hint`]: a question when something similar is known.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    match closest(name, candidates).as_slice() {
        [] => None,
        [one] => Some(format!("Did you mean '{one}'?")),
        several => Some(format!("Did you mean one of: {}?", quoted(several))),
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_similar_name_becomes_a_question() {
        assert_eq!(hint("ordres", "model", ["orders", "payments"]), Some("Did you mean 'orders'?".into()));
    }

    #[test]
    fn several_similar_names_are_listed_best_first_and_at_most_three() {
        let known = ["orders_v4", "orders_v3", "orders_v2", "orders_v1", "unrelated"];
        assert_eq!(
            hint("orders_v", "model", known),
            Some("Did you mean one of: 'orders_v1', 'orders_v2', 'orders_v3'?".into())
        );
    }

    #[test]
    fn nothing_similar_lists_a_few_known_names_or_counts_many() {
        assert_eq!(hint("zzz", "source", ["b", "a"]), Some("Available sources: 'a', 'b'".into()));
        assert_eq!(hint("zzz", "source", ["a", "b", "c", "d", "e", "f"]), Some("Available sources: 6 defined".into()));
        assert_eq!(hint("zzz", "source", []), None);
    }

    #[test]
    fn letter_case_and_swapped_letters_count_little() {
        assert_eq!(closest("ORDERS", ["orders"]), ["orders"]);
        assert!(similarity("ab", "ba") >= 0.5);
    }
}
