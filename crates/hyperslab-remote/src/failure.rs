//! Converts the client library's errors. Messages never contain secrets: queries and credentials of URLs are removed.

use std::io::{self, ErrorKind};

use hyperslab_core::{Error, url_name};

/// The reason why a request failed.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The object does not exist.
    Missing,
    /// The server sent the whole object instead of the requested part.
    NoRanges,
    /// The object differs from the version that was read before.
    Changed,
    /// The response did not match its header, so the request should be repeated.
    Broken(String),
    /// Access to the object was denied. A bucket without list permission also responds like this for objects that do
    /// not exist.
    Denied(String),
    /// Anything else.
    Other(ErrorKind, String),
}

impl From<object_store::Error> for Failure {
    fn from(error: object_store::Error) -> Self {
        use object_store::Error as E;
        let text = || without_secrets(&without_markup(&innermost(&error)));
        let says = |words: &[&str]| {
            let text = text();
            words.iter().any(|word| text.contains(word))
        };
        match &error {
            // Checked first, regardless of the status: these concern more than one object.
            _ if says(&["NoSuchBucket", "ContainerNotFound"]) => {
                Self::Other(ErrorKind::NotFound, format!("the bucket does not exist: {}", text()))
            }
            _ if says(&["ExpiredToken", "TokenExpired", "RequestExpired", "token has expired"]) => {
                let text = format!("the credentials have expired; renew them: {}", text());
                Self::Other(ErrorKind::PermissionDenied, text)
            }
            E::NotFound { .. } => Self::Missing,
            E::AlreadyExists { .. } => Self::Other(ErrorKind::AlreadyExists, text()),
            E::Precondition { .. } | E::NotModified { .. } => Self::Changed,
            E::PermissionDenied { .. } => Self::Denied(format!("access denied: {}", text())),
            E::Unauthenticated { .. } => {
                Self::Other(ErrorKind::PermissionDenied, format!("credentials refused: {}", text()))
            }
            // Byte ranges are the only optional feature that is requested.
            E::NotSupported { .. } => Self::NoRanges,
            // The library reports these only as text.
            _ if says(&["non-partial response"]) => Self::NoRanges,
            // The same for listings that are denied.
            _ if says(&["status code: 401", "status code: 403"]) => {
                Self::Denied(format!("access denied: {}", text()))
            }
            _ if says(&["status code: 416"]) => Self::Other(ErrorKind::UnexpectedEof, text()),
            _ if says(&["redirect without LOCATION", "PermanentRedirect"]) => Self::Other(
                ErrorKind::Other,
                format!("the bucket is in another region; set the storage option region: {}", text()),
            ),
            _ if says(&["status code: 429", "status code: 503"]) => Self::Other(
                ErrorKind::ResourceBusy,
                format!("the server is overloaded; try again later: {}", text()),
            ),
            _ if says(&["operation timed out"]) => Self::Other(ErrorKind::TimedOut, text()),
            // A range with another length or position than requested.
            _ if says(&["Requested", "CONTENT_RANGE", "Content-Range"]) => Self::Broken(text()),
            // An error response that breaks off, so that its status is lost.
            _ if says(&["error reading a body"]) => Self::Broken(text()),
            _ => Self::Other(ErrorKind::Other, text()),
        }
    }
}

