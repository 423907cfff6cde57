//! Result types of Flink's functions and operators. What is not listed is unknown.

use super::super::ast::Operator;
use super::super::types::SqlType;
use SqlType::*;

/// How a call uses its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    Row,
    /// Folds many rows into one.
    Aggregate,
}

const AGGREGATES: [&str; 31] = [
    "COUNT",
    "SUM",
    "SUM0",
    "$SUM0",
    "AVG",
    "MIN",
    "MAX",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "VAR_POP",
    "VAR_SAMP",
    "VARIANCE",
    "COLLECT",
    "LISTAGG",
    "STRING_AGG",
    "ARRAY_AGG",
    "FIRST_VALUE",
    "LAST_VALUE",
    "JSON_OBJECTAGG",
    "JSON_ARRAYAGG",
    "APPROX_COUNT_DISTINCT",
    "PERCENTILE",
    "GROUPING",
    "GROUPING_ID",
    "GROUP_ID",
    "BIT_AND",
    "BIT_OR",
    "EVERY",
    "SOME",
    "INTERSECTION",
];

pub(super) fn use_of(name: &str) -> Use {
    if AGGREGATES.contains(&name) { Use::Aggregate } else { Use::Row }
}

/// `TUMBLE`, `HOP` or `SESSION` as a call in GROUP BY.
pub(super) fn is_legacy_window(name: &str) -> bool {
    matches!(name, "TUMBLE" | "HOP" | "SESSION")
}

/// `TUMBLE_START(…)` and its like.
pub(super) fn is_window_accessor(name: &str) -> bool {
    ["TUMBLE_", "HOP_", "SESSION_"].iter().any(|prefix| {
        name.strip_prefix(prefix).is_some_and(|rest| matches!(rest, "START" | "END" | "ROWTIME" | "PROCTIME"))
    })
}

