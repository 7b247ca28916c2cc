//! Parses conditions: a tokeniser, then recursive descent by precedence (`or`, `and`, `not`, comparisons).

use hyperslab_core::{Error, Result};

use super::{Expression, Literal};
use crate::query::Comparison;

/// The maximum nesting depth.
const MAX_DEPTH: usize = 100;

#[derive(Debug, Clone, PartialEq)]
enum Word {
    Name(String),
    Value(Literal),
    Compare(Comparison),
    And,
    Or,
    Not,
    In,
    Is,
    Null,
    Between,
    Open,
    Close,
    Comma,
    Minus,
}

#[derive(Debug)]
struct Parser<'a> {
    text: &'a str,
    words: Vec<(Word, usize)>,
    next: usize,
    depth: usize,
}

/// One side of a comparison.
enum Side {
    Column(String),
    Value(Literal),
}

pub(super) fn parse(text: &str) -> Result<Expression> {
    let mut parser = Parser { text, words: words(text)?, next: 0, depth: 0 };
    if parser.words.is_empty() {
        return Err(Error::invalid(
            "the condition is empty; write one such as \"count > 50 and type == 'NK'\"",
        ));
    }
    let root = parser.either()?;
    match parser.words.get(parser.next) {
        None => Ok(root),
        Some(_) => Err(parser.unexpected("and, or, or the end")),
    }
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Word> {
        self.words.get(self.next).map(|(word, _)| word)
    }

    fn take(&mut self, word: &Word) -> bool {
        let found = self.peek() == Some(word);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, word: &Word, name: &str) -> Result<()> {
        if self.take(word) { Ok(()) } else { Err(self.unexpected(name)) }
    }

    fn unexpected(&self, wanted: &str) -> Error {
        let text = self.text;
        match self.words.get(self.next) {
            Some((_, at)) => {
                let rest: String = text[*at..].chars().take(20).collect();
                let character = text[..*at].chars().count() + 1;
                Error::invalid(format!(
                    "condition {text:?}: expected {wanted} at character {character}, found {rest:?}"
                ))
            }
            None => Error::invalid(format!("condition {text:?}: expected {wanted} at the end")),
        }
    }

    fn either(&mut self) -> Result<Expression> {
        self.deeper(|parser| {
            let mut parts = vec![parser.both()?];
            while parser.take(&Word::Or) {
                parts.push(parser.both()?);
            }
            Ok(one_or(parts, Expression::Or))
        })
    }

    fn both(&mut self) -> Result<Expression> {
        let mut parts = vec![self.negation()?];
        while self.take(&Word::And) {
            parts.push(self.negation()?);
        }
        Ok(one_or(parts, Expression::And))
    }

    fn negation(&mut self) -> Result<Expression> {
        if self.take(&Word::Not) {
            return self.deeper(|parser| Ok(Expression::Not(Box::new(parser.negation()?))));
        }
        self.comparison()
    }

    fn deeper(&mut self, parse: impl FnOnce(&mut Self) -> Result<Expression>) -> Result<Expression> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::invalid(format!("the condition is nested deeper than {MAX_DEPTH}")));
        }
        let found = parse(self);
        self.depth -= 1;
        found
    }

    fn comparison(&mut self) -> Result<Expression> {
        if self.take(&Word::Open) {
            let inside = self.either()?;
            self.expect(&Word::Close, "a closing parenthesis")?;
            return Ok(inside);
        }
        let mut side = self.side()?;
        if let Side::Column(column) = &side
            && let Some(found) = self.of_column(column.clone())?
        {
            return Ok(found);
        }
        let mut parts = Vec::new();
        while let Some(Word::Compare(comparison)) = self.peek().cloned() {
            self.next += 1;
            if self.peek() == Some(&Word::Null) {
                return Err(Error::invalid(format!(
                    "condition {:?}: nothing compares with null; write 'is null' or 'is not null'",
                    self.text
                )));
            }
            let other = self.side()?;
            parts.push(match (&side, &other) {
                (Side::Column(column), Side::Value(value)) => {
                    Expression::Compare { column: column.clone(), comparison, value: value.clone() }
                }
                (Side::Value(value), Side::Column(column)) => Expression::Compare {
                    column: column.clone(),
                    comparison: flipped(comparison),
                    value: value.clone(),
                },
                (Side::Column(a), Side::Column(b)) => Expression::Names(a.clone(), b.clone()),
                (Side::Value(_), Side::Value(_)) => {
                    return Err(Error::invalid(format!(
                        "condition {:?}: both sides of a comparison are values; one must be a column",
                        self.text
                    )));
                }
            });
            side = other;
        }
        if !parts.is_empty() {
            return Ok(one_or(parts, Expression::And));
        }
        match side {
            Side::Column(column) => Ok(Expression::Flag(column)),
            Side::Value(Literal::Bool(value)) => Ok(Expression::Constant(value)),
            Side::Value(_) => Err(self.unexpected("a comparison such as ==, < or in")),
        }
    }

    /// What may follow a column other than a comparison: `in`, `is null`, `between`.
    fn of_column(&mut self, column: String) -> Result<Option<Expression>> {
        let not = self.peek() == Some(&Word::Not);
        let after = self.words.get(self.next + usize::from(not)).map(|(word, _)| word);
        let found = match after {
            Some(Word::In) => {
                self.next += 1 + usize::from(not);
                let values = self.list()?;
                Expression::In { column, values }
            }
            Some(Word::Between) => {
                self.next += 1 + usize::from(not);
                let low = self.value()?;
                self.expect(&Word::And, "and")?;
                let high = self.value()?;
                let compare =
                    |comparison, value| Expression::Compare { column: column.clone(), comparison, value };
                Expression::And(vec![
                    compare(Comparison::GreaterOrEqual, low),
                    compare(Comparison::LessOrEqual, high),
                ])
            }
            Some(Word::Is) if !not => {
                self.next += 1;
                let not = self.take(&Word::Not);
                self.expect(&Word::Null, "null")?;
                let null = Expression::Null(column);
                return Ok(Some(if not { Expression::Not(Box::new(null)) } else { null }));
            }
            _ => return Ok(None),
        };
        Ok(Some(if not { Expression::Not(Box::new(found)) } else { found }))
    }

    fn list(&mut self) -> Result<Vec<Literal>> {
        self.expect(&Word::Open, "values in parentheses")?;
        let mut values = Vec::new();
        while !self.take(&Word::Close) {
            values.push(self.value()?);
            if !self.take(&Word::Comma) {
                self.expect(&Word::Close, "a comma or a closing parenthesis")?;
                break;
            }
        }
        Ok(values)
    }

    fn value(&mut self) -> Result<Literal> {
        let at = self.next;
        match self.side()? {
            Side::Value(value) => Ok(value),
            Side::Column(_) => {
                self.next = at;
                Err(self.unexpected("a value (text needs quotes)"))
            }
        }
    }

    fn side(&mut self) -> Result<Side> {
        let negative = self.take(&Word::Minus);
        let found = match self.peek().cloned() {
            Some(Word::Value(Literal::Integer(value))) if negative => Side::Value(Literal::Integer(-value)),
            Some(Word::Value(Literal::Float(value))) if negative => Side::Value(Literal::Float(-value)),
            _ if negative => return Err(self.unexpected("a number")),
            Some(Word::Value(value)) => Side::Value(value),
            Some(Word::Name(name)) => Side::Column(name),
            _ => return Err(self.unexpected("a column or a value")),
        };
        self.next += 1;
        Ok(found)
    }
}

