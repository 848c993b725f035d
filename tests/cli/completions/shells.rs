//! Real shells, each with its own way of splitting, quoting and inserting words.

use std::fmt::Write;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::short;
use crate::support::{BINARY, Project, story};

/// A line up to the cursor, and what it is after TAB. RUN stands for a run whose phases are hard to type.
const LINES: &[(&str, &str)] = &[
    ("ic run adva", "ic run advance "),
    ("ic rol", "ic rollback "),
    ("ic run rollback RUN --to-phase in", r"ic run rollback RUN --to-phase in\ review "),
    ("ic run rollback RUN --to-phase=in", r"ic run rollback RUN --to-phase=in\ review "),
    (r"ic run rollback RUN --to-phase in\ r", r"ic run rollback RUN --to-phase in\ review "),
    ("ic run rollback RUN --to-phase 'in r", "ic run rollback RUN --to-phase 'in review' "),
    ("ic run rollback RUN --to-phase \"in r", "ic run rollback RUN --to-phase \"in review\" "),
    ("ic run artifact list RUN --phase a:", "ic run artifact list RUN --phase a:b@c=d "),
    ("ic run artifact list RUN --phase=a:b@", "ic run artifact list RUN --phase=a:b@c=d "),
    ("ic run artifact list RUN --phase a:b@c=", "ic run artifact list RUN --phase a:b@c=d "),
    ("ic run advance RUN --expect-phase a:b@c=d@", "ic run advance RUN --expect-phase a:b@c=d@0 "),
    ("ic run status scope:spr", "ic run status scope:sprint-12 "),
    ("ic run status scope:x:", "ic run status scope:x:1 "),
    ("ic run status sc", "ic run status scope:"),
    ("ic run artifact add @ --path my", r"ic run artifact add @ --path my\ docs/"),
    (r"ic run artifact add @ --path my\ docs/", r"ic run artifact add @ --path my\ docs/it\'s\ \$5.md "),
    ("ic run artifact add @ --path \"my docs/i", r#"ic run artifact add @ --path "my docs/it's \$5.md" "#),
    ("ic run artifact add @ --path ~/no", "ic run artifact add @ --path ~/notes.md "),
    ("ic -C other run rollback @ --to-phase ", "ic -C other run rollback @ --to-phase elsewhere "),
    ("ic -C other run artifact add @ --path o", "ic -C other run artifact add @ --path only.md "),
    ("ic --db=other/.ic/ic.db run status scope:", "ic --db=other/.ic/ic.db run status scope:there "),
    ("ic run rollback @ --layer git,fi", "ic run rollback @ --layer git,files "),
    ("ic run rollback @ --layer=git,fi", "ic run rollback @ --layer=git,files "),
    ("ic run create --gates=@fl", "ic run create --gates=@flow.yaml "),
    ("IC_FORMAT=text ic run adva", "IC_FORMAT=text ic run advance "),
    ("ic nothing ", "ic nothing "),
    // No word of a line is ever run.
    ("ic run status $(touch ran) `touch ran` ", "ic run status $(touch ran) `touch ran` "),
];

/// A home with `ic` on its PATH, and a project in it.
struct Desk {
    project: Project,
    run: String,
}

impl Desk {
    fn new() -> Self {
        let project = Project::new();
        story(&project);
        let phases = "draft,in review,a:b@c=d,done";
        let run =
            project.run_words(["run", "create", "--goal", "Odd names", "--phases", phases, "--scope-id", "x:1"]).stdout;
        let run = run.trim().to_owned();
        project.ok(&format!("run advance {run}"));
        project.ok(&format!("run advance {run}"));
        project.write("my docs/it's $5.md", "");
        project.write("flow.yaml", "");
        project.write("other/only.md", "");
        fs::write(project.cli.home().join("notes.md"), "").expect("a file");
        project.write("other/.ic.yaml", "rollback: {checkpointing: {auto: false}}\n");
        project.ok("-C other init --db .ic/ic.db");
        project.ok("-C other run create --goal there --scope-id there --phases elsewhere,b,c");
        project.ok("-C other run advance @");
        fs::create_dir(project.cli.home().join("bin")).expect("a directory");
        symlink(BINARY, project.cli.home().join("bin/ic")).expect("the program");
        Self { project, run }
    }

    fn shell(&self, program: &str) -> Command {
        let home = self.project.cli.home();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.project.root()).stdin(Stdio::null());
        command.env("PATH", format!("{}:{}", home.join("bin").display(), path.display()));
        command.env("HOME", home).env("TERM", "dumb").env("LC_ALL", "C.UTF-8");
        command.env("XDG_CONFIG_HOME", home).env("XDG_DATA_HOME", home);
        command
    }

    fn fill(&self, line: &str) -> String {
        line.replace("RUN", short(&self.run))
    }

    /// What a file of answers holds must be what the lines are to be after TAB.
    fn check(&self, answers: &Path) {
        let found = fs::read_to_string(answers).unwrap_or_default();
        assert_eq!(found.lines().count(), LINES.len(), "{found}");
        for ((line, after), found) in LINES.iter().zip(found.lines()) {
            assert_eq!(found, format!("<{}>", self.fill(after)), "{line}");
        }
        assert!(!self.project.root().join("ran").exists(), "a word was run");
    }
}

