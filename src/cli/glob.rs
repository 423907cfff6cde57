//! Shell patterns over names: `*`, `?`, `[seq]`, `[!seq]`, case-sensitive, over the whole name.

#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    Any,
    One,
    Char(char),
    /// Ranges and single characters; true = none of them.
    Set(Vec<(char, char)>, bool),
}

/// A parsed pattern. A `[` without its `]` is an ordinary character.
#[derive(Clone, Debug)]
pub struct Glob(Vec<Token>);

impl Glob {
    pub fn new(pattern: &str) -> Self {
        let characters: Vec<char> = pattern.chars().collect();
        let mut tokens = Vec::new();
        let mut index = 0;
        while let Some(&character) = characters.get(index) {
            index += 1;
            tokens.push(match character {
                '*' => Token::Any,
                '?' => Token::One,
                '[' => match set(&characters[index..]) {
                    Some((token, used)) => {
                        index += used;
                        token
                    }
                    None => Token::Char('['),
                },
                other => Token::Char(other),
            });
        }
        Self(tokens)
    }

    /// Linear in the name for each `*`: only the last `*` is ever tried again.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut token, mut at) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        while at < name.len() {
            match self.0.get(token) {
                Some(Token::Any) => {
                    retry = Some((token + 1, at));
                    token += 1;
                }
                Some(one) if fits(one, name[at]) => {
                    token += 1;
                    at += 1;
                }
                Some(_) | None => match &mut retry {
                    None => return false,
                    Some((after, from)) => {
                        *from += 1;
                        token = *after;
                        at = *from;
                    }
                },
            }
        }
        self.0[token..].iter().all(|token| *token == Token::Any)
    }
}

fn fits(token: &Token, character: char) -> bool {
    match token {
        Token::Any | Token::One => true,
        Token::Char(expected) => *expected == character,
        Token::Set(ranges, negated) => ranges.iter().any(|&(low, high)| (low..=high).contains(&character)) != *negated,
    }
}

/// The set after `[` and how many characters it took, `]` included.
fn set(rest: &[char]) -> Option<(Token, usize)> {
    let negated = rest.first() == Some(&'!');
    let start = usize::from(negated);
    let end = start + 1 + rest.get(start + 1..)?.iter().position(|&c| c == ']')?;
    let body = &rest[start..end];
    let mut ranges = Vec::new();
    let mut index = 0;
    while index < body.len() {
        match (body.get(index + 1), body.get(index + 2)) {
            (Some('-'), Some(&high)) => {
                ranges.push((body[index], high));
                index += 3;
            }
            (Some(_) | None, _) => {
                ranges.push((body[index], body[index]));
                index += 1;
            }
        }
    }
    Some((Token::Set(ranges, negated), end + 1))
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("orders.*", "orders.v1", true),
            ("orders.*", "orders", false),
            ("*", "", true),
            ("*.v?", "a.b.v2", true),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbXb", false),
            ("[ab]x", "bx", true),
            ("[!ab]x", "bx", false),
            ("[a-c]1", "b1", true),
            ("[]]x", "]x", true),
            ("[abc", "[abc", true),
            ("Orders", "orders", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(name), expected, "{pattern} {name}");
        }
        assert!(!Glob::new(&"*a".repeat(200)).matches(&"b".repeat(10_000)));
    }
}
