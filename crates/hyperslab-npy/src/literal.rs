//! The Python literals in a header: dicts, lists, tuples, strings, integers, True and False.

/// A value of such a literal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Bool(bool),
    Number(i64),
    Text(String),
    /// A list or a tuple.
    Sequence(Vec<Literal>),
    Dict(Vec<(String, Literal)>),
}

/// The maximum nesting depth.
const DEEPEST: usize = 32;

impl Literal {
    /// Parses one literal that spans the whole text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader { rest: text };
        let literal = reader.value(0)?;
        match reader.skip_space() {
            "" => Ok(literal),
            rest => Err(format!("{:?} after the header's dict", rest.chars().take(12).collect::<String>())),
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip_space(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    fn take(&mut self, token: char) -> bool {
        match self.skip_space().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self, depth: usize) -> Result<Literal, String> {
        if depth > DEEPEST {
            return Err(format!("more than {DEEPEST} levels of brackets"));
        }
        let rest = self.skip_space();
        match rest.chars().next() {
            Some('{') => self.dict(depth),
            Some('[') => self.sequence('[', ']', depth),
            Some('(') => self.sequence('(', ')', depth),
            Some(quote @ ('\'' | '"')) => self.text(quote).map(Literal::Text),
            Some('T') if rest.starts_with("True") => self.word("True", Literal::Bool(true)),
            Some('F') if rest.starts_with("False") => self.word("False", Literal::Bool(false)),
            Some(digit) if digit.is_ascii_digit() || digit == '-' => self.number(),
            other => Err(format!("{other:?} where a value is expected")),
        }
    }

    fn word(&mut self, word: &str, literal: Literal) -> Result<Literal, String> {
        self.rest = &self.rest[word.len()..];
        Ok(literal)
    }

    fn number(&mut self) -> Result<Literal, String> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        // Python 2 wrote long integers with an L.
        self.rest = rest.strip_prefix('L').unwrap_or(rest);
        digits.parse().map(Literal::Number).map_err(|_| format!("{digits:?} is not a whole number"))
    }

    fn text(&mut self, quote: char) -> Result<String, String> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => text.extend(characters.next().map(|(_, escaped)| escaped)),
                end if end == quote => {
                    self.rest = &self.rest[at + end.len_utf8()..];
                    return Ok(text);
                }
                other => text.push(other),
            }
        }
        Err("a string is not terminated".to_owned())
    }

    fn sequence(&mut self, open: char, close: char, depth: usize) -> Result<Literal, String> {
        self.take(open);
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(self.value(depth + 1)?);
            if !self.take(',') && !self.skip_space().starts_with(close) {
                return Err(format!("neither ',' nor {close:?} after a value"));
            }
        }
        Ok(Literal::Sequence(items))
    }

    fn dict(&mut self, depth: usize) -> Result<Literal, String> {
        self.take('{');
        let mut entries = Vec::new();
        while !self.take('}') {
            let Literal::Text(key) = self.value(depth + 1)? else {
                return Err("a key is not a string".into());
            };
            if !self.take(':') {
                return Err(format!("no ':' after the key {key:?}"));
            }
            entries.push((key, self.value(depth + 1)?));
            if !self.take(',') && !self.skip_space().starts_with('}') {
                return Err("neither ',' nor '}' after a value".into());
            }
        }
        Ok(Literal::Dict(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_is_read() {
        let header =
            "{'descr': [('a', '<i4'), ('b', '<f8', (2,))], 'fortran_order': False, 'shape': (3,), }  \n";
        let Ok(Literal::Dict(entries)) = Literal::parse(header) else { panic!("not a dict") };
        assert_eq!(entries[1], ("fortran_order".into(), Literal::Bool(false)));
        assert_eq!(entries[2], ("shape".into(), Literal::Sequence(vec![Literal::Number(3)])));
    }

    #[test]
    fn deep_nesting_is_refused() {
        assert!(Literal::parse(&"[".repeat(100_000)).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "[\\[\\](){}'\"a-zTFrue:,0-9 \\\\-]{0,40}") {
            let _ = Literal::parse(&text);
        }
    }
}
