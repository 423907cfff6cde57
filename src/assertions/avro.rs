//! Avro's binary encoding, read with the writer's schema: any bytes give a value or an error, in bounded depth and memory.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use serde_json::Value;

use super::datum::Datum;
use super::number::Number;

/// Levels that a schema, and a value, may be nested.
const MAX_DEPTH: usize = 64;

/// Values that one record may hold: items of no size would otherwise cost nothing to write and much to read.
const MAX_VALUES: usize = 1_000_000;

const PRIMITIVES: [(&str, Type); 8] = [
    ("null", Type::Null),
    ("boolean", Type::Boolean),
    ("int", Type::Integer(Unit::None)),
    ("long", Type::Integer(Unit::None)),
    ("float", Type::Float),
    ("double", Type::Double),
    ("bytes", Type::Bytes { scale: None }),
    ("string", Type::Text),
];

/// What an integer counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    None,
    Days,
    TimeMillis,
    TimeMicros,
    /// Subseconds in one second; whether the instant is of UTC.
    Timestamp {
        per_second: i64,
        utc: bool,
    },
}

#[derive(Clone, PartialEq, Debug)]
enum Type {
    Null,
    Boolean,
    Integer(Unit),
    Float,
    Double,
    /// A decimal has a scale.
    Bytes {
        scale: Option<u32>,
    },
    Fixed {
        size: usize,
        scale: Option<u32>,
    },
    Text,
    Enum(Vec<String>),
    List(usize),
    Map(usize),
    Union(Vec<usize>),
    Record(Vec<(String, usize)>),
    /// Named, and not read to its end yet.
    Open,
}

/// A schema that has been read.
#[derive(Clone, PartialEq, Debug)]
pub struct Schema {
    types: Vec<Type>,
    root: usize,
}

impl Schema {
    /// `references` hold the named types that the definition uses and does not hold.
    pub fn parse(definition: &Value, references: &[Value]) -> Result<Self, String> {
        // References may use each other, in any order: each round reads what needs nothing that is missing.
        let mut reader = Reader { types: Vec::new(), names: HashMap::new() };
        let mut pending: Vec<&Value> = references.iter().collect();
        while !pending.is_empty() {
            let before = pending.len();
            pending.retain(|reference| {
                let mut attempt = Reader { types: reader.types.clone(), names: reader.names.clone() };
                let read = attempt.schema(reference, "", 0).is_ok();
                if read {
                    reader = attempt;
                }
                !read
            });
            if pending.len() == before {
                return Err("a schema that it refers to is not understood".to_owned());
            }
        }
        let root = reader.schema(definition, "", 0)?;
        Ok(Self { types: reader.types, root })
    }

    /// The value of a whole record.
    pub fn decode(&self, bytes: &[u8]) -> Result<Datum, String> {
        let mut input = Input { bytes, values: 0 };
        let datum = self.value(self.root, &mut input, 0)?;
        match input.bytes.is_empty() {
            true => Ok(datum),
            false => Err("bytes are left behind its last field".to_owned()),
        }
    }

    fn value(&self, index: usize, input: &mut Input<'_>, depth: usize) -> Result<Datum, String> {
        if depth > MAX_DEPTH {
            return Err("it is nested too deep".to_owned());
        }
        input.count()?;
        Ok(match &self.types[index] {
            Type::Null => Datum::Null,
            Type::Boolean => Datum::Boolean(input.byte()? != 0),
            Type::Integer(unit) => integer(*unit, input.long()?)?,
            // Its own shortest digits, not those of the double nearest to it.
            Type::Float => number(&f32::from_le_bytes(input.array()?).to_string()),
            Type::Double => number(&f64::from_le_bytes(input.array()?).to_string()),
            Type::Bytes { scale } => {
                let size = input.size()?;
                bytes(input.take(size)?, *scale)?
            }
            Type::Fixed { size, scale } => bytes(input.take(*size)?, *scale)?,
            Type::Text => Datum::Text(input.text()?),
            Type::Enum(symbols) => {
                let symbol = usize::try_from(input.long()?).ok().and_then(|index| symbols.get(index));
                Datum::Text(symbol.ok_or("an enum has no such symbol")?.clone())
            }
            Type::Union(branches) => {
                let branch = usize::try_from(input.long()?).ok().and_then(|index| branches.get(index));
                self.value(*branch.ok_or("a union has no such branch")?, input, depth + 1)?
            }
            Type::Record(fields) => {
                let fields = fields.iter().map(|(name, of)| Ok((name.clone(), self.value(*of, input, depth + 1)?)));
                Datum::Fields(fields.collect::<Result<_, String>>()?)
            }
            Type::List(of) => {
                let mut list = Vec::new();
                self.blocks(input, |input| {
                    list.push(self.value(*of, input, depth + 1)?);
                    Ok(())
                })?;
                Datum::List(list)
            }
            Type::Map(of) => {
                let mut fields = Vec::new();
                self.blocks(input, |input| {
                    let key = input.text()?;
                    fields.push((key, self.value(*of, input, depth + 1)?));
                    Ok(())
                })?;
                Datum::Fields(fields)
            }
            Type::Open => return Err("its schema holds a type without an end".to_owned()),
        })
    }

