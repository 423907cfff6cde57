use super::*;

fn error(text: &str) -> (String, String) {
    let outline = Outline::parse(text).unwrap();
    let error = parse(&outline).expect_err(text);
    (error.span.of(text).to_owned(), error.message)
}

#[test]
fn a_comma_without_an_item_is_told_at_the_comma() {
    for (text, message) in [
        ("SELECT a, FROM t", "behind this comma stands FROM and no further item; one comma is too many"),
        ("SELECT a FROM t, WHERE b = 1", "behind this comma stands WHERE and no further item; one comma is too many"),
        ("SELECT f(a, ) FROM t", "behind this comma stands `)` and no further item; one comma is too many"),
        ("SELECT ARRAY[a, ] FROM t", "behind this comma stands `]` and no further item; one comma is too many"),
        (
            "SELECT a FROM t GROUP BY a, ORDER BY a",
            "behind this comma stands ORDER and no further item; one comma is too many",
        ),
        ("SELECT a,", "behind this comma stands the end and no further item; one comma is too many"),
    ] {
        assert_eq!(error(text), (",".to_owned(), message.to_owned()), "{text}");
    }
}

#[test]
fn a_reserved_word_that_is_meant_as_a_name_is_told_to_need_backticks() {
    for text in
        ["SELECT a, from, b FROM t", "SELECT a, order FROM t", "SELECT group FROM t", "SELECT a AS value FROM t"]
    {
        let (_, message) = error(text);
        assert!(message.ends_with("written in backticks"), "{text}: {message}");
    }
    let (place, message) = error("SELECT a FROM WHERE b = 1");
    assert_eq!(place, "WHERE");
    assert_eq!(message, "a table is expected, not WHERE; a name that is a reserved word is written in backticks");
}

#[test]
fn a_double_quote_is_told_with_what_stands_for_it() {
    let (place, message) = error("SELECT \"a\" FROM t");
    assert_eq!((place.as_str(), message.as_str()), ("\"", DOUBLE_QUOTE));
    assert!(DOUBLE_QUOTE.contains("('…')") && DOUBLE_QUOTE.contains("(`…`)"));
}
