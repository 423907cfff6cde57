//! Numbers as they were written, compared exactly whatever their size.

use std::cmp::Ordering;
use std::fmt;

/// Digits and exponents beyond this are no number that anybody means.
const MAX_DIGITS: usize = 4_096;

/// `digits` x 10^`exponent`, without leading or trailing zeros; zero has no digits and no sign.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Number {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Number {
    /// `-12`, `0.5`, `1e6`.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix(['-', '+']) {
            Some(rest) => (text.starts_with('-'), rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = whole.len() + fraction.len();
        let numeric = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || all > MAX_DIGITS || exponent.unsigned_abs() as usize > MAX_DIGITS {
            return None;
        }
        if !numeric(whole) || !numeric(fraction) || mantissa.ends_with('.') {
            return None;
        }
        let digits = whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0').collect();
        let exponent = i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
        Some(Self::normal(negative, digits, exponent))
    }

    /// A two's complement integer, most significant byte first, x 10^-`scale`. None for one that is beyond all use.
    pub fn of_bytes(bytes: &[u8], scale: u32) -> Option<Self> {
        if bytes.len() > 256 || scale as usize > MAX_DIGITS {
            return None;
        }
        let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
        let mut magnitude: Vec<u8> = bytes.to_vec();
        if negative {
            let mut carry = true;
            for byte in magnitude.iter_mut().rev() {
                let (sum, over) = (!*byte).overflowing_add(u8::from(carry));
                *byte = sum;
                carry = over;
            }
            if carry {
                magnitude.insert(0, 1);
            }
        }
        let mut digits = Vec::new();
        while magnitude.iter().any(|byte| *byte != 0) {
            let mut rest = 0_u32;
            for byte in &mut magnitude {
                let value = rest * 256 + u32::from(*byte);
                *byte = (value / 10) as u8;
                rest = value % 10;
            }
            digits.push(rest as u8);
        }
        digits.reverse();
        Some(Self::normal(negative, digits, -i64::from(scale)))
    }

    fn normal(negative: bool, digits: Vec<u8>, mut exponent: i64) -> Self {
        let start = digits.iter().position(|digit| *digit != 0).unwrap_or(digits.len());
        let mut digits = digits[start..].to_vec();
        while digits.last() == Some(&0) {
            digits.pop();
            exponent += 1;
        }
        match digits.is_empty() {
            true => Self { negative: false, digits, exponent: 0 },
            false => Self { negative, digits, exponent },
        }
    }

    pub fn is_whole(&self) -> bool {
        self.exponent >= 0
    }

    /// Whether it is whole and lies within the bounds.
    pub fn fits(&self, least: i64, most: i64) -> bool {
        let bound = |bound: i64| Self::parse(&bound.to_string());
        self.is_whole() && bound(least).is_some_and(|low| *self >= low) && bound(most).is_some_and(|high| *self <= high)
    }

    /// The place of its first digit.
    fn magnitude(&self) -> i64 {
        self.exponent + i64::try_from(self.digits.len()).unwrap_or(i64::MAX)
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.digits.is_empty(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let magnitude = || {
            let length = self.digits.len().max(other.digits.len());
            let digit = |number: &Self, at: usize| number.digits.get(at).copied().unwrap_or(0);
            self.magnitude().cmp(&other.magnitude()).then_with(|| {
                (0..length)
                    .map(|at| digit(self, at).cmp(&digit(other, at)))
                    .find(|o| o.is_ne())
                    .unwrap_or(Ordering::Equal)
            })
        };
        match (sign(self), sign(other)) {
            (a, b) if a != b => a.cmp(&b),
            (0, _) => Ordering::Equal,
            (1, _) => magnitude(),
            (_, _) => magnitude().reverse(),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        let digits: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        match self.exponent {
            _ if digits.is_empty() => f.write_str("0"),
            exponent if exponent.abs() > 40 => write!(f, "{sign}{digits}e{exponent}"),
            exponent if exponent >= 0 => write!(f, "{sign}{digits}{}", "0".repeat(exponent as usize)),
            exponent if -exponent >= length => {
                write!(f, "{sign}0.{}{digits}", "0".repeat((-exponent - length) as usize))
            }
            exponent => {
                let (whole, fraction) = digits.split_at((length + exponent) as usize);
                write!(f, "{sign}{whole}.{fraction}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn numbers_are_ordered_by_value_however_they_are_written() {
        let ordered =
            ["-1e3", "-999.99", "-0.5", "0", "0.001", "0.5", "1", "9007199254740993", "9007199254740994", "1e300"];
        for (index, text) in ordered.iter().enumerate() {
            for (other, more) in ordered.iter().enumerate() {
                assert_eq!(number(text).cmp(&number(more)), index.cmp(&other), "{text} {more}");
            }
        }
        for (a, b) in [("1", "1.0"), ("100", "1e2"), ("-0", "0.000"), ("0.50", "5e-1"), ("+7", "7")] {
            assert_eq!(number(a), number(b), "{a} {b}");
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "-", ".5", "1.", "1e", "1e99999", "0x1", "1 ", "NaN", "١", &"9".repeat(5_000)] {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_decimal_of_bytes_has_its_scale() {
        for (bytes, scale, shown) in [
            (&[0x04, 0xD2][..], 2, "12.34"),
            (&[0xFB, 0x2E][..], 2, "-12.34"),
            (&[0x00][..], 2, "0"),
            (&[][..], 2, "0"),
            (&[0x80][..], 0, "-128"),
            (&[0xFF][..], 3, "-0.001"),
            (&[0x64][..], 0, "100"),
        ] {
            assert_eq!(Number::of_bytes(bytes, scale).unwrap().to_string(), shown, "{bytes:?}");
        }
        assert_eq!(Number::of_bytes(&[0x7F; 300], 0), None);
    }

    #[test]
    fn the_bounds_of_an_integer_are_exact() {
        let int = |text: &str| number(text).fits(i64::from(i32::MIN), i64::from(i32::MAX));
        assert!(int("2147483647") && int("-2147483648") && int("1e3"));
        assert!(!int("2147483648") && !int("0.5") && !int("-2147483649"));
        assert!(number("9223372036854775807").fits(i64::MIN, i64::MAX));
        assert!(!number("9223372036854775808").fits(i64::MIN, i64::MAX));
    }
}