    fn blocks<'b>(
        &self,
        input: &mut Input<'b>,
        mut item: impl FnMut(&mut Input<'b>) -> Result<(), String>,
    ) -> Result<(), String> {
        loop {
            let mut count = input.long()?;
            if count == 0 {
                return Ok(());
            }
            if count < 0 {
                // The size of the block, for readers that skip it.
                input.long()?;
                count = count.checked_neg().ok_or("a block has no size")?;
            }
            for _ in 0..count {
                item(input)?;
            }
        }
    }
}

struct Reader {
    types: Vec<Type>,
    names: HashMap<String, usize>,
}

impl Reader {
    fn add(&mut self, of: Type) -> usize {
        self.types.push(of);
        self.types.len() - 1
    }

    fn schema(&mut self, value: &Value, namespace: &str, depth: usize) -> Result<usize, String> {
        if depth > MAX_DEPTH {
            return Err("it is nested too deep".to_owned());
        }
        match value {
            Value::String(name) => self.named(name, namespace),
            Value::Array(branches) => {
                let branches: Result<_, String> =
                    branches.iter().map(|branch| self.schema(branch, namespace, depth + 1)).collect();
                let branches = branches?;
                Ok(self.add(Type::Union(branches)))
            }
            Value::Object(fields) => match fields.get("type") {
                Some(Value::String(kind)) => self.complex(kind, value, namespace, depth),
                Some(inner @ (Value::Object(_) | Value::Array(_))) => self.schema(inner, namespace, depth + 1),
                Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => Err("a type has no name".to_owned()),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) => Err("a type has no name".to_owned()),
        }
    }

    fn named(&mut self, name: &str, namespace: &str) -> Result<usize, String> {
        if let Some((_, primitive)) = PRIMITIVES.iter().find(|(known, _)| *known == name) {
            return Ok(self.add(primitive.clone()));
        }
        let full = full_name(name, namespace);
        let found = self.names.get(&full).or_else(|| self.names.get(name)).copied();
        found.ok_or_else(|| format!("type '{full}' is not defined"))
    }

    fn complex(&mut self, kind: &str, value: &Value, namespace: &str, depth: usize) -> Result<usize, String> {
        let text = |field: &str| value.get(field).and_then(Value::as_str);
        let logical = text("logicalType").unwrap_or_default();
        let scale = || {
            let scale = value.get("scale").map_or(Some(0), Value::as_u64).and_then(|scale| u32::try_from(scale).ok());
            scale.filter(|_| logical == "decimal")
        };
        match kind {
            "int" | "long" => Ok(self.add(Type::Integer(unit(logical)))),
            "bytes" => Ok(self.add(Type::Bytes { scale: scale() })),
            "array" | "map" => {
                let field = if kind == "array" { "items" } else { "values" };
                let inner = value.get(field).ok_or_else(|| format!("{kind} without {field}"))?;
                let inner = self.schema(inner, namespace, depth + 1)?;
                Ok(self.add(if kind == "array" { Type::List(inner) } else { Type::Map(inner) }))
            }
            "record" | "error" | "enum" | "fixed" => {
                let own = text("name").ok_or_else(|| format!("{kind} without a name"))?;
                let namespace = text("namespace").unwrap_or(namespace);
                let full = full_name(own, namespace);
                let inner = full.rsplit_once('.').map_or("", |(namespace, _)| namespace).to_owned();
                let index = self.add(Type::Open);
                self.names.insert(full, index);
                self.types[index] = match kind {
                    "enum" => Type::Enum(symbols(value)?),
                    "fixed" => {
                        let size =
                            value.get("size").and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
                        Type::Fixed { size: size.ok_or("fixed without a size")?, scale: scale() }
                    }
                    _ => Type::Record(self.fields(value, &inner, depth)?),
                };
                Ok(index)
            }
            name => self.named(name, namespace),
        }
    }

