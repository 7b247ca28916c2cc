//! Access checks: the `Host` header, the token, CORS, methods and the length of requests.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyperslab::{Error, Result};

use crate::answer::{Failure, put};
use crate::parameters::Parameters;
use crate::{ServeOptions, State};

/// The maximum length of a request's URI.
const MAX_URI_LENGTH: usize = 16 << 10;

/// The cookie in which a browser keeps the token, followed by the port. Browsers send the cookies of a host to all its ports.
const COOKIE: &str = "hyperslab_token";

/// Passes a request on, or answers it.
pub(crate) async fn check(Shared(state): Shared<Arc<State>>, request: Request, next: Next) -> Response {
    let options = &state.options;
    let origin = allowed_origin(options, request.headers());
    let mut response = match refuse(options, &request) {
        Some(response) => response,
        None if request.method() == Method::OPTIONS => preflight(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        put(
            headers,
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            "ETag, Content-Range, Content-Length, Accept-Ranges",
        );
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
    put(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    put(headers, header::REFERRER_POLICY, "no-referrer");
    response
}

fn refuse(options: &ServeOptions, request: &Request) -> Option<Response> {
    let failure = |status, message: &str| Some(Failure::new(status, message).into_response());
    if request.uri().path_and_query().is_some_and(|target| target.as_str().len() > MAX_URI_LENGTH) {
        return failure(StatusCode::URI_TOO_LONG, "the address of the request is too long");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return failure(StatusCode::METHOD_NOT_ALLOWED, "this server only reads: use GET or HEAD");
    }
    if request.headers().get_all(header::HOST).iter().count() > 1 {
        return failure(StatusCode::BAD_REQUEST, "the request has several Host headers");
    }
    // A foreign page can make a browser resolve its own host name to this machine, but it cannot change the `Host` header.
    if !is_own_host(options, host_of(request)) {
        return failure(
            StatusCode::MISDIRECTED_REQUEST,
            "this server does not answer to that name; see --allow-host",
        );
    }
    if request.method() != Method::OPTIONS {
        return refuse_token(options, request.headers(), request.uri());
    }
    None
}

fn host_of(request: &Request) -> Option<&str> {
    let header = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    header.or_else(|| request.uri().authority().map(|authority| authority.as_str()))
}

/// Returns true for an address, `localhost` or an allowed host name.
fn is_own_host(options: &ServeOptions, host: Option<&str>) -> bool {
    let Some(host) = host else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok()
        || options.hosts.iter().any(|own| own.eq_ignore_ascii_case(&name))
}

fn refuse_token(options: &ServeOptions, headers: &HeaderMap, uri: &Uri) -> Option<Response> {
    let wanted = options.token.as_deref()?;
    let name = cookie_name(headers);
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
    let cookie = text(header::COOKIE).and_then(|cookies| {
        let pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        pairs.into_iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    });
    if bearer.is_some_and(|given| same_secret(given, wanted.as_bytes()))
        || cookie.is_some_and(|given| same_secret(given.as_bytes(), encoded(wanted).as_bytes()))
    {
        return None;
    }
    let parameters = Parameters::of(uri);
    match parameters.get("token") {
        // A page opened with the token stores it in a cookie, and the token is removed from its address.
        Some(given) if same_secret(given.as_bytes(), wanted.as_bytes()) => {
            let accepts = text(header::ACCEPT).is_some_and(|accept| accept.contains("text/html"));
            accepts.then(|| remember(uri, &name, wanted))
        }
        _ => {
            let failure = Failure::new(StatusCode::UNAUTHORIZED, "a token is required");
            let mut response = failure.into_response();
            put(response.headers_mut(), header::WWW_AUTHENTICATE, "Bearer");
            Some(response)
        }
    }
}

/// The token of an `Authorization` header. The name of the scheme is not case-sensitive.
fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

/// The name of the cookie for the port that the client uses.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    match host.rsplit_once(':') {
        Some((_, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{COOKIE}_{port}")
        }
        _ => COOKIE.to_owned(),
    }
}

/// A token as part of an address or a cookie.
pub(crate) fn encoded(token: &str) -> String {
    form_urlencoded::byte_serialize(token.as_bytes()).collect()
}

fn remember(uri: &Uri, name: &str, token: &str) -> Response {
    let kept = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let mut rest = form_urlencoded::Serializer::new(String::new());
    rest.extend_pairs(kept.filter(|(name, _)| name != "token"));
    let rest = rest.finish();
    let target = if rest.is_empty() { uri.path().to_owned() } else { format!("{}?{rest}", uri.path()) };
    let mut response = StatusCode::SEE_OTHER.into_response();
    // A path such as //host would lead elsewhere.
    put(response.headers_mut(), header::LOCATION, &format!("/{}", target.trim_start_matches('/')));
    let cookie = format!("{name}={}; Path=/; HttpOnly; SameSite=Strict", encoded(token));
    put(response.headers_mut(), header::SET_COOKIE, &cookie);
    response
}

/// Compares in constant time.
fn same_secret(given: &[u8], wanted: &[u8]) -> bool {
    given.len() == wanted.len()
        && given.iter().zip(wanted).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

fn allowed_origin(options: &ServeOptions, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    if options.cors.iter().any(|allowed| allowed == "*") {
        return Some(HeaderValue::from_static("*"));
    }
    options.cors.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()).then(|| origin.clone())
}

/// Rejects values that no browser sends, so that typing errors are noticed.
pub(crate) fn check_origin(origin: &str) -> Result<()> {
    let parsed = origin.parse::<Uri>().ok();
    let plain = parsed.as_ref().is_some_and(|uri| {
        let parts = (uri.scheme_str(), uri.authority().map(|authority| authority.as_str()));
        matches!(parts, (Some(scheme), Some(authority)) if origin == format!("{scheme}://{authority}") && !authority.contains('@'))
    });
    if origin == "*" || origin == "null" || plain {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{origin:?} is not an origin: expected SCHEME://HOST or SCHEME://HOST:PORT without a path, or *"
    )))
}

fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    put(headers, header::ALLOW, "GET, HEAD, OPTIONS");
    put(headers, header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD");
    put(headers, header::ACCESS_CONTROL_ALLOW_HEADERS, "Range, Authorization, If-None-Match, If-Range");
    put(headers, header::ACCESS_CONTROL_MAX_AGE, "600");
    response
}

#[cfg(test)]
mod tests {
    use super::check_origin;

    #[test]
    fn origins_are_checked() {
        for origin in ["*", "null", "https://example.org", "http://localhost:8080", "http://[::1]:80"] {
            assert!(check_origin(origin).is_ok(), "{origin}");
        }
        for origin in [
            "",
            "notanorigin",
            "example.org",
            "https://example.org/",
            "https://a.b/c",
            "https://",
            "http://a@b",
        ] {
            assert!(check_origin(origin).is_err(), "{origin}");
        }
    }
}
