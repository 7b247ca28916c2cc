//! The parameters of a query.

use axum::http::Uri;

use crate::answer::Failure;

/// The parameters of a query, in order. If a name occurs twice, the last one wins.
#[derive(Debug, Clone)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(crate) fn of(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn file(&self) -> String {
        self.get("file").unwrap_or_default().to_owned()
    }

    /// The path of a node as written, without trailing slashes; `/` by default.
    pub(crate) fn path(&self) -> String {
        match self.get("path") {
            None | Some("" | "/") => "/".to_owned(),
            Some(path) => path.to_owned(),
        }
    }

    /// Parses a boolean like pydantic.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Failure> {
        match self.get(name).map(str::to_ascii_lowercase).as_deref() {
            None | Some("false" | "0" | "no" | "off" | "f" | "n") => Ok(false),
            Some("true" | "1" | "yes" | "on" | "t" | "y") => Ok(true),
            Some(other) => Err(Failure::query(format!("{name}={other} is neither true nor false"))),
        }
    }

    /// A number up to `most`, or `default`.
    pub(crate) fn number(&self, name: &str, default: u64, most: u64) -> Result<u64, Failure> {
        match self.get(name) {
            None => Ok(default),
            Some(text) => match text.parse::<u64>() {
                Ok(number) => Ok(number.min(most)),
                Err(_) => Err(Failure::query(format!("{name}={text} is not a number"))),
            },
        }
    }

    /// All parameters that affect the response, for its tag.
    pub(crate) fn key(&self, endpoint: &str) -> String {
        let mut pairs: Vec<_> = self.0.iter().filter(|(name, _)| name != "token").collect();
        pairs.sort();
        format!("{endpoint}?{pairs:?}")
    }
}
