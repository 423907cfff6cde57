use serde_json::json;

use super::*;

fn long(value: i64) -> Vec<u8> {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    let mut bytes = Vec::new();
    while rest >= 0x80 {
        bytes.push((rest & 0x7F) as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

fn text(value: &str) -> Vec<u8> {
    [long(value.len() as i64), value.as_bytes().to_vec()].concat()
}

fn decoded(schema: &Value, bytes: &[u8]) -> Result<Datum, String> {
    Schema::parse(schema, &[])?.decode(bytes)
}

fn shown(schema: Value, bytes: &[u8]) -> String {
    decoded(&schema, bytes).unwrap_or_else(|why| panic!("{schema}: {why}")).to_string()
}

/// The encodings of the specification, each type once.
#[test]
fn every_type_is_read() {
    assert_eq!(shown(json!("null"), &[]), "null");
    assert_eq!(shown(json!("boolean"), &[1]), "true");
    for value in [0, -1, 1, 63, -64, 64, i64::MAX, i64::MIN] {
        assert_eq!(shown(json!("long"), &long(value)), value.to_string());
    }
    assert_eq!(shown(json!("float"), &0.1_f32.to_le_bytes()), "0.1");
    assert_eq!(shown(json!("double"), &(-2.5_f64).to_le_bytes()), "-2.5");
    assert_eq!(shown(json!("double"), &f64::NAN.to_le_bytes()), "'NaN'");
    assert_eq!(shown(json!("bytes"), &[4, 1, 2]), "'AQI='");
    assert_eq!(shown(json!("string"), &text("grün")), "'grün'");
    assert_eq!(shown(json!({"type": "enum", "name": "E", "symbols": ["A", "B"]}), &[2]), "'B'");
    assert_eq!(shown(json!({"type": "fixed", "name": "F", "size": 2}), &[255, 0]), "'/wA='");
    assert_eq!(shown(json!(["null", "long"]), &[2, 6]), "3");
    assert_eq!(shown(json!({"type": "array", "items": "long"}), &[4, 2, 4, 1, 2, 6, 0]), "a list of 3");
    assert_eq!(
        shown(json!({"type": "map", "values": "long"}), &[[2].to_vec(), text("k"), vec![2, 0]].concat()),
        "an object of 1 fields"
    );
}

#[test]
fn logical_types_are_what_they_mean() {
    let logical = |of: &str, logical: &str| json!({"type": of, "logicalType": logical});
    assert_eq!(shown(logical("int", "date"), &long(19_723)), "'2024-01-01'");
    assert_eq!(shown(logical("int", "date"), &long(-1)), "'1969-12-31'");
    assert_eq!(shown(logical("int", "time-millis"), &long(3_723_004)), "'01:02:03.004'");
    assert_eq!(shown(logical("long", "timestamp-millis"), &long(1_704_067_200_500)), "'2024-01-01T00:00:00.5Z'");
    assert_eq!(shown(logical("long", "timestamp-micros"), &long(-1)), "'1969-12-31T23:59:59.999999Z'");
    assert_eq!(shown(logical("long", "local-timestamp-millis"), &long(0)), "'1970-01-01T00:00:00'");
    assert_eq!(shown(logical("string", "uuid"), &text("x")), "'x'");
    let decimal = json!({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2});
    assert_eq!(shown(decimal, &[4, 0x04, 0xD2]), "12.34");
    let fixed = json!({"type": {"type": "fixed", "name": "D", "size": 2, "logicalType": "decimal", "scale": 1}});
    assert_eq!(shown(fixed, &[0xFF, 0xFF]), "-0.1");
    assert!(decoded(&logical("int", "date"), &long(i64::MAX)).unwrap_err().contains("calendar"));
}

#[test]
fn names_are_found_in_their_namespace_in_references_and_in_themselves() {
    let tree = json!({"type": "record", "name": "Node", "namespace": "a.b", "fields": [
        {"name": "value", "type": "long"},
        {"name": "next", "type": ["null", "Node"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["X"]}},
        {"name": "same", "type": "a.b.Kind"},
    ]});
    let bytes = [2, 2, 4, 0, 0, 0, 0, 0];
    let node = decoded(&tree, &bytes).unwrap();
    assert_eq!(node.field("next").field("value").to_string(), "2");
    assert_eq!(node.field("same").to_string(), "'X'");
    let user = json!({"type": "record", "name": "Order", "fields": [{"name": "by", "type": "c.User"}]});
    let references = [
        json!({"type": "record", "name": "User", "namespace": "c", "fields": [{"name": "id", "type": "c.Id"}]}),
        json!({"type": "fixed", "name": "Id", "namespace": "c", "size": 1}),
    ];
    let order = Schema::parse(&user, &references).unwrap().decode(&[1]).unwrap();
    assert_eq!(order.field("by").field("id").to_string(), "'AQ=='");
    assert!(Schema::parse(&user, &references[..1]).unwrap_err().contains("refers to"));
    assert!(Schema::parse(&user, &[]).unwrap_err().contains("c.User"));
}

#[test]
fn damaged_bytes_and_schemas_are_errors() {
    for (schema, bytes) in [
        (json!("long"), &[0x80; 11][..]),
        (json!("long"), &[0x80]),
        (json!("string"), &[1]),
        (json!("string"), &[20, 0]),
        (json!("string"), &[2, 0xFF]),
        (json!("long"), &[0, 0]),
        (json!(["null"]), &[2]),
        (json!({"type": "enum", "name": "E", "symbols": []}), &[0]),
        // As many nulls as anybody likes in four bytes.
        (json!({"type": "array", "items": "null"}), &[0xFE, 0xFF, 0xFF, 0xFF, 0x0F]),
        (json!({"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}), &[]),
        (json!({"type": "record", "name": "R"}), &[]),
        (json!({"type": "map"}), &[]),
        (json!(7), &[]),
        (json!("nothing"), &[]),
    ] {
        assert!(decoded(&schema, bytes).is_err(), "{schema} {bytes:?}");
    }
    let deep = (0..100).fold(json!("null"), |inner, _| json!({"type": "array", "items": inner}));
    assert!(Schema::parse(&deep, &[]).unwrap_err().contains("deep"));
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let schema = json!({"type": "record", "name": "R", "fields": [
            {"name": "a", "type": ["null", "string", "R"]},
            {"name": "b", "type": {"type": "map", "values": {"type": "array", "items": "double"}}},
            {"name": "c", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        ]});
        let _ = Schema::parse(&schema, &[]).unwrap().decode(&bytes);
    }
}
