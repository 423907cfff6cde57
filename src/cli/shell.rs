//! Commands that the user may paste.

/// Quotes a word for a POSIX shell; plain words stay as they are.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quote("/srv/orders"), "/srv/orders");
        assert_eq!(quote("it's a dir"), r"'it'\''s a dir'");
        assert_eq!(quote("$(rm)"), "'$(rm)'");
        assert_eq!(quote(""), "''");
    }
}
