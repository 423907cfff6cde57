//! The vocabulary in which the language is described. One table of these values (`fields`) is checked against files, printed as
//! JSON Schema, explained and documented; nothing else knows which fields exist.

use super::value::MAX_EXACT;

/// A rule about the text of a string or of a map's key. Lengths count code points.
#[derive(Clone, Copy)]
pub struct Text {
    /// What the text must be, after "must be".
    pub expected: &'static str,
    /// The rule as far as a regular expression of ECMA-262 can say it.
    pub pattern: Option<&'static str>,
    pub min: usize,
    pub max: Option<usize>,
    pub check: fn(&str) -> bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// As written.
    Exact,
    Lower,
    Upper,
}

/// Scalars that a free map or list may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scalars {
    /// Strings, integers, booleans.
    WithoutFloats,
    WithFloats,
}

#[derive(Clone, Copy)]
pub enum Shape {
    Text(Text),
    Int {
        min: i64,
        max: i64,
    },
    Number {
        min: f64,
        max: f64,
    },
    Bool,
    True,
    Choice(&'static [&'static str], Fold),
    /// An integer of at least 1, or this word.
    PositiveOr(&'static str),
    Scalar(Scalars),
    List(&'static Shape, usize),
    Record(&'static Record),
    Tagged(&'static Tagged),
    /// A map with exactly one of these keys.
    OneKey(&'static [Field]),
    Map {
        key: Text,
        value: &'static Shape,
    },
    /// The first for scalars and lists, the second for mappings, or whichever fits.
    Either(&'static Shape, &'static Shape),
    /// Any value at all.
    Any,
    /// Any mapping.
    AnyMap,
}

pub struct Record {
    /// Stable name, used as the key of the JSON Schema's definitions and as the title in the reference.
    pub name: &'static str,
    pub doc: &'static str,
    pub fields: &'static [Field],
}

/// Records told apart by the text of one field.
pub struct Tagged {
    pub doc: &'static str,
    pub tag: &'static str,
    /// The variant meant when the tag is absent.
    pub default: Option<&'static str>,
    pub variants: &'static [(&'static str, &'static Record)],
    /// Tags that are known and refused, with the reason.
    pub refused: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Required,
    /// Absent and null are the same.
    Optional,
    /// Absent means this JSON text; null is refused.
    Default(&'static str),
}

#[derive(Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub shape: Shape,
    pub need: Need,
    pub nullable: bool,
    /// Its value is never shown.
    pub secret: bool,
    /// The new path of a field that still loads under this name.
    pub moved: Option<&'static str>,
    pub doc: &'static str,
}

pub const fn req(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { name, shape, need: Need::Required, nullable: false, secret: false, moved: None, doc }
}

pub const fn opt(name: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { name, shape, need: Need::Optional, nullable: true, secret: false, moved: None, doc }
}

/// With a default, as JSON text.
pub const fn def(name: &'static str, shape: Shape, default: &'static str, doc: &'static str) -> Field {
    Field { name, shape, need: Need::Default(default), nullable: false, secret: false, moved: None, doc }
}

impl Field {
    pub const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    pub const fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    pub const fn moved(mut self, to: &'static str) -> Self {
        self.moved = Some(to);
        self
    }
}

impl Record {
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

pub const fn int(min: i64, max: i64) -> Shape {
    Shape::Int { min, max }
}

pub const fn at_least(min: i64) -> Shape {
    Shape::Int { min, max: MAX_EXACT }
}

pub const ANY_INT: Shape = int(-MAX_EXACT, MAX_EXACT);
pub const ANY_NUMBER: Shape = Shape::Number { min: f64::NEG_INFINITY, max: f64::INFINITY };

const fn text(expected: &'static str, pattern: &'static str, check: fn(&str) -> bool) -> Text {
    Text { expected, pattern: Some(pattern), min: 0, max: None, check }
}

fn anything(_: &str) -> bool {
    true
}

fn not_blank(text: &str) -> bool {
    !text.trim().is_empty()
}

fn no_controls(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

fn every(text: &str, allowed: fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(allowed)
}

fn word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn name_byte(byte: u8) -> bool {
    word_byte(byte) || matches!(byte, b'.' | b'-')
}

pub fn is_name(text: &str) -> bool {
    every(text, name_byte) && text.len() <= 128 && !text.starts_with(['.', '-']) && !text.contains("..")
}

pub fn is_environment_name(text: &str) -> bool {
    every(text, |byte| byte.is_ascii_alphanumeric() || byte == b'-') && text.len() <= 128 && !text.starts_with('-')
}

pub fn is_variable(text: &str) -> bool {
    every(text, word_byte) && !text.starts_with(|c: char| c.is_ascii_digit())
}

fn is_url(text: &str) -> bool {
    (text.starts_with("http://") || text.starts_with("https://")) && is_absolute_url(text)
}

fn is_absolute_url(text: &str) -> bool {
    text.trim() == text
        && url::Url::parse(text)
            .is_ok_and(|url| url.has_host() && url.username().is_empty() && url.password().is_none())
}

fn is_image(text: &str) -> bool {
    let digest = |text: &str| text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if let Some(hex) = text.strip_prefix("sha256:") {
        return digest(hex);
    }
    text.split_once("@sha256:").is_some_and(|(repository, hex)| {
        every(repository, |byte| name_byte(byte) || matches!(byte, b':' | b'/'))
            && repository.starts_with(|c: char| c.is_ascii_alphanumeric())
            && !repository.contains("//")
            && digest(hex)
    })
}

fn is_state_backend(text: &str) -> bool {
    let class = |text: &str| {
        text.contains('.') && text.split('.').all(|part| every(part, |byte| word_byte(byte) || byte == b'$'))
    };
    matches!(text, "hashmap" | "rocksdb" | "forst") || class(text)
}

pub const STRING: Text = Text { expected: "a string", pattern: None, min: 0, max: None, check: anything };
pub const NON_BLANK: Text = text("a string that is not blank", "\\S", not_blank);
/// Names of declarations and clusters.
pub const NAME: Text = text(
    "a name of 1 to 128 letters, digits, '_', '.' and '-', not beginning with '.' or '-', without '..'",
    "^(?!.*\\.\\.)[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$",
    is_name,
);
pub const PROJECT_NAME: Text = Text {
    expected: "1 to 128 characters without '/' and control characters, not blank",
    pattern: Some("^(?=.*\\S)[^/\\u0000-\\u001f\\u007f-\\u009f]+$"),
    min: 1,
    max: Some(128),
    check: |text| not_blank(text) && no_controls(text) && !text.contains('/'),
};
pub const TOPIC: Text = text(
    "a topic name: 1 to 249 letters, digits, '.', '_' and '-', not '.' or '..'",
    "^(?!\\.{1,2}$)[A-Za-z0-9._-]{1,249}$",
    |text| every(text, name_byte) && text.len() <= 249 && text != "." && text != "..",
);
/// The topic of a source may be empty here: that is a finding of validation, with its own code.
pub const SOURCE_TOPIC: Text = text(
    "a topic name: 1 to 249 letters, digits, '.', '_' and '-', not '.' or '..'",
    "^(?!\\.{1,2}$)[A-Za-z0-9._-]{0,249}$",
    |text| text.trim().is_empty() || (TOPIC.check)(text),
);
pub const VARIABLE: Text = text(
    "the name of an environment variable: letters, digits and '_', not beginning with a digit",
    "^[A-Za-z_][A-Za-z0-9_]*$",
    is_variable,
);
pub const SQL_SCHEMA: Text = text(
    "an SQL name of at most 63 letters, digits and '_', not beginning with a digit",
    "^[A-Za-z_][A-Za-z0-9_]{0,62}$",
    |text| is_variable(text) && text.len() <= 63,
);
pub const NAMESPACE: Text =
    text("a string without '/', not blank", "^(?=.*\\S)[^/]+$", |text| not_blank(text) && !text.contains('/'));
pub const URL: Text = text(
    "a URL that begins with 'http://' or 'https://', has a host and holds no user name or password",
    "^https?://[^@/]+(/.*)?$",
    is_url,
);
pub const HTTPS_URL: Text = text(
    "a URL that begins with 'https://', has a host and holds no user name or password",
    "^https://[^@/]+(/.*)?$",
    |text| text.starts_with("https://") && is_url(text),
);
pub const API_VERSION: Text =
    text("'streamt.dev/v1alpha1', the one version that exists", "^streamt\\.dev/v1alpha1$", |text| {
        text == "streamt.dev/v1alpha1"
    });
pub const IMAGE: Text = text(
    "'sha256:<64 hex digits>' or '<repository>@sha256:<64 hex digits>'",
    "^([A-Za-z0-9][A-Za-z0-9._:/-]*@)?sha256:[0-9a-f]{64}$",
    is_image,
);
pub const NETWORK: Text = text(
    "a Docker network name: 1 to 128 letters, digits, '_', '.' and '-', beginning with a letter or digit",
    "^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$",
    |text| every(text, name_byte) && text.len() <= 128 && text.starts_with(|c: char| c.is_ascii_alphanumeric()),
);
pub const MACRO: Text = text("a template name of letters, digits, '_' and '-'", "^[A-Za-z0-9_-]+$", |text| {
    every(text, |byte| word_byte(byte) || byte == b'-')
});
pub const STATE_BACKEND: Text = text(
    "'hashmap', 'rocksdb', 'forst' or the dotted name of a factory class",
    "^(hashmap|rocksdb|forst|[A-Za-z0-9_$]+(\\.[A-Za-z0-9_$]+)+)$",
    is_state_backend,
);
pub const GATEWAY_NAME: Text =
    text("letters, digits, '.', '_' and '-'", "^[A-Za-z0-9._-]+$", |text| every(text, name_byte));
/// The logical owner of a tombstone.
pub const OWNER: Text = Text {
    expected: "1 to 128 characters without '/' and control characters, not blank",
    pattern: Some("^(?=.*\\S)[^/\\u0000-\\u001f\\u007f-\\u009f]+$"),
    min: 1,
    max: Some(128),
    check: |text| not_blank(text) && no_controls(text) && !text.contains('/'),
};
pub const CONNECTOR: Text = Text {
    expected: "1 to 256 characters without control characters, not blank",
    pattern: Some("^(?=.*\\S)[^\\u0000-\\u001f\\u007f-\\u009f]+$"),
    min: 1,
    max: Some(256),
    check: |text| not_blank(text) && no_controls(text),
};
pub const CLUSTER: Text = Text {
    expected: "1 to 128 characters without control characters, not blank",
    pattern: Some("^(?=.*\\S)[^\\u0000-\\u001f\\u007f-\\u009f]+$"),
    min: 1,
    max: Some(128),
    check: |text| not_blank(text) && no_controls(text),
};
pub const RULE_OWNER: Text =
    text("a string without '/', not blank", "^(?=.*\\S)[^/]+$", |text| not_blank(text) && !text.contains('/'));

impl Text {
    pub fn accepts(&self, text: &str) -> bool {
        let length = if self.min > 0 || self.max.is_some() { text.chars().count() } else { 0 };
        length >= self.min && self.max.is_none_or(|max| length <= max) && (self.check)(text)
    }
}
