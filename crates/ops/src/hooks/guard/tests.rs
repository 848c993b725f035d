use std::fs;
use std::os::unix::fs::symlink;

use ic_worktree::auto::LeftOut;

use super::destructive_command::dedup;
use super::*;

const UNKNOWN: &str = "files that cannot be told from the command";
const REMOTE: &str = "what the remote has";
const DATA: &str = "data (ignored)";
const ENV: &str = ".env (secret)";
const BIG: &str = "web/big.bin (oversize)";
const GIT: &str = ".git (git)";

fn left_out() -> Vec<LeftOut> {
    [
        (".env", "secret"),
        (".git", "git"),
        ("data", "ignored"),
        ("debug.log", "ignored"),
        ("web/node_modules", "ignored"),
        ("web/big.bin", "oversize"),
    ]
    .map(|(path, why)| (path.as_bytes().to_vec(), why.to_owned()))
    .to_vec()
}

/// A project with a link out of it; the home directory is one that is always there.
struct Tree {
    _around: tempfile::TempDir,
    root: PathBuf,
    home: &'static Path,
}

impl Tree {
    fn new() -> Self {
        let around = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(around.path()).unwrap().join("shop");
        for directory in ["web/src", "src"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        symlink("/usr/share", root.join("lnk")).unwrap();
        symlink(&root, around.path().join("named")).unwrap();
        Self { _around: around, root, home: Path::new("/usr") }
    }

    /// What a line would destroy for good that runs in `web`.
    fn lost(&self, line: &str, held: StoredPaths<'_>) -> Vec<String> {
        let danger = read(line, &self.root.join("web"), Some(self.home));
        let mut losses: Vec<String> = danger.acts.iter().flat_map(|act| act.losses(&self.root, held)).collect();
        dedup(&mut losses);
        losses
    }

    #[track_caller]
    fn check(&self, lines: &[(&str, &[&str])]) {
        let left_out = left_out();
        for (line, losses) in lines {
            assert_eq!(self.lost(line, StoredPaths::AllBut(&left_out)), *losses, "{line}");
        }
    }
}

#[test]
fn what_a_command_destroys_is_told_where_no_checkpoint_holds_it() {
    Tree::new().check(&[
        ("rm -rf ../data", &[DATA]),
        ("rm -rf ../data/rows && ls", &[DATA]),
        ("sudo -n rm --recursive ..", &[ENV, GIT, DATA, "debug.log (ignored)", BIG]),
        ("rm -fr *", &[BIG]),
        ("rm -fr ../*", &[DATA, "debug.log (ignored)", BIG]),
        ("rm -fr ../.e*", &[ENV]),
        ("rm -r ~/share", &["/usr/share (outside of the project)"]),
        ("rm -r \"$HOME/x\"", &[UNKNOWN]),
        ("rm -r ~bob/x", &[UNKNOWN]),
        ("find ../data -name '*.env' -delete", &[DATA]),
        ("find -delete", &[BIG]),
        ("find -L .. -name x -delete", &[ENV, GIT, DATA, "debug.log (ignored)", BIG]),
        ("find ../data -exec sudo rm {} +", &[DATA]),
        ("find ../data -execdir sh -c 'rm -r \"$1\"' _ {} \\;", &[DATA]),
        ("git ls-files | xargs rm -r", &[UNKNOWN]),
        ("ls | xargs -I {} sh -c 'rm -rf {}'", &[UNKNOWN]),
        ("git -C .. push origin +main", &[REMOTE]),
        ("git push -f", &[REMOTE]),
        ("git push origin :main", &[REMOTE]),
        ("git push --delete origin main", &[REMOTE]),
        ("git push origin --delete main", &[REMOTE]),
        ("git clean -fdx ..", &[ENV, DATA, "debug.log (ignored)", BIG]),
        ("git -C .. clean -fdX", &[DATA, "debug.log (ignored)"]),
        ("git clean -fd", &[BIG]),
        ("git -C .. stash -a", &[ENV, DATA, "debug.log (ignored)", BIG]),
        ("git -C .. stash push --include-untracked", &[ENV, BIG]),
        ("git stash; git stash pop; git stash apply -q", &[]),
        ("git -c alias.x='clean -fdx ..' x", &[ENV, DATA, "debug.log (ignored)", BIG]),
        ("git -c alias.x='!rm -rf' x ../data", &[DATA]),
        ("bash <<< 'rm -rf ../data'", &[DATA]),
        ("sudo sh -s a <<'X'\ncd ..\nrm -rf data\nX\nls", &[DATA]),
        ("bash run.sh <<< 'rm -rf ../data'", &[]),
        ("echo 'rm -rf ../data' | sh", &[DATA]),
        ("echo rm -rf \"$X\" | sudo bash -s", &[UNKNOWN]),
        ("printf 'cd ..\\nrm -rf %s\\n' data |& sh", &[DATA]),
        ("cat <<X | tee log | sh\nrm -rf ../data\nX", &[DATA]),
        ("(echo rm -rf ../data) | bash", &[DATA]),
        ("echo \"echo 'rm -rf ../data' | sh\" | sh", &[DATA]),
        ("echo 'rm -rf ../data' || sh", &[]),
        ("echo 'rm -rf ../data' | cat; sh", &[]),
        ("echo 'rm -rf ../data' | sh run.sh", &[]),
        ("echo rm -rf ../data | grep rm", &[]),
        ("find ../data -name x | xargs rm", &[DATA]),
        ("find ../data -print0 | grep -z x | sudo xargs -0 -n 1 rm -f", &[DATA]),
        ("find | xargs rm", &[BIG]),
        ("find ../data; ls | xargs rm", &[]),
        ("find ../data | xargs ls", &[]),
        ("echo x | xargs rm -rf", &[UNKNOWN]),
        ("xargs rm -rf < list", &[UNKNOWN]),
        ("git -C ~/share reset --hard", &["/usr/share (outside of the project)"]),
        ("dd if=/dev/zero of=big.bin", &[BIG]),
        ("dd if=x of=/dev/random", &["/dev/random (outside of the project)"]),
        ("truncate -s 0 ../.env", &[ENV]),
        ("X=1 timeout 5s shred ../.env", &[ENV]),
        ("echo 'rm -rf", &[UNKNOWN]),
        ("bash -c \"echo 'rm -rf\"", &[UNKNOWN]),
    ]);
}

#[test]
fn a_single_file_that_no_checkpoint_holds_is_named() {
    Tree::new().check(&[
        ("rm ../.env", &[ENV]),
        ("rm -f -- ../data/rows", &[DATA]),
        ("unlink big.bin", &[BIG]),
        ("rm ../*.log", &["debug.log (ignored)"]),
        ("rm ~/share", &["/usr/share (outside of the project)"]),
        ("rm a.txt *.tmp \"$X\" node_modules/x.js", &[]),
        ("rm .", &[]),
        ("git ls-files | xargs rm -f", &[]),
    ]);
}

#[test]
fn where_a_line_goes_is_followed() {
    Tree::new().check(&[
        ("cd src && rm -rf ../../data", &[DATA]),
        ("cd ../src; rm -rf ../data", &[DATA]),
        ("cd .. && rm -rf data", &[DATA]),
        ("(cd src; rm -rf ../../data)", &[DATA]),
        ("(cd ..); rm -rf data", &[]),
        ("pushd -- .. && rm -rf data", &[DATA]),
        ("pushd ..; popd; rm -rf data", &[UNKNOWN]),
        ("cd .. ; cd -; rm -rf src", &[UNKNOWN]),
        ("cd / && rm -rf usr", &["/usr (outside of the project)"]),
        ("cd / && rm -rf usr/bin", &["/usr/bin (outside of the project)"]),
        ("cd; rm -rf share", &["/usr/share (outside of the project)"]),
        ("cd \"$X\" && rm -rf src", &[UNKNOWN]),
        ("cd not-there; rm -rf src", &[UNKNOWN]),
        ("cd \"$X\"; rm -rf /tmp/x; rm a.txt; git stash drop", &[]),
        ("bash -c 'cd ..'; rm -rf data", &[]),
        ("eval 'cd ..'; rm -rf data", &[DATA]),
        ("env -C .. rm -rf data", &[UNKNOWN]),
        ("rm -rf ../lnk/not-there", &[]),
        ("rm -rf ../lnk/*", &["/usr/share/* (outside of the project)"]),
        ("rm -rf ../lnk", &[]),
        ("rm -rf ../lnk/..", &["/usr (outside of the project)"]),
        ("cd ../lnk && rm -rf ../share", &["/usr/share (outside of the project)"]),
        ("rm -rf ../../named/data", &[DATA]),
    ]);
}

#[test]
fn what_stands_in_a_command_is_read() {
    Tree::new().check(&[
        ("bash -c 'rm -rf ../data'", &[DATA]),
        ("echo \"$(rm -rf ../data)\"", &[DATA]),
        ("echo `rm -rf ../data`", &[DATA]),
        ("X=$(rm -rf ../data) ls", &[DATA]),
        ("diff <(rm -rf ../data) x", &[DATA]),
        ("eval \"rm -rf ../data\"", &[DATA]),
        ("eval \"rm -rf $X\"", &[UNKNOWN]),
        ("eval \"$(ssh-agent)\"", &[]),
        ("rm -rf {src,../data}", &[DATA]),
        ("rm -rf ../{d..e}", &[UNKNOWN]),
        ("if ! rm -rf ../data; then ls; fi", &[DATA]),
        ("rm -rf src 2>/dev/null >../debug.log", &[]),
        ("echo 'rm -rf ../data' \"rm -rf ../data\"", &[]),
    ]);
}

/// What AGENTS.md says is read, in front of what it says is looked for.
#[test]
fn each_pair_is_told_behind_each_wrapper() {
    let tree = Tree::new();
    let left_out = left_out();
    let wrappers = [
        "",
        "sudo",
        "sudo -u root",
        "sudo -nu root --",
        "doas -u root",
        "env",
        "env -u X A=b",
        "env - X=1",
        "xargs",
        "xargs -0 -I {}",
        "xargs -n 1",
        "timeout 5",
        "timeout -s KILL -k 5 5s",
        "nice -n 5",
        "nice -5",
        "ionice -c 3",
        "nohup",
        "stdbuf -o L",
        "time -p",
        "command",
        "X=1",
        "ls &&",
        "ls;",
        "ls |",
        "if true; then",
        "sudo env nice",
    ];
    let commands = [
        "rm -r ../data", "git clean -fdx ..", "git push --force", "find .. -delete", "dd of=big.bin",
        "truncate -s 0 big.bin", "shred big.bin", "git reset --hard", "git checkout -- .", "git stash drop",
    ];
    for command in commands {
        let of_git = read(command, &tree.root, None).takes_git();
        for wrapper in wrappers {
            for line in [format!("{wrapper} {command}"), format!("{wrapper} bash -lc '{command}'")] {
                let danger = read(&line, &tree.root.join("web"), None);
                assert_eq!(danger.takes_git(), of_git, "{line}");
                let is_doubtful = danger.doubt(&tree.root, StoredPaths::AllBut(&left_out)).is_some();
                assert_eq!(is_doubtful, !of_git, "{line}");
            }
        }
    }
}

#[test]
fn what_is_above_the_project_takes_it_along_wherever_it_lies() {
    let tree = Tree::new();
    let left_out = left_out();
    for up in ["../..", "../../"] {
        let line = format!("rm -rf {up}");
        let lost = tree.lost(&line, StoredPaths::AllBut(&left_out));
        assert!(lost.len() == 1 && lost[0].ends_with("(the project is in it)"), "{line}: {lost:?}");
    }
    for line in ["function f { rm -rf ../data; }; f", "coproc rm -rf ../data", "f() { rm -rf ../data; }; f"] {
        assert_eq!(tree.lost(line, StoredPaths::AllBut(&left_out)).len(), 1, "{line}");
    }
}

#[test]
fn where_nothing_is_captured_everything_that_is_named_is_lost() {
    let tree = Tree::new();
    for (line, losses) in [
        ("rm -rf src ../data", vec!["web/src (not captured)"]),
        ("rm -rf ..", vec![". (not captured)"]),
        ("rm -rf ../lnk node_modules /tmp/x", vec!["lnk (not captured)"]),
        ("git clean -f", vec!["what git does not track (not captured)"]),
        ("git reset --hard", vec!["what git has not committed (not captured)"]),
        ("ls; git status", vec![]),
    ] {
        assert_eq!(tree.lost(line, StoredPaths::Nothing), losses, "{line}");
    }
    let danger = read("rm a; rm -r src; rm -r src", &tree.root, None);
    assert_eq!(
        danger.doubt(&tree.root, StoredPaths::Nothing).as_deref(),
        Some("`rm -r` would destroy what `ic` cannot restore: src (not captured).")
    );
}

#[test]
fn what_comes_back_is_let_through() {
    let tree = Tree::new();
    let left_out = left_out();
    for line in [
        "ls -r; rm a.txt",
        "rm -rf node_modules dist ../target/debug",
        "rm -rf src",
        "rm -rf /tmp/x",
        "echo rm -rf ../data",
        "cat <<EOF >run.sh\nrm -rf ../data\nEOF\nls",
        "# rm -rf ../data",
        "git commit -m 'rm -rf ../data'",
        "git commit -m \"$(cat <<'EOF'\nIt's (rm -rf ../data\nEOF\n)\"",
        "git reset --hard HEAD~1 && git stash drop && git checkout -- . && git branch -D x",
        "git clean -nfdx ..",
        "git push --set-upstream origin main",
        "git push -n -f",
        "find . -name x -exec grep y {} +",
    ] {
        assert_eq!(tree.lost(line, StoredPaths::AllBut(&left_out)), Vec::<String>::new(), "{line}");
    }
    let takes_git = |line| read(line, &tree.root, None).takes_git();
    assert!(takes_git("git stash drop") && takes_git("git branch -D x") && !takes_git("rm -rf src"));
}