    fn fields(&mut self, value: &Value, namespace: &str, depth: usize) -> Result<Vec<(String, usize)>, String> {
        let fields = value.get("fields").and_then(Value::as_array).ok_or("a record without fields")?;
        let mut read = Vec::new();
        for field in fields {
            let name = field.get("name").and_then(Value::as_str).ok_or("a field without a name")?;
            let of = field.get("type").ok_or_else(|| format!("field '{name}' without a type"))?;
            read.push((name.to_owned(), self.schema(of, namespace, depth + 1)?));
        }
        Ok(read)
    }
}

fn symbols(value: &Value) -> Result<Vec<String>, String> {
    let symbols = value.get("symbols").and_then(Value::as_array).ok_or("an enum without symbols")?;
    symbols
        .iter()
        .map(|symbol| symbol.as_str().map(str::to_owned).ok_or_else(|| "a symbol that is no text".to_owned()))
        .collect()
}

fn full_name(name: &str, namespace: &str) -> String {
    match name.contains('.') || namespace.is_empty() {
        true => name.to_owned(),
        false => format!("{namespace}.{name}"),
    }
}

fn unit(logical: &str) -> Unit {
    let timestamp = |per_second| Unit::Timestamp { per_second, utc: !logical.starts_with("local-") };
    match logical.strip_prefix("local-").unwrap_or(logical) {
        "date" => Unit::Days,
        "time-millis" => Unit::TimeMillis,
        "time-micros" => Unit::TimeMicros,
        "timestamp-millis" => timestamp(1_000),
        "timestamp-micros" => timestamp(1_000_000),
        "timestamp-nanos" => timestamp(1_000_000_000),
        _ => Unit::None,
    }
}

/// An integer as the text of what it counts.
fn integer(unit: Unit, value: i64) -> Result<Datum, String> {
    let beyond = || "a time is beyond every calendar".to_owned();
    let text = match unit {
        Unit::None => return Ok(number(&value.to_string())),
        Unit::Days => {
            let epoch = Date::constant(1970, 1, 1);
            let days = SignedDuration::from_hours(value.checked_mul(24).ok_or_else(beyond)?);
            epoch.checked_add(days).map_err(|_| beyond())?.to_string()
        }
        Unit::TimeMillis | Unit::TimeMicros => {
            let nanos = value.checked_mul(if unit == Unit::TimeMillis { 1_000_000 } else { 1_000 });
            let elapsed = SignedDuration::from_nanos(nanos.ok_or_else(beyond)?);
            Time::midnight().checked_add(elapsed).map_err(|_| beyond())?.to_string()
        }
        Unit::Timestamp { per_second, utc } => {
            let nanos = value.rem_euclid(per_second) * (1_000_000_000 / per_second);
            let nanos = i32::try_from(nanos).map_err(|_| beyond())?;
            let instant = jiff::Timestamp::new(value.div_euclid(per_second), nanos).map_err(|_| beyond())?;
            match utc {
                true => instant.to_string(),
                false => TimeZone::UTC.to_datetime(instant).to_string(),
            }
        }
    };
    Ok(Datum::Text(text))
}

fn number(text: &str) -> Datum {
    Number::parse(text).map_or_else(|| Datum::Text(text.to_owned()), Datum::Number)
}

fn bytes(bytes: &[u8], scale: Option<u32>) -> Result<Datum, String> {
    match scale {
        None => Ok(Datum::Text(STANDARD.encode(bytes))),
        Some(scale) => {
            Number::of_bytes(bytes, scale).map(Datum::Number).ok_or_else(|| "a decimal is too large".to_owned())
        }
    }
}

struct Input<'a> {
    bytes: &'a [u8],
    values: usize,
}

impl<'a> Input<'a> {
    fn count(&mut self) -> Result<(), String> {
        self.values += 1;
        if self.values > MAX_VALUES { Err("it holds too many values".to_owned()) } else { Ok(()) }
    }

    fn take(&mut self, size: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.bytes.split_at_checked(size).ok_or("it ends too early")?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.take(N)?.try_into().map_err(|_| "it ends too early".to_owned())
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.array().map(|[byte]| byte)
    }

    /// Zig-zag, seven bits a byte.
    fn long(&mut self) -> Result<i64, String> {
        let mut value = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err("a number has no end".to_owned())
    }

    fn size(&mut self) -> Result<usize, String> {
        usize::try_from(self.long()?).map_err(|_| "a length is below zero".to_owned())
    }

    fn text(&mut self) -> Result<String, String> {
        let size = self.size()?;
        std::str::from_utf8(self.take(size)?).map(str::to_owned).map_err(|_| "a text is not UTF-8".to_owned())
    }
}

#[cfg(test)]
#[path = "avro_tests.rs"]
mod tests;
