//! One verb on one page: what it prints for people, what it prints as JSON, and how it refuses.

use std::fmt::Write;

use serde_json::Value;

use super::project::{Project, args};
use super::schema::{assert_shape, shape_of};

/// Compares with the snapshot of this name.
pub(crate) fn snapshot(name: &str, content: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.add_filter(r"\d+ MiB free", "[free] MiB free");
    settings.add_filter(r"(SQLite |sqlite +ok +|sqlite.{0,60}?)\d+\.\d+\.\d+", "${1}[sqlite]");
    settings.add_filter(r"\b(\d+ ms|\d+\.\d s)\b", "[n] ms");
    settings.add_filter(r"(TOOK|\[n\] ms) +", "$1  ");
    settings.add_filter(r#""(duration_ms|stored_bytes)": \d+"#, r#""$1": [n]"#);
    settings.add_filter(r"stored ( +)\S+ \S+ in", "stored ${1}[size] in");
    settings.bind(|| insta::assert_snapshot!(name, content));
}

/// A verb, run in two projects in the same state: in one for people, in the other as JSON.
pub(crate) struct Page {
    verb: String,
    shape: String,
    people: Project,
    script: Project,
    text: String,
}

impl Page {
    /// A page for a verb, in projects that `prepare` has brought into the same state.
    pub(crate) fn of(verb: &str, prepare: impl Fn(&Project)) -> Self {
        Self::over(verb, Project::new, prepare)
    }

    /// As [`Page::of`], over projects that have no ledger yet.
    pub(crate) fn without_ledger(verb: &str) -> Self {
        Self::over(verb, Project::without_ledger, |_| {})
    }

    fn over(verb: &str, new: impl Fn() -> Project, prepare: impl Fn(&Project)) -> Self {
        let (people, script) = (new(), new());
        prepare(&people);
        prepare(&script);
        Self { verb: verb.to_owned(), shape: shape_of(verb), people, script, text: String::new() }
    }

    /// A call that is done; its JSON must have the verb's shape.
    pub(crate) fn does(mut self, line: &str) -> Self {
        let value = self.call(line, 0);
        assert_shape(&self.shape, &value);
        self
    }

    /// A call whose answer is no: the record on stdout, no error line, exit 1.
    pub(crate) fn says_no(mut self, line: &str) -> Self {
        let value = self.call(line, 1);
        assert_shape(&self.shape, &value);
        self
    }

    /// A call that is done in part: the record on stdout names what is left, exit 4.
    pub(crate) fn leaves_some(mut self, line: &str) -> Self {
        let value = self.call(line, 4);
        assert_shape(&self.shape, &value);
        self
    }

    /// Something happens in both projects.
    pub(crate) fn then(self, happens: impl Fn(&Project)) -> Self {
        happens(&self.people);
        happens(&self.script);
        self
    }

    /// A call that is refused with this code; it changes nothing.
    pub(crate) fn refuses(mut self, line: &str, exit: i32, code: &str) -> Self {
        let before = self.script.dump();
        let people = self.people.run_words(args(&flagged(line, "--format text")));
        let script = self.script.run_words(args(&flagged(line, "--format json")));
        assert_eq!((people.code, script.code), (Some(exit), Some(exit)), "{line}: {people:?} {script:?}");
        assert_eq!((people.stdout.as_str(), script.stdout.as_str()), ("", ""), "{line}");
        assert_eq!(script.error(), code, "{line}");
        assert_eq!(self.script.dump(), before, "{line}");
        let value: Value = serde_json::from_str(&script.stderr).expect("one line of JSON");
        assert_shape("error", &value);
        let text = self.people.plain(&people.stderr);
        let _ = write!(self.text, "$ ic {line}\n{text}[exit {exit}, {code}]\n\n");
        self
    }

    /// Compares the page with its snapshot.
    pub(crate) fn ends(self) {
        let name = self.verb.trim_start_matches("ic ").replace([' ', '='], "-").replace("---", "-");
        snapshot(&format!("verb-{name}"), self.text.trim_end());
    }

    fn call(&mut self, line: &str, exit: i32) -> Value {
        let people = self.people.run_words(args(&flagged(line, "--format text")));
        let script = self.script.run_words(args(&flagged(line, "--json")));
        assert_eq!((people.code, script.code), (Some(exit), Some(exit)), "{line}: {people:?} {script:?}");
        assert_eq!(script.stderr, "", "{line}");
        let value = script.json();
        let pretty = serde_json::to_string_pretty(&value).expect("JSON");
        let text = self.people.plain(&(people.stderr + &people.stdout));
        let pretty = self.script.plain(&pretty);
        let _ = write!(self.text, "$ ic {line}\n{text}[exit {exit}]\n\n$ ic {line} --json\n{pretty}\n\n");
        value
    }
}

/// A call with a flag more. What follows `--` is no flag.
fn flagged(line: &str, flag: &str) -> String {
    match line.split_once(" -- ") {
        Some((call, rest)) => format!("{call} {flag} -- {rest}"),
        None => format!("{line} {flag}"),
    }
}
