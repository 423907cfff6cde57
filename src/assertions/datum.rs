//! A value of a record, whatever it was written in.

use std::fmt;

use serde_json::Value;

use super::number::Number;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Datum {
    Null,
    Boolean(bool),
    Number(Number),
    Text(String),
    List(Vec<Datum>),
    /// In the order of the record.
    Fields(Vec<(String, Datum)>),
}

impl Datum {
    pub fn of_json(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Boolean(*flag),
            Value::Number(number) => {
                let text = number.to_string();
                Number::parse(&text).map_or(Self::Text(text), Self::Number)
            }
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(list) => Self::List(list.iter().map(Self::of_json).collect()),
            Value::Object(map) => {
                Self::Fields(map.iter().map(|(name, value)| (name.clone(), Self::of_json(value))).collect())
            }
        }
    }

    /// A field; one that is not there is null.
    pub fn field(&self, name: &str) -> &Self {
        match self {
            Self::Fields(fields) => {
                fields.iter().find(|(field, _)| field == name).map_or(&Self::Null, |(_, value)| value)
            }
            Self::Null | Self::Boolean(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => &Self::Null,
        }
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Boolean(flag) => write!(f, "{flag}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::List(list) => write!(f, "a list of {}", list.len()),
            Self::Fields(fields) => write!(f, "an object of {} fields", fields.len()),
        }
    }
}
