//! The fields of a request: those of its query, or of a form.

use ic_base::{Code, Diagnosis, Result, Seq};

/// The fields of a query or a form, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Parses a query or a form, both of which are `application/x-www-form-urlencoded`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// The value of a field; `None` if it is missing or empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        // Browsers send the fields of a form that were left blank, too.
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether a checkbox is checked.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The number of an event. Errors: `invalid_value` if it is none.
    pub(crate) fn seq(&self, name: &str) -> Result<Option<Seq>> {
        let parse = |text: &str| {
            let seq = text.parse::<Seq>().ok().filter(|seq| *seq >= 0);
            seq.ok_or_else(|| Diagnosis::new(Code::InvalidValue, format!("{name} must be the number of an event.")))
        };
        self.get(name).map(parse).transpose()
    }

    /// The value of a field that must be there. Errors: `invalid_value`.
    pub(crate) fn require(&self, name: &str) -> Result<&str> {
        let missing = || Diagnosis::new(Code::InvalidValue, format!("This address lacks {name:?}."));
        self.get(name).ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::Params;

    #[test]
    fn a_query_says_what_was_written() {
        let params = Params::of(b"to=step%3Aa%26b&empty=&x=1&x=2");
        assert_eq!((params.get("to"), params.get("empty"), params.get("x")), (Some("step:a&b"), None, Some("1")));
        assert!(params.has("x") && !params.has("empty"));
        assert_eq!(params.seq("x").unwrap(), Some(1));
        assert!(params.seq("to").is_err() && Params::of(b"before=-1").seq("before").is_err());
        assert!(params.require("nothing").is_err());
    }
}