fn is_there(program: &str, arguments: &[&str]) -> bool {
    let found = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let is_there = found.is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("skipped: no {program} that can be tested");
    }
    is_there
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs bash with its line editor on these keys.
fn typed_into_bash(desk: &Desk, keys: &str) -> Output {
    let mut command = desk.shell("bash");
    command.args(["--norc", "--noprofile", "-i"]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("bash");
    child.stdin.take().expect("its input").write_all(keys.as_bytes()).expect("the keys");
    child.wait_with_output().expect("its end")
}

#[test]
fn bash_inserts_what_fits() {
    let desk = Desk::new();
    let answers = desk.project.cli.home().join("answers");
    let mut keys = format!(
        "source <(ic completions bash)\nshow() {{ printf '<%s>\\n' \"$READLINE_LINE\" >>'{}'; READLINE_LINE=; }}\n\
         bind -x '\"\\C-t\": show'\n",
        answers.display()
    );
    for (line, _) in LINES {
        let _ = write!(keys, "{}\t\x14", desk.fill(line));
    }
    let output = typed_into_bash(&desk, &keys);
    assert!(answers.exists(), "{}", said(&output));
    desk.check(&answers);
}

#[test]
fn bash_lists_with_what_each_is() {
    let desk = Desk::new();
    let keys = "source <(ic completions bash)\nCOLUMNS=60\nbind 'set page-completions off'\nbind '\"\\C-o\": possible-completions'\n\
                ic run status \x0f\x15ic run rollback @ --\x0f\x15ic dispatch \x0f\x15\n";
    let text = said(&typed_into_bash(&desk, keys));
    assert!(text.contains(&format!("{}  (Odd names, a:b@c=d)", short(&desk.run))), "{text}");
    let to_phase = text.lines().find(|line| line.starts_with("--to-phase ")).unwrap_or_else(|| panic!("{text}"));
    assert!(to_phase.trim_end().ends_with("(The phase to go back to)"), "{to_phase}");
    let long = text.lines().find(|line| line.starts_with("--dispatch")).unwrap_or_else(|| panic!("{text}"));
    assert!(long.trim_end().ends_with("…)") && long.trim_end().chars().count() <= 60, "{long}");
    // In the program's order, not in the alphabet's.
    assert!(text.find("create  ").expect("create") < text.find("cancel  ").expect("cancel"), "{text}");
}

#[test]
fn bash_without_its_line_editor_is_answered_too() {
    let desk = Desk::new();
    // As bash-completion's own wrappers (of sudo, of env) call a completion.
    let script = "source <(ic completions bash)\n\
                  COMP_LINE='ic run list --format=js --json' COMP_POINT=23 COMP_TYPE=9\n\
                  COMP_WORDS=(ic run list --format = js --json) COMP_CWORD=5\n\
                  _ic ic js = && printf '%s|' \"${COMPREPLY[@]}\"; complete -p ic";
    let output = desk.shell("bash").args(["-uc", script]).output().expect("bash");
    assert_eq!(said(&output), "json|jsonl|complete -o nosort -F _ic ic\n");
}

/// A zsh that drives another one: it types each line and TAB, and waits until the line was written down.
const DRIVER: &str = r#"
zmodload zsh/zpty || exit 1
zpty -b inner "zsh -f -i"
zpty -w inner "autoload -Uz compinit && compinit -u -D; source <(ic completions zsh)"
zpty -w inner 'show() { print -r -- "<$BUFFER>" >>answers; BUFFER= }; zle -N show; bindkey "^T" show; unsetopt auto_list beep; : >answers; echo rea''dy'
seen=
for (( tries = 0; tries < 600; tries++ )); do
    zpty -r -t inner part && seen+=$part
    [[ $seen == *ready* ]] && break
    sleep 0.05
done
number=0
while IFS= read -r line; do
    zpty -w -n inner "$line"$'\t\C-t'
    (( number++ ))
    for (( tries = 0; tries < 200; tries++ )); do
        (( $(wc -l <answers) >= number )) && break
        while zpty -r -t inner part; do seen+=$part; done
        sleep 0.02
    done
done <lines
zpty -d inner
print -r -- "$seen"
"#;

#[test]
fn zsh_inserts_what_fits() {
    if !is_there("zsh", &["-fc", "zmodload zsh/zpty"]) {
        return;
    }
    let desk = Desk::new();
    let root = desk.project.root();
    let lines: String = LINES.iter().map(|(line, _)| desk.fill(line) + "\n").collect();
    fs::write(root.join("lines"), lines).expect("the lines");
    let output = desk.shell("zsh").args(["-fc", DRIVER]).output().expect("zsh");
    assert!(root.join("answers").exists(), "{}", said(&output));
    desk.check(&root.join("answers"));
}

#[test]
fn zsh_finds_the_script_in_its_path() {
    if !is_there("zsh", &["-fc", ":"]) {
        return;
    }
    let desk = Desk::new();
    let script = "mkdir zfunc && ic completions zsh >zfunc/_ic && fpath=($PWD/zfunc $fpath)\n\
                  autoload -Uz compinit && compinit -u -D && print -r -- $_comps[ic]; zsh -n zfunc/_ic";
    let output = desk.shell("zsh").args(["-fc", script]).output().expect("zsh");
    assert_eq!(said(&output), "_ic\n");
}

#[test]
fn fish_is_offered_what_fits() {
    if !is_there("fish", &["--no-config", "-c", "true"]) {
        return;
    }
    let desk = Desk::new();
    let mut script = "ic completions fish | source\n".to_owned();
    for (line, _) in LINES {
        let line = desk.fill(line).replace('\\', "\\\\").replace('\'', "\\'");
        let _ = writeln!(script, "printf '<%s>\\n' (complete --do-complete '{line}' | string join '|')");
    }
    let output = desk.shell("fish").args(["--no-config", "-c", &script]).output().expect("fish");
    let text = said(&output);
    // It inserts by itself: what counts is what it is offered.
    let offered = |part: &str| text.lines().any(|line| line.strip_prefix('<').is_some_and(|l| l.starts_with(part)));
    // What it says of a verb is what its help begins with.
    let help = said(&desk.shell("ic").args(["run", "advance", "-h"]).output().expect("ic"));
    let about = help.lines().next().expect("a first line");
    assert!(offered(&format!("advance\t{about}>")), "{about:?} is not in:\n{text}");
    for part in [
        "rollback\tRollbacks: ",
        "in review\tbehind>",
        "--to-phase=in review\tbehind>",
        "a:b@c=d\twhere the run is>",
        "--phase=a:b@c=d\twhere the run is>",
        "a:b@c=d@0\tand no rollback since>",
        "scope:sprint-12\tAdd a login, executing>",
        "scope:x:1\tOdd names, a:b@c=d>",
        "my docs/>",
        "my docs/it's $5.md>",
        "~/notes.md>",
        "elsewhere\tbehind>",
        "only.md>",
        "git,files\tFiles of the working tree>",
        "--layer=git,files\tFiles of the working tree>",
        "--gates=@flow.yaml>",
    ] {
        assert!(offered(part), "{part:?} is not in:\n{text}");
    }
    assert_eq!(text.lines().count(), LINES.len(), "{text}");
    assert!(!desk.project.root().join("ran").exists(), "a word was run");
}