/// The type of a call from the types of its arguments.
pub(super) fn result(name: &str, arguments: &[SqlType]) -> SqlType {
    let first = || arguments.first().cloned().unwrap_or(Unknown);
    match name {
        "COUNT"
        | "APPROX_COUNT_DISTINCT"
        | "ROW_NUMBER"
        | "RANK"
        | "DENSE_RANK"
        | "NTILE"
        | "EXTRACT"
        | "UNIX_TIMESTAMP"
        | "YEAR"
        | "QUARTER"
        | "MONTH"
        | "WEEK"
        | "DAYOFYEAR"
        | "DAYOFMONTH"
        | "DAYOFWEEK"
        | "HOUR"
        | "MINUTE"
        | "SECOND" => BigInt,
        "SUM" | "$SUM0" | "SUM0" => match first() {
            Decimal { scale, .. } => Decimal { precision: 38, scale },
            other => other,
        },
        "AVG" | "STDDEV" | "STDDEV_POP" | "STDDEV_SAMP" | "VAR_POP" | "VAR_SAMP" | "VARIANCE" => match first() {
            Decimal { scale, .. } => Decimal { precision: 38, scale: scale.max(6) },
            other => other,
        },
        "MIN" | "MAX" | "NULLIF" | "LAG" | "LEAD" | "FIRST_VALUE" | "LAST_VALUE" | "NTH_VALUE" | "ABS" | "SIGN"
        | "FIRST" | "LAST" | "PREV" | "NEXT" | "CURRENT_WATERMARK" | "ARRAY_DISTINCT" | "ARRAY_REMOVE"
        | "ARRAY_REVERSE" | "ARRAY_SLICE" | "ARRAY_SORT" | "MAP_UNION" => first(),
        "ARRAY_CONCAT" | "ARRAY_UNION" | "ARRAY_APPEND" | "ARRAY_PREPEND" | "ARRAY_EXCEPT" | "ARRAY_INTERSECT" => {
            first()
        }
        "CUME_DIST" | "PERCENT_RANK" | "PERCENTILE" | "POWER" | "SQRT" | "PI" | "E" | "RAND" | "LOG2" | "LOG10"
        | "LOG" | "LN" | "EXP" | "SIN" | "COS" | "TAN" | "ASIN" | "ACOS" | "ATAN" | "ATAN2" | "SINH" | "COSH"
        | "TANH" | "COT" | "DEGREES" | "RADIANS" => Double,
        "COALESCE" | "IFNULL" | "NVL" | "GREATEST" | "LEAST" => merge(arguments),
        "IF" => merge(arguments.get(1..).unwrap_or_default()),
        "REGEXP" | "JSON_EXISTS" | "IS_JSON" | "ARRAY_CONTAINS" | "IS_DECIMAL" | "IS_DIGIT" | "IS_ALPHA"
        | "STARTSWITH" | "ENDSWITH" | "EVERY" | "SOME" => Boolean,
        "UPPER" | "LOWER" | "CONCAT" | "CONCAT_WS" | "SUBSTRING" | "SUBSTR" | "TRIM" | "LTRIM" | "RTRIM" | "BTRIM"
        | "REPLACE" | "REGEXP_EXTRACT" | "REGEXP_REPLACE" | "REGEXP_SUBSTR" | "SPLIT_INDEX" | "PARSE_URL"
        | "URL_ENCODE" | "URL_DECODE" | "TO_BASE64" | "FROM_BASE64" | "INITCAP" | "LPAD" | "RPAD" | "OVERLAY"
        | "TRANSLATE" | "ELT" | "LISTAGG" | "DATE_FORMAT" | "CONVERT_TZ" | "UUID" | "JSON_VALUE" | "JSON_QUERY"
        | "JSON_ARRAY" | "JSON_OBJECT" | "JSON_STRING" | "JSON_QUOTE" | "JSON_UNQUOTE" | "JSON_OBJECTAGG"
        | "JSON_ARRAYAGG" | "FROM_UNIXTIME" | "LEFT" | "RIGHT" | "REPEAT" | "REVERSE" | "MD5" | "SHA1" | "SHA224"
        | "SHA256" | "SHA384" | "SHA512" | "SHA2" | "CHR" | "HEX" | "BIN" | "DECODE" | "PRINTF" | "ARRAY_JOIN" => {
            String
        }
        "ENCODE" | "UNHEX" => Bytes,
        "TO_TIMESTAMP" | "LOCALTIMESTAMP" => Timestamp(3),
        "TO_TIMESTAMP_LTZ" | "NOW" | "CURRENT_TIMESTAMP" | "CURRENT_ROW_TIMESTAMP" | "PROCTIME" | "MATCH_PROCTIME" => {
            TimestampLtz(3)
        }
        "MATCH_ROWTIME" => arguments.first().cloned().unwrap_or(Timestamp(3)),
        "CURRENT_DATE" | "TO_DATE" => Date,
        "CURRENT_TIME" | "LOCALTIME" => Time(0),
        "TIMESTAMPDIFF" | "CHAR_LENGTH" | "CHARACTER_LENGTH" | "ASCII" | "INSTR" | "LOCATE" | "POSITION"
        | "CARDINALITY" | "ARRAY_POSITION" | "HASH_CODE" | "REGEXP_COUNT" | "REGEXP_INSTR" | "RAND_INTEGER" => Int,
        "TIMESTAMPADD" => arguments.get(1).cloned().unwrap_or(Unknown),
        "MOD" => arguments.get(1).cloned().unwrap_or(Unknown),
        "FLOOR" | "CEIL" | "CEILING" => match first() {
            Decimal { precision, .. } => Decimal { precision, scale: 0 },
            other => other,
        },
        "ELEMENT" => match first() {
            Array(element) | Multiset(element) => *element,
            _ => Unknown,
        },
        "ARRAY_MAX" | "ARRAY_MIN" => match first() {
            Array(element) => *element,
            _ => Unknown,
        },
        "COLLECT" => known(first(), |element| Multiset(Box::new(element))),
        "ARRAY_AGG" => known(first(), |element| Array(Box::new(element))),
        "MAP_KEYS" => match first() {
            Map(key, _) => Array(key),
            _ => Unknown,
        },
        "MAP_VALUES" => match first() {
            Map(_, value) => Array(value),
            _ => Unknown,
        },
        "MAP_ENTRIES" => match first() {
            Map(key, value) => Array(Box::new(Row(vec![("key".to_owned(), *key), ("value".to_owned(), *value)]))),
            _ => Unknown,
        },
        "MAP_FROM_ARRAYS" => match arguments {
            [Array(key), Array(value)] => Map(key.clone(), value.clone()),
            _ => Unknown,
        },
        "STR_TO_MAP" => Map(Box::new(String), Box::new(String)),
        "SPLIT" => Array(Box::new(String)),
        _ if is_window_accessor(name) => match name.ends_with("_PROCTIME") {
            true => TimestampLtz(3),
            false => Timestamp(3),
        },
        _ => Unknown,
    }
}

fn known(element: SqlType, wrap: impl FnOnce(SqlType) -> SqlType) -> SqlType {
    if element == Unknown { Unknown } else { wrap(element) }
}

/// `ROUND(d, n)` and `TRUNCATE(d, n)`, whose scale is in the text of the second argument.
pub(super) fn rounded(value: SqlType, digits: Option<u8>) -> SqlType {
    match (value, digits) {
        (Decimal { precision, scale }, Some(digits)) if digits < scale => {
            // One more digit in front, for what is carried.
            let whole = precision.saturating_sub(scale) + 1;
            Decimal { precision: (whole + digits).min(38), scale: digits }
        }
        (value, _) => value,
    }
}