fn one_or(mut parts: Vec<Expression>, join: fn(Vec<Expression>) -> Expression) -> Expression {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => join(parts.into_iter().chain(last).collect()),
    }
}

const fn flipped(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        same => same,
    }
}

const SYMBOLS: [(&str, Word); 20] = [
    ("==", Word::Compare(Comparison::Equal)),
    ("!=", Word::Compare(Comparison::NotEqual)),
    ("<>", Word::Compare(Comparison::NotEqual)),
    ("<=", Word::Compare(Comparison::LessOrEqual)),
    (">=", Word::Compare(Comparison::GreaterOrEqual)),
    ("&&", Word::And),
    ("||", Word::Or),
    ("<", Word::Compare(Comparison::Less)),
    (">", Word::Compare(Comparison::Greater)),
    ("=", Word::Compare(Comparison::Equal)),
    ("&", Word::And),
    ("|", Word::Or),
    ("!", Word::Not),
    ("~", Word::Not),
    ("(", Word::Open),
    ("[", Word::Open),
    (")", Word::Close),
    ("]", Word::Close),
    (",", Word::Comma),
    ("-", Word::Minus),
];

fn words(text: &str) -> Result<Vec<(Word, usize)>> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (word, length) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if matches!(first, '\'' | '"' | '`') {
            let (inside, length) = quoted(rest, first).ok_or_else(|| {
                Error::invalid(format!("condition {text:?}: {first} at character {} is not closed", at + 1))
            })?;
            (if first == '`' { Word::Name(inside) } else { Word::Value(Literal::Text(inside)) }, length)
        } else if first.is_ascii_digit()
            || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()))
        {
            number(text, rest)?
        } else if first.is_alphabetic() || first == '_' {
            let end =
                rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).unwrap_or(rest.len());
            (keyword(&rest[..end]), end)
        } else if let Some((symbol, word)) = SYMBOLS.iter().find(|(symbol, _)| rest.starts_with(symbol)) {
            (word.clone(), symbol.len())
        } else {
            return Err(Error::invalid(format!("condition {text:?}: {first:?} has no meaning here")));
        };
        words.push((word, at));
        at += length;
    }
    Ok(words)
}

