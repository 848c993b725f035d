//! Makes the stores of a version: a life that touches every verb, and each operation that can be interrupted, aborted just after
//! commits of the ledger.
//!
//! The archive holds
//!
//!     life/                  a project whose ledger has something of everything
//!     life/trees/ID/         the trees that its checkpoints must restore
//!     life/answers/N.json    what the reading verbs said about it: words, exit code, output
//!     OPERATION/before/      the world that an operation begins in
//!     OPERATION/after/       the world after it, when nothing interrupts it
//!     OPERATION/NN/          the world that it left when it was aborted
//!     about.json             the schema, and the directory in which all this was made

mod halves;
mod life;

use std::path::{Path, PathBuf};
use std::process::Command;

use ic_testkit::{Cli, TestWorld, copy_over};
use serde_json::json;
use tempfile::TempDir;

use crate::stores::WINDOW;

/// How many moments of an operation are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moments {
    /// After the first commit, the last one, and one between.
    Few,
    /// After each commit, and some in the midst of work on the application's database.
    All,
}

/// One world after another in one directory, so that all have the same paths, and what was kept of them.
struct Maker {
    world: TestWorld,
    made: TempDir,
    moments: Moments,
}

/// Makes the stores of this program and packs them into `archive`.
pub(crate) fn make(archive: &Path, moments: Moments) {
    let home = tempfile::tempdir().expect("a temporary directory");
    std::fs::create_dir(home.path().join("project")).expect("the project's directory");
    let place = std::fs::canonicalize(home.path()).expect("its path");
    let cli = Cli::around(env!("CARGO_BIN_EXE_ic"), home).with_env("HOME", &place);
    let made = tempfile::tempdir().expect("a temporary directory");
    let maker = Maker { world: TestWorld::around(cli), made, moments };
    maker.life();
    maker.halves();
    let schema = maker.world.cli.json(["version", "--json"])["schema_version"].clone();
    let about = json!({"root": place.to_str().expect("a plain path"), "schema": schema});
    maker.write("about.json", &about.to_string());
    maker.pack(archive);
}

impl Maker {
    fn home(&self) -> &Path {
        self.world.cli.home()
    }

    fn root(&self) -> &Path {
        self.world.root()
    }

    /// A path in what is made.
    fn made(&self, below: &str) -> PathBuf {
        self.made.path().join(below)
    }

    /// Writes a file of what is made.
    fn write(&self, below: &str, text: &str) {
        ic_testkit::write_in(self.made.path(), below, text);
    }

    /// Writes a line into a file of the project.
    fn put(&self, path: &str, line: &str) {
        self.world.write(path, &format!("{line}\n"));
    }

    /// A call of words without spaces, which must end with this exit code.
    fn call(&self, exit: i32, words: &str) {
        let outcome = self.world.cli.run(words.split_whitespace());
        assert_eq!(outcome.code, Some(exit), "ic {words}: {outcome:?}");
    }

    /// The id that a call of words without spaces prints.
    fn id(&self, words: &str) -> String {
        let printed = self.world.cli.ok(words.split_whitespace().chain(["--format", "text"]));
        printed.lines().last().unwrap_or_default().to_owned()
    }

    /// A field of each record of a list, in the order of the list.
    fn each(&self, list: &str, field: &str) -> Vec<String> {
        let all = self.world.cli.json(list.split_whitespace().chain(["--json"]));
        let all = all.as_array().expect("a list");
        all.iter().map(|one| ic_testkit::text_of(one, field)).collect()
    }

    /// A git repository with a ledger and an application's database.
    fn new_world(&self) {
        for part in ["project", "outside"] {
            let place = self.home().join(part);
            if place.exists() {
                std::fs::remove_dir_all(&place).expect("remove the world before");
            }
        }
        for part in ["project/data", "outside/keys"] {
            std::fs::create_dir_all(self.home().join(part)).expect("a directory");
        }
        self.world.git(&["init", "-q", "-b", "main"]);
        self.call(0, "init");
        self.world.write(".gitignore", "data/\nignored/\n");
        self.call(0, "rewind init --profile devs --database data/app.db");
        self.put("README", "base");
        self.world.commit("base");
    }

    /// A task of the application, with what belongs to it.
    fn task(&self, name: &str, time: i64, commit: &str) {
        self.world.sql(&format!(
            "INSERT INTO tasks VALUES ('{name}', 'title of {name}', 'done', nullif('{commit}', ''), {time});
             INSERT INTO requirements VALUES ('R-{name}', '{name}', 'body', {time} + 1);
             INSERT INTO agent_logs (task_id, event_type, payload, created_at) VALUES ('{name}', 'note', '{{}}', {time} + 2);"
        ));
    }

    /// An effect whose undo writes its name once for each idempotency key. It names its place from the project's directory, so
    /// that it is the right one wherever the world is unpacked.
    fn effect(&self, run: &str, step: &str) {
        let undo = format!(
            "echo {step} >> ../outside/calls; if mkdir ../outside/keys/$IC_IDEMPOTENCY_KEY 2>/dev/null; \
             then echo {step} >> ../outside/undone; fi"
        );
        self.world.ic(&["compensation", "add", run, "--step", step, "--shell", &undo]);
    }

    /// Keeps the world under this name.
    fn keep(&self, name: &str) {
        std::fs::create_dir_all(self.made(name)).expect("a directory");
        for part in ["project", "outside"] {
            copy_over(&self.home().join(part), &self.made(name).join(part));
        }
    }

    /// Makes the world what it was when it was kept under this name.
    fn back_to(&self, name: &str) {
        for part in ["project", "outside"] {
            copy_over(&self.made(name).join(part), &self.home().join(part));
        }
    }

    fn pack(&self, archive: &Path) {
        std::fs::create_dir_all(archive.parent().expect("a directory")).expect("the archive's directory");
        let level = if self.moments == Moments::All { 19 } else { 1 };
        let mut tar = Command::new("tar");
        tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-C"]);
        let tar = tar.arg(self.made.path()).arg(".").output().expect("run tar");
        assert!(tar.status.success(), "tar could not pack");
        let file = std::fs::File::create(archive).expect("the archive");
        let mut packed = zstd::Encoder::new(file, level).expect("an archive");
        packed.window_log(WINDOW).and_then(|()| packed.long_distance_matching(true)).expect("a window");
        std::io::copy(&mut tar.stdout.as_slice(), &mut packed).expect("pack");
        packed.finish().expect("the end of the archive");
    }
}
