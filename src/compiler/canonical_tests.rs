use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::codes::redact;

fn canonical(value: &Value) -> String {
    String::from_utf8(canonical_value(value).unwrap()).unwrap()
}

fn digest(value: &Value) -> String {
    Checksum::of(value).unwrap().to_string()
}

/// SAF-017
#[test]
fn canonical_text_and_its_digest_are_fixed() {
    let value = json!({
        "b": [1, 1.0, -0.0, 1e15, 1e-5, 1e-7, 1e21, 0.1, 9007199254740991_i64],
        "a": "\u{1f}\"\\/\té😀", "Z": {}, "é": null, "z": true
    });
    assert_eq!(
        canonical(&value),
        "{\"Z\":{},\"a\":\"\\u001f\\\"\\\\/\\té😀\",\"b\":[1,1,0,1000000000000000,0.00001,1e-7,1e+21,0.1,9007199254740991],\
         \"z\":true,\"é\":null}"
    );
    assert_eq!(digest(&value), "sha256:bdd347e4f44bfb50d53f9d8679048a0d6f759b972320b02e66e4130d15b5830f");
    assert_eq!(
        digest(&json!({"\u{fb33}": 1, "😀": 2, "z": 3})),
        "sha256:a34fd6e2e19777fb7f019bb3676127d2706e5a10fcf64d15f890127258c3a94a"
    );
    assert_eq!(canonical(&json!("\u{7f}")).as_bytes(), [0x22, 0x7f, 0x22]);
    assert_eq!(digest(&json!("\u{7f}")), "sha256:6fe76740e12a93d5598fe685cb6ad3d3c94e44609065a56866b69647772026ec");
}

/// RFC 8785, appendix B and section 3.2.3.
#[test]
fn the_examples_of_rfc_8785_hold() {
    for (bits, text) in [
        (0x0000000000000000_u64, "0"),
        (0x8000000000000000, "0"),
        (0x0000000000000001, "5e-324"),
        (0x8000000000000001, "-5e-324"),
        (0x7fefffffffffffff, "1.7976931348623157e+308"),
        (0xffefffffffffffff, "-1.7976931348623157e+308"),
        (0x44b52d02c7e14af5, "9.999999999999997e+22"),
        (0x44b52d02c7e14af6, "1e+23"),
        (0x44b52d02c7e14af7, "1.0000000000000001e+23"),
        (0x444b1ae4d6e2ef50, "1e+21"),
        (0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"),
        (0x3eb0c6f7a0b5ed8d, "0.000001"),
        (0x41b3de4355555553, "333333333.3333332"),
        (0x41b3de4355555554, "333333333.33333325"),
        (0x41b3de4355555555, "333333333.3333333"),
        (0x41b3de4355555556, "333333333.3333334"),
        (0x41b3de4355555557, "333333333.33333343"),
        (0xbecbf647612f3696, "-0.0000033333333333333333"),
        (0x43143ff3c1cb0959, "1424953923781206.2"),
    ] {
        assert_eq!(canonical(&json!(f64::from_bits(bits))), text);
    }
    let sorted = json!({
        "\u{20ac}": "Euro Sign", "\r": "Carriage Return", "\u{fb33}": "Hebrew Letter Dalet With Dagesh", "1": "One",
        "\u{1f600}": "Emoji: Grinning Face", "\u{80}": "Control", "\u{f6}": "Latin Small Letter O With Diaeresis"
    });
    assert_eq!(
        canonical(&sorted),
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\"\u{f6}\":\"Latin Small Letter O With Diaeresis\",\
         \"\u{20ac}\":\"Euro Sign\",\"\u{1f600}\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}"
    );
    let string = json!({"string": "\u{20ac}$\u{f}\nA'B\"\\\\\"/", "literals": [null, true, false]});
    assert_eq!(
        canonical(&string),
        "{\"literals\":[null,true,false],\"string\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}"
    );
}

#[test]
fn a_number_that_another_reader_would_round_has_no_canonical_form() {
    for number in
        [json!(9007199254740992_u64), json!(-9007199254740992_i64), json!(u64::MAX), json!(1e16), json!(-1e20)]
    {
        assert_eq!(canonical_value(&json!({"a": [number]})), Err(CanonicalError), "{number}");
        assert!(!numbers_in_range(&json!([number])));
    }
    assert!(numbers_in_range(&json!([1e21, 1e300, 9007199254740991_u64, 0.5, -1])));
}

#[test]
fn sensitive_keys_are_hidden_before_the_manifest_is_hashed() {
    let mut value =
        json!({"token": "x", "name": "token", "n": {"sasl_password": {"a": 1}, "tokens": [1], "x-api-key": null}});
    redact::redact_keys(&mut value);
    assert_eq!(digest(&value), "sha256:65d7998ac29e639c4429119645318d214e96de4d29461f31b39dc6fdfb60a834");
}

fn json_value() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i32>().prop_map(|n| json!(n)),
        (-9007199254740991_i64..=9007199254740991).prop_map(|n| json!(n)),
        any::<f64>()
            .prop_filter("finite and exact", |n| n.is_finite() && number_in_range(&Number::from_f64(*n).unwrap()))
            .prop_map(|n| json!(n)),
    ];
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::Bool), number, ".{0,8}".prop_map(Value::String)];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((".{0,4}", inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn canonical_bytes_are_those_of_the_rfc_8785_crate(value in json_value()) {
        prop_assert_eq!(canonical_value(&value).unwrap(), serde_json_canonicalizer::to_vec(&value).unwrap());
    }

    #[test]
    fn canonical_text_reads_back_to_the_same_canonical_text(value in json_value()) {
        let text = canonical_value(&value).unwrap();
        let read: Value = serde_json::from_slice(&text).unwrap();
        prop_assert_eq!(canonical_value(&read).unwrap(), text);
    }
}
