//! Cells of the tables of `status`.

pub fn number<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

pub fn existence(exists: Option<bool>) -> &'static str {
    match exists {
        None => "UNKNOWN",
        Some(true) => "OK",
        Some(false) => "MISSING",
    }
}
