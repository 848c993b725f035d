//! Checks who sent a request: the key, the cookie, `Host`, `Origin`, and the token of a form.
//!
//! A page of another site can make a browser send requests to this server. It cannot read the key in our address, so it gets no cookie. If
//! the browser has one, `SameSite=Strict` keeps it out of requests that other sites begin, `Origin` distinguishes those once more, and a
//! form needs a token that only our pages have. A name that resolves to 127.0.0.1 (DNS rebinding) is no `Host` of ours. Other users of the
//! machine can connect, but do not know the key.

use axum::http::{HeaderMap, header};
use ic_base::{Code, Diagnosis, Result};
use sha2::{Digest, Sha256};

/// The secrets of this page, which are new at each start.
pub(crate) struct PageDoor {
    key: String,
    /// The secret in the cookie and in the tokens of forms. It is not the key, because that may stay in a browser's history.
    pass: String,
    port: u16,
}

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Its `Host` is not one of our names.
    Host,
    /// It has no cookie, or a wrong one, or the wrong key.
    Key,
    /// Another page sent it, or it does not name its origin.
    Origin,
    /// The token of the form is missing or wrong.
    Form,
}

/// The values of all cookies of this name.
pub(crate) fn cookies<'h>(headers: &'h HeaderMap, name: &'h str) -> impl Iterator<Item = &'h str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(key, _)| *key == name).map(|(_, value)| value)
}

impl PageDoor {
    /// A door with new secrets. Errors: `internal` if the system has no random numbers.
    pub(crate) fn new(port: u16) -> Result<Self> {
        Ok(Self { key: chance()?, pass: chance()?, port })
    }

    /// The address with the key, which is printed for the person.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/enter?key={}", self.port, self.key)
    }

    /// Whether this is the key.
    pub(crate) fn is_opened_by(&self, key: &str) -> bool {
        is_same(&self.key, key)
    }

    /// The header that sets the cookie. Cookies do not distinguish ports, so its name has the port, for two pages at once.
    pub(crate) fn cookie(&self) -> String {
        format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie_name(), self.pass)
    }

    fn cookie_name(&self) -> String {
        format!("ic-ui-{}", self.port)
    }

    /// The token of every form: a hash, so that a page does not contain the cookie's secret.
    pub(crate) fn form_token(&self) -> String {
        ic_ledger::events::hex(&Sha256::digest(format!("form {}", self.pass)).into())
    }

    /// Checks that the request names this server as its `Host`. Errors: `Host`.
    pub(crate) fn require_host(&self, headers: &HeaderMap) -> std::result::Result<(), Refused> {
        let host = one(headers, header::HOST).unwrap_or_default();
        // The server listens on 127.0.0.1 alone, so no other name leads to it: neither `[::1]` nor one of the network.
        let is_own = ["127.0.0.1", "localhost"].iter().any(|name| host == format!("{name}:{}", self.port));
        if is_own { Ok(()) } else { Err(Refused::Host) }
    }

    /// Checks that the request has the cookie. Errors: `Key`.
    pub(crate) fn require_cookie(&self, headers: &HeaderMap) -> std::result::Result<(), Refused> {
        let name = self.cookie_name();
        // A browser may send several cookies of one name, one for each path. Another server on this host can add some, so
        // a wrong one beside the right one is not a reason to refuse.
        let has = cookies(headers, &name).any(|value| is_same(&self.pass, value));
        if has { Ok(()) } else { Err(Refused::Key) }
    }

    /// Checks that our own page sent a POST; browsers name the origin of every one. Errors: `Origin`.
    pub(crate) fn require_origin(headers: &HeaderMap) -> std::result::Result<(), Refused> {
        // `Host` was checked before, so it is one of our own names.
        let own = format!("http://{}", one(headers, header::HOST).unwrap_or_default());
        let is_own = one(headers, header::ORIGIN).is_some_and(|origin| origin == own);
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes() == b"same-origin");
        // Older browsers do not send `Sec-Fetch-Site`; `Origin` is required in any case.
        if is_own && site.unwrap_or(true) { Ok(()) } else { Err(Refused::Origin) }
    }

    /// Checks the token of a form. Errors: `Form`.
    pub(crate) fn require_form(&self, token: Option<&str>) -> std::result::Result<(), Refused> {
        let is_ours = token.is_some_and(|token| is_same(&self.form_token(), token));
        if is_ours { Ok(()) } else { Err(Refused::Form) }
    }
}