fn integer_rank(data_type: &SqlType) -> Option<u8> {
    match data_type {
        TinyInt => Some(3),
        SmallInt => Some(5),
        Int => Some(10),
        BigInt => Some(19),
        _ => None,
    }
}

/// Precision and scale of an exact number.
fn exact(data_type: &SqlType) -> Option<(u32, u32)> {
    match data_type {
        Decimal { precision, scale } => Some((u32::from(*precision), u32::from(*scale))),
        other => integer_rank(other).map(|precision| (u32::from(precision), 0)),
    }
}

fn is_time(data_type: &SqlType) -> bool {
    matches!(data_type, Date | Time(_) | Timestamp(_) | TimestampLtz(_))
}

fn decimal(precision: u32, scale: u32) -> SqlType {
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision), Ok(scale)) if precision <= 38 => Decimal { precision, scale },
        _ => Unknown,
    }
}

/// The type of `left operator right`; an interval counts as unknown beside a time.
pub(super) fn arithmetic(left: &SqlType, operator: Operator, right: &SqlType) -> SqlType {
    match operator {
        Operator::Concat => return String,
        Operator::Multiset => return left.clone(),
        Operator::Modulo => return right.clone(),
        Operator::Plus | Operator::Minus | Operator::Times | Operator::Divide => {}
    }
    if let (Some(a), Some(b)) = (integer_rank(left), integer_rank(right)) {
        return if a >= b { left.clone() } else { right.clone() };
    }
    if matches!(left, Float | Double) && (matches!(right, Float | Double) || exact(right).is_some()) {
        return left.clone();
    }
    if matches!(right, Float | Double) && exact(left).is_some() {
        return right.clone();
    }
    if let (Some((p1, s1)), Some((p2, s2))) = (exact(left), exact(right)) {
        return match operator {
            Operator::Times => decimal(p1 + p2 + 1, s1 + s2),
            Operator::Divide => {
                let scale = (s1 + p2 + 1).max(6);
                decimal(p1 - s1 + s2 + scale, scale)
            }
            Operator::Plus | Operator::Minus | Operator::Modulo | Operator::Concat | Operator::Multiset => {
                let scale = s1.max(s2);
                decimal((p1 - s1).max(p2 - s2) + scale + 1, scale)
            }
        };
    }
    Unknown
}

/// `time + interval`
pub(super) fn shifted(data_type: &SqlType) -> SqlType {
    if is_time(data_type) { data_type.clone() } else { Unknown }
}

/// The common type of the branches of CASE and its like; NULL is left out by the caller.
pub(super) fn merge(types: &[SqlType]) -> SqlType {
    let Some((first, rest)) = types.split_first() else { return String };
    let mut merged = first.clone();
    for data_type in rest {
        merged = pair(&merged, data_type);
    }
    merged
}

fn pair(a: &SqlType, b: &SqlType) -> SqlType {
    if a == b {
        return a.clone();
    }
    let text = |t: &SqlType| matches!(t, String | Char(_) | Varchar(_));
    let bytes = |t: &SqlType| matches!(t, Bytes | Binary(_) | Varbinary(_));
    let numeric = |t: &SqlType| matches!(t, Float | Double) || exact(t).is_some();
    if text(a) && text(b) {
        return String;
    }
    if bytes(a) && bytes(b) {
        return Bytes;
    }
    if numeric(a) && numeric(b) {
        if matches!(a, Double) || matches!(b, Double) {
            return Double;
        }
        if matches!(a, Float) || matches!(b, Float) {
            return if integer_rank(a).is_some() || integer_rank(b).is_some() { Float } else { Double };
        }
        if let (Some(x), Some(y)) = (integer_rank(a), integer_rank(b)) {
            return if x >= y { a.clone() } else { b.clone() };
        }
        if let (Some((p1, s1)), Some((p2, s2))) = (exact(a), exact(b)) {
            let scale = s1.max(s2);
            return decimal((p1 - s1).max(p2 - s2) + scale, scale);
        }
    }
    match (a, b) {
        (Timestamp(p), Timestamp(q)) => Timestamp(*p.max(q)),
        (TimestampLtz(p), TimestampLtz(q)) => TimestampLtz(*p.max(q)),
        _ => Unknown,
    }
}

/// The type of a number as written.
pub(super) fn number(text: &str) -> SqlType {
    if text.contains(['e', 'E']) {
        return Double;
    }
    match text.split_once('.') {
        None => match text.parse::<i64>() {
            Ok(number) if i32::try_from(number).is_ok() => Int,
            Ok(_) => BigInt,
            Err(_) => decimal(text.len() as u32, 0),
        },
        Some((whole, fraction)) => {
            let whole = whole.trim_start_matches('0');
            decimal((whole.len() + fraction.len()).max(1) as u32, fraction.len() as u32)
        }
    }
}
