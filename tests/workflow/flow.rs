//! Workflows whose steps have effects outside: a script that makes them, undoes them, and stops where it is told to.

use std::os::unix::fs::PermissionsExt;
use std::process::Child;

use ic_testkit::{TestWorld, wait_for};

use crate::calls::Calls as _;

/// `act do|undo` makes the effect of a step, or undoes it, once for each idempotency key. Two copies of a step that meet are a
/// complaint. At each of its points it waits if there is a file that holds it, the first that comes there alone.
const ACT: &str = r#"#!/bin/sh
out=$(dirname "$0"); point=$1-$IC_STEP
exec 9>>"$out/lock-$IC_STEP"
flock -n 9 || echo "$point meets another copy" >> "$out/complaints"
reach() {
    echo $$ > "$out/at-$point-$1"
    if mv "$out/hold-$point-$1" "$out/held-$point-$1" 2>/dev/null; then
        while [ -e "$out/held-$point-$1" ]; do sleep 0.01; done
    fi
}
test "$1" = do || echo "undoing $IC_STEP $IC_IDEMPOTENCY_KEY" >> "$out/log"
reach before
if [ -e "$out/fail-$point" ]; then echo "$point fails as told"; exit 7; fi
case $1 in do) echo "done $IC_STEP $IC_IDEMPOTENCY_KEY" ;; *) echo "undone $IC_STEP $IC_IDEMPOTENCY_KEY" ;; esac >> "$out/log"
reach after
if [ -e "$out/spoil-$point" ]; then echo "$point is spoilt as told"; exit 8; fi
"#;

/// The four steps of a -> {b, c} -> d, and what each needs.
pub(crate) const DIAMOND: [(&str, &[&str]); 4] = [("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c"])];

/// The script, in the place outside.
pub(crate) fn put_act(world: &TestWorld) {
    let act = world.outside.put("act", ACT);
    std::fs::set_permissions(act, std::fs::Permissions::from_mode(0o755)).expect("an executable");
}

/// What workflows are written, and where they are held up.
pub(crate) trait Flow {
    /// Writes `flow.yaml`: these steps, each with its effect and its undo.
    fn flow(&self, steps: &[(&str, &[&str])]);

    /// Writes `flow.yaml` with these lines under `steps:`, in the phase `main` unless they name others; `ACT` stands for the
    /// script, `OUT` for the place outside.
    fn steps(&self, lines: &[&str]);

    /// As [`Flow::steps`], under another name.
    fn workflow(&self, name: &str, lines: &[&str]);

    /// Waits until a script has come to a point where it is held, such as `do-b-before`.
    fn await_held(&self, point: &str);

    /// Starts a call, kills its process when the script is held at a point, and leaves the script there.
    fn kill_at(&self, arguments: &str, point: &str);
}

impl Flow for TestWorld {
    fn flow(&self, steps: &[(&str, &[&str])]) {
        let line = |(step, needs): &(&str, &[&str])| {
            let needs = needs.join(", ");
            format!("{{id: {step}, needs: [{needs}], run: 'ACT do', compensate: {{shell: 'ACT undo'}}}}")
        };
        let lines: Vec<String> = steps.iter().map(line).collect();
        self.steps(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    }

    fn steps(&self, lines: &[&str]) {
        self.workflow("flow", lines);
    }

    fn workflow(&self, name: &str, lines: &[&str]) {
        let mut text = format!("name: {name}\nsteps:\n");
        for (at, line) in lines.iter().enumerate() {
            let phase = if at == 0 && !line.contains("phase:") { "phase: main, " } else { "" };
            text.push_str(&format!("  - {{{phase}{}\n", line.trim_start_matches('{')));
        }
        let act = self.outside.path("act").display().to_string();
        let text = text.replace("OUTPUTS", "\0").replace("OUT", &self.outside.directory().display().to_string());
        self.write(&format!("{name}.yaml"), &text.replace('\0', "OUTPUTS").replace("ACT", &act));
    }

    fn await_held(&self, point: &str) {
        wait_for(&format!("{point} is held"), || self.outside.has(&format!("held-{point}")));
    }

    fn kill_at(&self, arguments: &str, point: &str) {
        self.outside.put(&format!("hold-{point}"), "");
        let mut child = self.start(arguments);
        self.await_held(point);
        kill(&mut child);
    }
}

/// kill -9, and its end.
pub(crate) fn kill(child: &mut Child) {
    child.kill().expect("kill -9");
    child.wait().expect("its end");
}
