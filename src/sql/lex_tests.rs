use proptest::prelude::*;

use super::*;
use crate::codes::Code;

fn kinds(text: &str) -> Vec<(TokenKind, &str)> {
    tokenize(text).unwrap().into_iter().map(|token| (token.kind, token.span.of(text))).collect()
}

fn names(text: &str) -> Vec<(CallKind, String)> {
    references(text).unwrap().into_iter().map(|call| (call.kind, call.name)).collect()
}

#[test]
fn calls_are_found_in_text_order_with_exact_spans() {
    let text = "SELECT * FROM {{ source(\"a.b-c\") }} JOIN {{ref( 'é' )}}";
    let calls = references(text).unwrap();
    assert_eq!(calls[0].span.of(text), "{{ source(\"a.b-c\") }}");
    assert_eq!(calls[0].name_span.of(text), "a.b-c");
    assert_eq!(calls[1].span.of(text), "{{ref( 'é' )}}");
    assert_eq!(calls[1].name_span.of(text), "é");
    assert_eq!(names(text), [(CallKind::Source, "a.b-c".into()), (CallKind::Ref, "é".into())]);
}

#[test]
fn templates_inside_literals_and_comments_are_text() {
    for text in [
        "-- {{ anything }}",
        "// {% x %}",
        "/* {{ x }} {% y %} */ SELECT 1",
        "SELECT '{{ x }}', 'it''s {# y #}'",
        "SELECT U&'{{ x }}', _utf8'{% a %}', N'{{'",
        "SELECT * FROM t /*+ OPTIONS('a' = '{{ x }} */') */",
    ] {
        assert_eq!(names(text), [], "{text}");
    }
}

#[test]
fn any_other_template_is_e105_at_its_place() {
    for (text, offset, width) in [
        ("SELECT {{ source(name) }}", 7, 18),
        ("{{ ref(\"a\") | upper }}", 0, 22),
        ("SELECT {% if x %}", 7, 2),
        ("SELECT {# c #}", 7, 2),
        ("FROM {{ source(\"a\")", 5, 2),
        ("FROM {{ source(\"a') }}", 5, 17),
        ("FROM {{ source(\" \") }}", 5, 17),
        ("FROM {{ ref() }}", 5, 11),
        ("FROM {{ ref('a', 'b') }}", 5, 19),
        ("FROM {{ config(x=1) }}", 5, 17),
        ("FROM {{- ref('a') -}}", 5, 16),
        ("SELECT `{{ x }}`", 8, 2),
        ("SELECT \"{{ x }}\"", 8, 7),
        ("SELECT * FROM t /*+ OPTIONS({{ x }}) */", 28, 2),
    ] {
        let error = references(text).unwrap_err();
        assert_eq!(error.code(), Code::E105JinjaSyntaxError, "{text}");
        assert_eq!((error.offset, error.width), (offset, width), "{text}");
    }
}

#[test]
fn what_a_call_lacks_is_told() {
    for (text, message) in [
        ("{{ source(\"orders\" }}", "a `)` is missing behind the name: {{ source(\"orders\") }}"),
        ("{{ ref('a' ", "a `)` is missing behind the name: {{ ref(\"a\") }}"),
        ("{{ source \"a\" }}", "the name stands in brackets: {{ source(\"name\") }}"),
        ("{{ source(\"a\") } WHERE x", "`}}` is missing behind the call: {{ source(\"a\") }}"),
        ("{{ source(\"a\") WHERE x", "`}}` is missing behind the call: {{ source(\"a\") }}"),
        ("{{ source(a) }}", "source() takes one name in quotes"),
        ("{{ ref(\"a\") | upper }}", super::GRAMMAR),
        ("{{ sources(\"a\") }}", super::GRAMMAR),
        ("{{ reference(\"a\") }}", super::GRAMMAR),
    ] {
        let error = references(text).unwrap_err();
        assert_eq!((error.offset, error.message.as_str()), (0, message), "{text}");
    }
}

#[test]
fn what_is_never_closed_is_named_at_its_opening() {
    for (text, offset) in [("SELECT 'a", 7), ("SELECT `a", 7), ("a /* b", 2), ("a /*+ b", 2), ("a /*+ 'x */", 6)] {
        let error = references(text).unwrap_err();
        assert_eq!(error.code(), Code::E119CompileFailed, "{text}");
        assert_eq!(error.offset, offset, "{text}");
    }
}

#[test]
fn a_backslash_escapes_nothing_and_a_double_quote_opens_nothing() {
    use TokenKind::*;
    assert_eq!(kinds("'a\\', b"), [(String, "'a\\'"), (Symbol, ","), (Word, "b")]);
    assert_eq!(kinds("\"a\""), [(Symbol, "\""), (Word, "a"), (Symbol, "\"")]);
}

#[test]
fn tokens_are_split_as_flink_splits_them() {
    use TokenKind::*;
    assert_eq!(
        kinds("a.b<>1.5e-3||`x``y`>=.5 t.1"),
        [
            (Word, "a"),
            (Symbol, "."),
            (Word, "b"),
            (Symbol, "<>"),
            (Number, "1.5e-3"),
            (Symbol, "||"),
            (QuotedIdentifier, "`x``y`"),
            (Symbol, ">="),
            (Number, ".5"),
            (Word, "t"),
            (Symbol, "."),
            (Number, "1"),
        ]
    );
    assert_eq!(kinds("$rowtime u&'x' _latin1'y'"), [(Word, "$rowtime"), (String, "u&'x'"), (String, "_latin1'y'")]);
    assert_eq!(kinds("a--b\nc"), [(Word, "a"), (Comment, "--b"), (Word, "c")]);
}

fn sql_like() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("{{".to_owned()),
        Just("}}".to_owned()),
        Just("{{ source(\"a\") }}".to_owned()),
        Just("{{ref('b')}}".to_owned()),
        Just("{%".to_owned()),
        Just("'".to_owned()),
        Just("''".to_owned()),
        Just("`".to_owned()),
        Just("\"".to_owned()),
        Just("--".to_owned()),
        Just("/*".to_owned()),
        Just("/*+".to_owned()),
        Just("*/".to_owned()),
        Just("\n".to_owned()),
        Just("U&".to_owned()),
        Just("SELECT * FROM t WHERE a = 1.5e".to_owned()),
        ".{0,6}",
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    /// Any text: an answer or an error inside the text; between tokens there is only white space, and nothing is lost.
    #[test]
    fn no_text_panics_and_spans_are_exact(text in prop_oneof![sql_like(), ".*"]) {
        match tokenize(&text) {
            Ok(tokens) => {
                let mut end = 0;
                for token in &tokens {
                    prop_assert!(token.span.start >= end && !token.span.is_empty());
                    prop_assert!(text[end..token.span.start].trim().is_empty());
                    end = token.span.end;
                }
                prop_assert!(text[end..].trim().is_empty());
                for call in references(&text).unwrap() {
                    prop_assert!(call.span.of(&text).starts_with("{{") && call.span.of(&text).ends_with("}}"));
                    prop_assert_eq!(call.name_span.of(&text), call.name.as_str());
                    prop_assert!(!call.name.trim().is_empty());
                }
            }
            Err(error) => {
                prop_assert!(error.offset + error.width <= text.len());
                prop_assert!(text.is_char_boundary(error.offset) && text.is_char_boundary(error.offset + error.width));
                prop_assert_eq!(references(&text).unwrap_err(), error);
            }
        }
    }
}
