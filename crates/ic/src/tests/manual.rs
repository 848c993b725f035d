//! `docs/CLI.md`: every verb, written from the command tree.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command};

use super::files::assert_is;
use super::verbs::{leaves, own_arguments, tree};

const HEAD: &str = "# The command line

A test writes this page from the program (`IC_UPDATE=1 cargo test -p ic --lib`); `ic VERB --help` says the same. The shapes of
the JSON are in [schemas/](schemas/README.md), the error codes in [errors/](errors/README.md).

## Exit codes

| exit | meaning |
|---|---|
| 0 | done, or yes |
| 1 | an expected no: blocked, paused, conflict, stale, refused in this state, nothing found by a query |
| 2 | failure: I/O, corruption, busy past the timeout |
| 3 | usage: bad flags or values, or a reference to something that does not exist |
| 4 | partly done: the report on stdout names what is left |
| 130 | Ctrl-C or a request to end (SIGTERM, SIGQUIT, or the SIGHUP of a closed terminal) interrupted a consumer of events, which left its event, a wait, or a question |

In JSON form an error is one line on stderr: `{\"error\": {\"code\", \"message\", \"hint\", \"details\"}}`; in text form it is
`error: ...` and `hint: ...`. What must be known of an answer whatever is done with it, that the ledger is behind what its store remembers,
follows it in JSON form as a line on stderr: `{\"warning\": {\"code\", \"message\"}}`. In an error it stands before the hint.

A `--dry-run` exits as the real call with `--yes` and the same flags would, as far as its plan tells: 0; 4 if the plan names something
that stays; 1, 2 or 3 if the call would be refused. A plan that is refused because it would overwrite something, or because of a step
that cannot be undone, is printed with its
`refusal` (`{code, message, hint, details}`) in JSON, and with the reason in text. For any other reason, and in `workflow rollback`, the
error is that of the real call.

## References

A run, dispatch, agent, artifact, checkpoint, rollback or rewind is named by its id, or by the last six or more hex digits of it. A run is also `@` (the only
active run of this project) or `scope:NAME`.

";

const ENVIRONMENT: &str = "## Environment

| variable | meaning |
|---|---|
| `IC_DB` | the ledger's file, or the URL of one on a server, unless `--db` names another |
| `IC_FORMAT` | the output format, unless a flag sets it: auto, json, jsonl, text. A verb that prints just a value (`run create`) prints its record only for `--json` or `--format`: a script that reads an id works in each environment |
| `IC_CONFIG` | the configuration file, in place of .ic.yaml in the project's root |
| `IC_DISPATCH` | the calling dispatch, unless `--dispatch` names another |
| `NO_COLOR` | no colours in text |

";

#[test]
fn the_manual_is_what_the_program_says() {
    let tree = tree();
    let mut text = HEAD.to_owned();
    let beginning = tree.get_after_help().map(ToString::to_string).unwrap_or_default();
    let beginning = beginning.split("\n\n").next().unwrap_or_default().lines().skip(1);
    let beginning: Vec<&str> = beginning.map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
    let _ = writeln!(text, "## Begin with\n\n```text\n{}\n```\n", beginning.join("\n"));
    text.push_str("## Global options\n\nThey are accepted anywhere on the line. One that is repeated must have the same value each time: two values are refused (`usage`), wherever they stand.\n\n");
    let globals: Vec<&Arg> = tree.get_arguments().collect();
    options(&mut text, &globals);
    text.push_str(ENVIRONMENT);
    text.push_str("## Verbs\n\n| verb | what it does |\n|---|---|\n");
    for (name, command) in leaves(&tree) {
        let _ = writeln!(text, "| [`{name}`](#{}) | {} |", name.replace(' ', "-"), about(command));
    }
    text.push('\n');
    for (name, command) in leaves(&tree) {
        verb(&mut text, &name, command);
    }
    assert_is("CLI.md", &(text.trim_end().to_owned() + "\n"));
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn verb(text: &mut String, name: &str, command: &Command) {
    let long = command.get_long_about().map_or_else(|| about(command), ToString::to_string);
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    let stop = if long.ends_with(['.', '?']) { "" } else { "." };
    let _ = writeln!(text, "## {name}\n\n{}{stop}\n\n```text\n{usage}\n```\n", unwrapped(&long));
    let arguments: Vec<&Arg> = own_arguments(command).collect();
    options(text, &arguments);
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (examples, note) = after.split_once("\n\n").unwrap_or((&after, ""));
    let examples: Vec<&str> = examples.lines().skip(1).map(|l| l.strip_prefix("  ").unwrap_or(l)).collect();
    let _ = writeln!(text, "```bash\n{}\n```\n", examples.join("\n"));
    if !note.is_empty() {
        let _ = writeln!(text, "{}\n", unwrapped(note));
    }
}

/// Paragraphs on one line each.
fn unwrapped(text: &str) -> String {
    let paragraphs: Vec<String> =
        text.split("\n\n").map(|p| p.lines().map(str::trim).collect::<Vec<_>>().join(" ")).collect();
    paragraphs.join("\n\n")
}

fn options(text: &mut String, arguments: &[&Arg]) {
    if arguments.is_empty() {
        return;
    }
    text.push_str("| argument | meaning |\n|---|---|\n");
    for argument in arguments {
        let _ = writeln!(text, "| `{}` | {} |", spelled(argument).replace('|', "\\|"), meaning(argument));
    }
    text.push('\n');
}

/// `RUN`, `[RUN]`, `--goal TEXT`, `--commit SHA ...`.
fn spelled(argument: &Arg) -> String {
    let names: Vec<String> = argument.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
    let value = if argument.get_action().takes_values() { names.join(" ") } else { String::new() };
    if argument.is_positional() {
        return if argument.is_required_set() { value } else { format!("[{value}]") };
    }
    let flag = match (argument.get_long(), argument.get_short()) {
        (Some(long), Some(short)) => format!("-{short}, --{long}"),
        (Some(long), None) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => String::new(),
    };
    let again = if matches!(argument.get_action(), ArgAction::Append) { " ..." } else { "" };
    // A value that may be left out is joined to its flag.
    let is_optional = argument.get_num_args().is_some_and(|count| count.min_values() == 0) && !value.is_empty();
    let spelled = if is_optional { format!("{flag}[={value}]{again}") } else { format!("{flag} {value}{again}") };
    spelled.trim().to_owned()
}

fn meaning(argument: &Arg) -> String {
    let mut meaning = argument.get_help().map(ToString::to_string).unwrap_or_default();
    if argument.is_required_set() && !argument.is_positional() {
        meaning.push_str(" (required)");
    }
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|v| !v.is_hide_set())
        .map(|v| format!("`{}`", v.get_name()))
        .collect();
    if argument.get_action().takes_values() && !values.is_empty() {
        let _ = write!(meaning, ": {}", values.join(", "));
    }
    let defaults: Vec<_> = argument.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    if !argument.is_hide_default_value_set() && argument.get_action().takes_values() && !defaults.is_empty() {
        let _ = write!(meaning, " [default: {}]", defaults.join(","));
    }
    meaning.replace('|', "\\|").replace('<', "\\<")
}
