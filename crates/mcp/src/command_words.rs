//! Turns the arguments of a tool into the words of a command.
//!
//! Arguments of an agent are not trusted: no value may become a flag when the command's parser reads it.

use ic_base::{Code, Diagnosis, Result};

/// The words of a command.
#[derive(Debug, Clone)]
pub(crate) struct Words(Vec<String>);

impl Words {
    /// A command without arguments: `["run", "advance"]`.
    pub(crate) fn of(command: &[&str]) -> Self {
        Self(command.iter().map(|word| (*word).to_owned()).collect())
    }

    /// Adds a positional value. Errors: `invalid_value` for one that a parser would take for a flag.
    pub(crate) fn value(mut self, name: &str, value: &str) -> Result<Self> {
        if value.starts_with('-') || value.is_empty() {
            let text = format!("{name} is {value:?}: no reference is empty or begins with a hyphen.");
            return Err(invalid(name, text));
        }
        self.0.push(checked(name, value)?.to_owned());
        Ok(self)
    }

    /// Adds a positional value, if there is one.
    pub(crate) fn value_if(self, name: &str, value: Option<&str>) -> Result<Self> {
        match value {
            Some(value) => self.value(name, value),
            None => Ok(self),
        }
    }

    /// Adds a flag and its value as one word, so that a value that begins with a hyphen is no flag.
    pub(crate) fn flag(mut self, flag: &str, value: &str) -> Result<Self> {
        self.0.push(format!("{flag}={}", checked(flag, value)?));
        Ok(self)
    }

    /// Adds a flag and its value, if there is one.
    pub(crate) fn flag_if(self, flag: &str, value: Option<&str>) -> Result<Self> {
        match value {
            Some(value) => self.flag(flag, value),
            None => Ok(self),
        }
    }

    /// Adds the flag once for each value.
    pub(crate) fn flags(self, flag: &str, values: &[String]) -> Result<Self> {
        values.iter().try_fold(self, |words, value| words.flag(flag, value))
    }

    /// Adds the flag if it is on.
    pub(crate) fn switch(mut self, flag: &str, is_on: bool) -> Self {
        if is_on {
            self.0.push(flag.to_owned());
        }
        self
    }

    /// Adds `--` and the values after it, where nothing is a flag. Adds nothing if there are none.
    pub(crate) fn rest(mut self, name: &str, values: &[String]) -> Result<Self> {
        if values.is_empty() {
            return Ok(self);
        }
        // Everything after `--` is positional for the parser, so these values may begin with a hyphen.
        self.0.push("--".to_owned());
        for value in values {
            self.0.push(checked(name, value)?.to_owned());
        }
        Ok(self)
    }

    /// The words, in the order in which they are typed after `ic`.
    pub(crate) fn as_slice(&self) -> &[String] {
        &self.0
    }
}

/// Refuses a value with a NUL: no argument of a program can hold one, so the command line never sees it.
fn checked<'v>(name: &str, value: &'v str) -> Result<&'v str> {
    if value.contains('\0') {
        return Err(invalid(name, format!("{name} holds a NUL character.")));
    }
    Ok(value)
}

fn invalid(name: &str, message: String) -> Diagnosis {
    Diagnosis::new(Code::InvalidValue, message)
        .hint("the references of this run are in the answer of the tool log")
        .detail("value", name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(words: &Words) -> String {
        words.as_slice().join(" ")
    }

    #[test]
    fn a_value_is_never_a_flag() {
        let refused = Words::of(&["undo"]).value("point", "--yes").expect_err("a flag");
        assert_eq!(refused.code(), Code::InvalidValue);
        assert!(Words::of(&["undo"]).value("point", "").is_err());
        let words = Words::of(&["undo"]).flag("--reason", "--yes").expect("a reason");
        assert_eq!(joined(&words), "undo --reason=--yes");
        let words = Words::of(&["x"]).rest("paths", &["--yes".to_owned()]).expect("paths");
        assert_eq!(joined(&words), "x -- --yes");
    }

    #[test]
    fn no_word_holds_a_nul() {
        assert!(Words::of(&["x"]).value("run", "a\0b").is_err());
        assert!(Words::of(&["x"]).flag("--reason", "\0").is_err());
        assert!(Words::of(&["x"]).rest("paths", &["\0".to_owned()]).is_err());
    }
}