/// Quoted text, in which two quotes mean one, and the number of bytes it took.
fn quoted(rest: &str, quote: char) -> Option<(String, usize)> {
    let mut inside = String::new();
    let mut letters = rest.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter != quote {
            inside.push(letter);
        } else if letters.peek().is_some_and(|(_, next)| *next == quote) {
            inside.push(quote);
            letters.next();
        } else {
            return Some((inside, at + 1));
        }
    }
    None
}

fn keyword(name: &str) -> Word {
    match name.to_ascii_lowercase().as_str() {
        "and" => Word::And,
        "or" => Word::Or,
        "not" => Word::Not,
        "in" => Word::In,
        "is" => Word::Is,
        "null" | "none" => Word::Null,
        "between" => Word::Between,
        "true" => Word::Value(Literal::Bool(true)),
        "false" => Word::Value(Literal::Bool(false)),
        "inf" | "infinity" => Word::Value(Literal::Float(f64::INFINITY)),
        _ => Word::Name(name.to_owned()),
    }
}

/// A number, or an unquoted date: four digits, a dash and a digit.
fn number(text: &str, rest: &str) -> Result<(Word, usize)> {
    let bytes = rest.as_bytes();
    let is_date = bytes.len() > 5
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && bytes[4] == b'-'
        && bytes[5].is_ascii_digit();
    if is_date {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | ':' | '.' | 'T' | 'Z')));
        let end = end.unwrap_or(rest.len());
        return Ok((Word::Value(Literal::Text(rest[..end].to_owned())), end));
    }
    let mut end = 0;
    while end < bytes.len() {
        let exponent_sign =
            matches!(bytes[end], b'+' | b'-') && matches!(bytes.get(end.wrapping_sub(1)), Some(b'e' | b'E'));
        if !(bytes[end].is_ascii_alphanumeric() || matches!(bytes[end], b'.' | b'_') || exponent_sign) {
            break;
        }
        end += 1;
    }
    let digits = rest[..end].replace('_', "");
    let value = digits.parse().map(Literal::Integer).or_else(|_| digits.parse().map(Literal::Float));
    let value = value
        .map_err(|_| Error::invalid(format!("condition {text:?}: {:?} is not a number", &rest[..end])))?;
    Ok((Word::Value(value), end))
}