/// The value of the only header of this name; `None` if there are several, of which a proxy or an attacker may have added one.
fn one(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
}

/// 256 random bits, in hex.
fn chance() -> Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| Diagnosis::new(Code::Internal, format!("This machine gives no chance: {error}.")))?;
    Ok(ic_ledger::events::hex(&bytes))
}

/// Compares in constant time: how long it takes does not tell how many characters are right.
fn is_same(own: &str, given: &str) -> bool {
    // No early return at the first difference: that would tell how many characters were right.
    let differs = own.bytes().zip(given.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    // `zip` ends with the shorter one, so the lengths are compared, too. The length of our secrets is not a secret.
    own.len() == given.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::{PageDoor, Refused};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (axum::http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let mut all = HeaderMap::new();
        for (name, value) in pairs.iter().map(pair) {
            all.append(name, value);
        }
        all
    }

    #[test]
    fn keys_are_long_and_never_the_same() {
        let (one, other) = (PageDoor::new(80).unwrap(), PageDoor::new(80).unwrap());
        assert_eq!((one.key.len(), one.pass.len()), (64, 64));
        assert!(one.key != other.key && one.pass != one.key && one.pass != other.pass);
        assert!(one.is_opened_by(&one.key.clone()) && !one.is_opened_by(&other.key));
        assert!(!one.is_opened_by("") && !one.is_opened_by(&one.key[1..]));
        assert!(!one.cookie().contains(&one.key), "the address's key is not what the cookie holds");
    }

    #[test]
    fn only_our_own_name_is_answered() {
        let door = PageDoor::new(4000).unwrap();
        for own in ["127.0.0.1:4000", "localhost:4000"] {
            assert_eq!(door.require_host(&headers(&[("host", own)])), Ok(()), "{own}");
        }
        for other in ["127.0.0.1", "127.0.0.1:4001", "evil.example:4000", "127.0.0.1:4000.evil.example", ""] {
            assert_eq!(door.require_host(&headers(&[("host", other)])), Err(Refused::Host), "{other}");
        }
        assert_eq!(door.require_host(&HeaderMap::new()), Err(Refused::Host));
        let two = headers(&[("host", "127.0.0.1:4000"), ("host", "evil.example")]);
        assert_eq!(door.require_host(&two), Err(Refused::Host));
    }

    #[test]
    fn a_cookie_is_known_by_its_name_and_value() {
        let door = PageDoor::new(4000).unwrap();
        let good = format!("a=b; ic-ui-4000={}; c=d", door.pass);
        assert_eq!(door.require_cookie(&headers(&[("cookie", &good)])), Ok(()));
        let bad = [format!("ic-ui-4001={}", door.pass), format!("ic-ui-4000={}", door.key), "ic-ui-4000=".to_owned()];
        for bad in bad {
            assert_eq!(door.require_cookie(&headers(&[("cookie", &bad)])), Err(Refused::Key), "{bad}");
        }
    }

    #[test]
    fn only_our_own_pages_may_post() {
        let own = ("host", "127.0.0.1:4000");
        let good = ("origin", "http://127.0.0.1:4000");
        assert_eq!(PageDoor::require_origin(&headers(&[own, good])), Ok(()));
        assert_eq!(PageDoor::require_origin(&headers(&[own, good, ("sec-fetch-site", "same-origin")])), Ok(()));
        let refused = [
            headers(&[own]),
            headers(&[own, ("origin", "null")]),
            headers(&[own, ("origin", "https://127.0.0.1:4000")]),
            headers(&[own, ("origin", "http://127.0.0.1:4001")]),
            headers(&[own, ("origin", "http://localhost:4000")]),
            headers(&[own, good, ("sec-fetch-site", "same-site")]),
            headers(&[own, good, ("sec-fetch-site", "cross-site")]),
            headers(&[own, good, ("origin", "http://evil.example")]),
        ];
        for headers in refused {
            assert_eq!(PageDoor::require_origin(&headers), Err(Refused::Origin), "{headers:?}");
        }
    }

    #[test]
    fn a_form_needs_its_token() {
        let door = PageDoor::new(1).unwrap();
        assert_eq!(door.require_form(Some(&door.form_token())), Ok(()));
        for bad in [None, Some(""), Some(door.pass.as_str()), Some(door.key.as_str())] {
            assert_eq!(door.require_form(bad), Err(Refused::Form));
        }
    }
}