impl Failure {
    /// Returns true if the failure concerns the object itself, so that repeating the request would fail again.
    pub(crate) const fn is_final(&self) -> bool {
        match self {
            Self::Denied(_) => true,
            Self::Other(kind, _) => !matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::Interrupted),
            _ => false,
        }
    }

    /// Returns true if the server rejected the request, so that nothing has changed.
    pub(crate) const fn is_refusal(&self) -> bool {
        match self {
            Self::Missing | Self::Changed | Self::Denied(_) => true,
            Self::NoRanges | Self::Broken(_) => false,
            Self::Other(kind, _) => matches!(kind, ErrorKind::AlreadyExists | ErrorKind::PermissionDenied),
        }
    }

    /// Returns true if the caller asked to stop.
    pub(crate) const fn is_interruption(&self) -> bool {
        matches!(self, Self::Other(ErrorKind::Interrupted, _))
    }

    /// Returns true if the server did not answer in time.
    pub(crate) const fn is_timeout(&self) -> bool {
        matches!(self, Self::Other(ErrorKind::TimedOut, _))
    }

    /// Converts to an error about this URL.
    pub(crate) fn to_error(&self, url: &str) -> Error {
        match self {
            Self::Missing => Error::not_found(url, "the object"),
            Self::NoRanges => {
                Error::unsupported(url, "reading parts of an object (the server ignores byte ranges)")
            }
            Self::Changed => Error::io(
                url,
                io::Error::new(
                    ErrorKind::InvalidData,
                    "the object changed while it was being read; open it again",
                ),
            ),
            Self::Broken(text) => Error::io(url, io::Error::new(ErrorKind::UnexpectedEof, text.clone())),
            Self::Denied(text) => Error::io(url, io::Error::new(ErrorKind::PermissionDenied, text.clone())),
            Self::Other(kind, text) => Error::io(url, io::Error::new(*kind, text.clone())),
        }
    }
}

/// The messages of an error and its causes, without repetitions.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}

/// Reduces a server's error document to its code and message. The rest may contain keys and signatures.
fn without_markup(text: &str) -> String {
    let Some(start) = text.find("<?xml").or_else(|| text.find("<Error")) else { return text.to_owned() };
    let (before, document) = text.split_at(start);
    let part = |name: &str| {
        let (_, after) = document.split_once(&format!("<{name}>"))?;
        after.split_once(&format!("</{name}>")).map(|(inside, _)| inside)
    };
    let parts: Vec<&str> = [part("Code"), part("Message")].into_iter().flatten().collect();
    format!("{before}{}", parts.join(": "))
}

/// Removes secrets from the URLs in a text, as [`url_name`] does. A URL ends at a space: quotes and parentheses may be
/// parts of its query.
pub(crate) fn without_secrets(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let is_letter = |c: char| c.is_ascii_alphanumeric();
        let scheme = rest[..at].rfind(|c| !is_letter(c)).map_or(0, |before| before + 1);
        let end = rest[at..].find(char::is_whitespace).map_or(rest.len(), |end| at + end);
        let url = &rest[scheme..end];
        let name = url_name(url);
        clean.push_str(&rest[..scheme]);
        clean.push_str(&name);
        if url.contains('?') && !name.contains('?') {
            clean.push_str("?…");
            // Punctuation of the text.
            let after = url.trim_end_matches([')', '"', '\'', '>', ',', '.', ':', ';']).len();
            clean.push_str(&url[after..]);
        }
        rest = &rest[end..];
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_documents_are_shortened() {
        let text = "403 Forbidden: <?xml version=\"1.0\"?>\n<Error><Code>SignatureDoesNotMatch</Code><Message>no\
                    </Message><AWSAccessKeyId>AKIA</AWSAccessKeyId></Error>";
        assert_eq!(without_markup(text), "403 Forbidden: SignatureDoesNotMatch: no");
        assert_eq!(without_markup("<Error><Code>cut"), "");
        assert_eq!(without_markup("no document"), "no document");
    }

    #[test]
    fn secrets_are_removed() {
        assert_eq!(
            without_secrets("GET https://user:word@host/a?X-Amz-Signature=abc failed (http://b/c?d=e)"),
            "GET https://host/a?… failed (http://b/c?…)"
        );
        assert_eq!(
            without_secrets("cannot GET \"http://h/a?b=c)hush\", http://us)er:hush@h/a?b='hush: gone"),
            "cannot GET \"http://h/a?…\", http://h/a?…: gone"
        );
        assert_eq!(without_secrets("s3://bucket/key: gone"), "s3://bucket/key: gone");
        assert_eq!(without_secrets("://"), "://");
    }
}
