//! The verbs that are tried on a ledger with something in it, and what is asked of a call that fails.

use ic_testkit::CliOutcome;

use crate::filled::Filled;

impl Filled {
    /// Every kind of write.
    pub(crate) fn writes(&self) -> Vec<Vec<&str>> {
        let (run, dispatch) = (self.run.as_str(), self.dispatch.as_str());
        vec![
            vec!["run", "create", "--goal", "another"],
            vec!["run", "advance", run],
            vec!["run", "skip", run, "c", "--reason", "no"],
            vec!["run", "set", run, "--complexity", "2"],
            vec!["run", "rollback", run, "--to-phase", "a"],
            vec!["run", "cancel", run],
            vec!["run", "artifact", "add", run, "--path", "y"],
            vec!["run", "agent", "add", run, "--type", "t"],
            vec!["run", "agent", "update", &self.agent, "--status", "failed"],
            vec!["dispatch", "create", run],
            vec!["dispatch", "start", dispatch],
            vec!["dispatch", "complete", dispatch],
            vec!["dispatch", "record", dispatch, "--commit", "abcdef1", "--file", "f"],
            vec!["dispatch", "tokens", dispatch, "--in", "1", "--out", "1"],
            vec!["gate", "override", run, "--reason", "go"],
            vec!["events", "redact", "1", "--reason", "secret"],
            vec!["events", "tail", "--cursor", "c", "--limit", "1"],
        ]
    }

    /// Every kind of read.
    pub(crate) fn reads(&self) -> Vec<Vec<&str>> {
        let (run, dispatch) = (self.run.as_str(), self.dispatch.as_str());
        vec![
            vec!["run", "list"],
            vec!["run", "status", run],
            vec!["run", "phase", run],
            vec!["run", "current"],
            vec!["run", "events", run],
            vec!["run", "artifact", "list", run],
            vec!["run", "agent", "list", run],
            vec!["run", "rollback", run, "--to-phase", "a", "--dry-run"],
            vec!["run", "rollback", run, "--layer", "code"],
            vec!["dispatch", "list", run],
            vec!["dispatch", "show", dispatch],
            vec!["gate", "check", run],
            vec!["gate", "rules", run],
            vec!["events", "tail"],
            vec!["events", "verify"],
            vec!["events", "cursor", "list"],
            vec!["health"],
        ]
    }
}

/// A failed call has a code, an exit that goes with a failure, and did not panic.
pub(crate) fn assert_graceful(arguments: &[&str], outcome: &CliOutcome) {
    assert!(!outcome.stderr.contains("panicked"), "{arguments:?}: {outcome:?}");
    match outcome.code {
        Some(0 | 1) => {}
        Some(2 | 3) if outcome.stderr.is_empty() => assert_eq!(outcome.json()["ok"], false, "{arguments:?}"),
        Some(2 | 3) => assert!(!outcome.error().is_empty()),
        code => panic!("{arguments:?} ended with {code:?}: {outcome:?}"),
    }
}
