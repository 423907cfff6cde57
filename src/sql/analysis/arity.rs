//! How many arguments Flink's functions take. Listed are functions of fixed form that are the same in every version that is
//! supported; of any other, nothing is said.

/// Name, least and most arguments; sorted by name.
const ARITY: [(&str, usize, usize); 79] = [
    ("ABS", 1, 1),
    ("ACOS", 1, 1),
    ("ARRAY_CONTAINS", 2, 2),
    ("ARRAY_DISTINCT", 1, 1),
    ("ARRAY_POSITION", 2, 2),
    ("ARRAY_REMOVE", 2, 2),
    ("ARRAY_REVERSE", 1, 1),
    ("ASCII", 1, 1),
    ("ASIN", 1, 1),
    ("ATAN", 1, 1),
    ("ATAN2", 2, 2),
    ("AVG", 1, 1),
    ("BIN", 1, 1),
    ("CARDINALITY", 1, 1),
    ("CHARACTER_LENGTH", 1, 1),
    ("CHAR_LENGTH", 1, 1),
    ("CHR", 1, 1),
    ("CONVERT_TZ", 3, 3),
    ("COS", 1, 1),
    ("COSH", 1, 1),
    ("COT", 1, 1),
    ("DATE_FORMAT", 2, 2),
    ("DECODE", 2, 2),
    ("DEGREES", 1, 1),
    ("ENCODE", 2, 2),
    ("EXP", 1, 1),
    ("FROM_BASE64", 1, 1),
    ("FROM_UNIXTIME", 1, 2),
    ("HEX", 1, 1),
    ("IF", 3, 3),
    ("IFNULL", 2, 2),
    ("INITCAP", 1, 1),
    ("IS_ALPHA", 1, 1),
    ("IS_DECIMAL", 1, 1),
    ("IS_DIGIT", 1, 1),
    ("LEFT", 2, 2),
    ("LN", 1, 1),
    ("LOCATE", 2, 3),
    ("LOG", 1, 2),
    ("LOG10", 1, 1),
    ("LOG2", 1, 1),
    ("LOWER", 1, 1),
    ("LPAD", 3, 3),
    ("MAP_ENTRIES", 1, 1),
    ("MAP_FROM_ARRAYS", 2, 2),
    ("MAP_KEYS", 1, 1),
    ("MAP_VALUES", 1, 1),
    ("MAX", 1, 1),
    ("MD5", 1, 1),
    ("MIN", 1, 1),
    ("MOD", 2, 2),
    ("NULLIF", 2, 2),
    ("POWER", 2, 2),
    ("RADIANS", 1, 1),
    ("REGEXP", 2, 2),
    ("REGEXP_EXTRACT", 2, 3),
    ("REGEXP_REPLACE", 3, 3),
    ("REPEAT", 2, 2),
    ("REPLACE", 3, 3),
    ("REVERSE", 1, 1),
    ("RIGHT", 2, 2),
    ("RPAD", 3, 3),
    ("SHA1", 1, 1),
    ("SHA2", 2, 2),
    ("SHA256", 1, 1),
    ("SIGN", 1, 1),
    ("SIN", 1, 1),
    ("SINH", 1, 1),
    ("SPLIT_INDEX", 3, 3),
    ("SQRT", 1, 1),
    ("STR_TO_MAP", 1, 3),
    ("SUBSTR", 2, 3),
    ("SUBSTRING", 2, 3),
    ("SUM", 1, 1),
    ("TAN", 1, 1),
    ("TANH", 1, 1),
    ("TO_BASE64", 1, 1),
    ("TO_DATE", 1, 2),
    ("UPPER", 1, 1),
];

/// Least and most arguments of a function, by its upper-cased name; none = not known.
pub(super) fn arity(name: &str) -> Option<(usize, usize)> {
    let at = ARITY.binary_search_by(|(known, ..)| (*known).cmp(name)).ok()?;
    let (_, least, most) = ARITY[at];
    Some((least, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_says_what_a_function_takes() {
        assert!(ARITY.windows(2).all(|two| two[0].0 < two[1].0));
        assert!(ARITY.iter().all(|(name, least, most)| least <= most && arity(name) == Some((*least, *most))));
        assert_eq!(arity("MY_OWN"), None);
    }
}
