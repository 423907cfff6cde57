//! From the bytes of a record to its fields. A registry's clients put a zero byte and the number of the writer's schema in
//! front; without them a record is a JSON object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::avro;
use super::datum::Datum;
use super::{Record, WriterSchema, WriterSchemas};

const MAGIC: u8 = 0;
const HEADER: usize = 5;

/// Number and payload of a record that names its schema.
fn framed(value: &[u8]) -> Option<(u32, &[u8])> {
    let (header, payload) = value.split_at_checked(HEADER)?;
    let [MAGIC, id @ ..] = header else { return None };
    Some((u32::from_be_bytes(id.try_into().ok()?), payload))
}

/// The schemas that the records were written with.
pub fn schema_ids(records: &[Record]) -> BTreeSet<u32> {
    records.iter().filter_map(|record| Some(framed(record.value.as_deref()?)?.0)).collect()
}

/// Decodes records, reading each schema once.
pub(super) struct Decoder<'a> {
    schemas: &'a WriterSchemas,
    avro: BTreeMap<u32, Result<avro::Schema, String>>,
}

impl<'a> Decoder<'a> {
    pub fn new(schemas: &'a WriterSchemas) -> Self {
        Self { schemas, avro: BTreeMap::new() }
    }

    /// The fields, or why they cannot be told; never a byte of the record.
    pub fn decode(&mut self, value: &[u8]) -> Result<Datum, String> {
        let Some((id, payload)) = framed(value) else { return json(value) };
        match self.schemas.get(&id) {
            None => Err(format!("its schema {id} is not known")),
            Some(WriterSchema::Unavailable(why)) => Err(format!("its schema {id} cannot be read: {why}")),
            Some(WriterSchema::Protobuf) => Err(format!("its schema {id} is Protobuf, which is not decoded")),
            Some(WriterSchema::Json) => json(payload),
            Some(WriterSchema::Avro { definition, references }) => {
                let parsed = self.avro.entry(id).or_insert_with(|| avro::Schema::parse(definition, references));
                match parsed {
                    Ok(schema) => object(schema.decode(payload)?),
                    Err(why) => Err(format!("its schema {id} is not understood: {why}")),
                }
            }
        }
    }
}

fn json(bytes: &[u8]) -> Result<Datum, String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|_| "it is no JSON".to_owned())?;
    object(Datum::of_json(&value))
}

fn object(datum: Datum) -> Result<Datum, String> {
    match datum {
        Datum::Fields(_) => Ok(datum),
        Datum::Null | Datum::Boolean(_) | Datum::Number(_) | Datum::Text(_) | Datum::List(_) => {
            Err("it is no object with fields".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_without_a_schema_is_a_json_object_or_an_error_without_its_bytes() {
        let none = WriterSchemas::new();
        let mut decoder = Decoder::new(&none);
        assert_eq!(decoder.decode(br#"{"a": 1}"#).unwrap().field("a").to_string(), "1");
        for bytes in [&b"sentinel"[..], b"[1]", b"1", b"", b"\xff", br#"{"a": 1"#] {
            let why = decoder.decode(bytes).unwrap_err();
            assert!(why == "it is no JSON" || why == "it is no object with fields", "{why}");
        }
    }

    #[test]
    fn a_record_names_its_schema_and_what_is_wrong_with_it_is_said() {
        let record = |value: &[u8]| Record { partition: 0, offset: 0, value: Some(value.to_vec()) };
        let records = [record(&[0, 0, 0, 0, 7, 2]), record(b"{}"), record(&[0, 0]), record(&[0, 0, 0, 1, 0])];
        assert_eq!(schema_ids(&records), BTreeSet::from([7, 256]));
        let schemas = WriterSchemas::from([
            (1, WriterSchema::Json),
            (2, WriterSchema::Protobuf),
            (3, WriterSchema::Unavailable("no".into())),
            (4, WriterSchema::Avro { definition: serde_json::json!("nothing"), references: Vec::new() }),
            (5, WriterSchema::Avro { definition: serde_json::json!("long"), references: Vec::new() }),
        ]);
        let mut decoder = Decoder::new(&schemas);
        let mut of = |id: u8, payload: &[u8]| {
            decoder.decode(&[&[0, 0, 0, 0, id][..], payload].concat()).map(|datum| datum.field("a").to_string())
        };
        assert_eq!(of(1, br#"{"a": true}"#), Ok("true".into()));
        assert!(of(2, b"").unwrap_err().contains("Protobuf"));
        assert!(of(3, b"").unwrap_err().contains("cannot be read: no"));
        assert!(of(4, b"").unwrap_err().contains("not understood"));
        assert!(of(5, &[2]).unwrap_err().contains("no object"));
        assert!(of(6, b"").unwrap_err().contains("not known"));
    }
}
