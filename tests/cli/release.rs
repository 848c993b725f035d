//! `scripts/release.sh`, with the program that the tests run.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::BINARY;

fn release(arguments: &[&str], out: &Path) -> Output {
    Command::new("bash")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/release.sh"))
        .args(arguments)
        .arg("--out")
        .arg(out)
        .env("SOURCE_DATE_EPOCH", "1771606515")
        // Nothing of who packs may matter.
        .env("IC_FORMAT", "text")
        .env("IC_DB", "/nonexistent")
        .output()
        .expect("bash")
}

fn packed(out: &Path) -> PathBuf {
    let output = release(&["--binary", BINARY], out);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(text.trim())
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_release_is_packed_alike_every_time() {
    let place = tempfile::tempdir().expect("a directory");
    let (one, two) = (place.path().join("one"), place.path().join("two"));
    let archive = packed(&one);
    let name = archive.file_name().expect("a name").to_string_lossy().into_owned();
    let target = name.strip_prefix(concat!("ic-", env!("CARGO_PKG_VERSION"), "-")).expect("the version");
    assert!(target.ends_with(".tar.gz") && target.contains("linux"), "{name}");
    assert_eq!(names(&one), BTreeSet::from([name.clone(), "SHA256SUMS".to_owned()]));
    assert_eq!(fs::read(packed(&two)).expect("the archive"), fs::read(&archive).expect("the archive"));

    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(&one).output().expect("a program");
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run("sha256sum", &["--check", "SHA256SUMS"]);
    let listed = run("tar", &["-tvzf", &name]);
    assert!(listed.lines().all(|line| line.contains(" 0/0 ") && line.contains("2026-02-20")), "{listed}");
    run("tar", &["-xzf", &name]);
    let unpacked = one.join(name.strip_suffix(".tar.gz").expect("an archive"));
    for file in [
        "README.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "THIRD-PARTY.md",
        "SHA256SUMS",
        "docs/CLI.md",
        "docs/errors/no_ledger.md",
        "share/ic/lib-intercore.sh",
        "share/bash-completion/completions/ic",
        "share/zsh/site-functions/_ic",
        "share/fish/vendor_completions.d/ic.fish",
        "share/man/man1/ic-run-rollback.1",
    ] {
        let mode = fs::metadata(unpacked.join(file)).unwrap_or_else(|e| panic!("{file}: {e}")).permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "{file}");
    }
    let sums = fs::read_to_string(unpacked.join("SHA256SUMS")).expect("the sums");
    assert!(sums.contains("  bin/ic\n"), "{sums}");
    let notices = fs::read_to_string(unpacked.join("THIRD-PARTY.md")).expect("the notices");
    let (crates, texts) = notices.split_once("# Texts\n").expect("the texts");
    assert!(crates.contains("| rusqlite | ") && texts.contains("rusqlite "), "{crates}");
    assert!(!crates.contains("| insta | ") && !crates.contains("| serde_derive | "), "it is not linked: {crates}");
    let program = unpacked.join("bin/ic");
    let size = |path: &Path| fs::metadata(path).expect("a program").len();
    assert!(size(&program) < size(Path::new(BINARY)), "it is stripped");
    let version = Command::new(program).arg("--version").output().expect("the program");
    assert_eq!(String::from_utf8_lossy(&version.stdout), concat!("ic ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn what_cannot_be_packed_leaves_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    let out = place.path().join("out");
    for (arguments, exit) in [
        (&["--target", "x"][..], 3),
        (&["--binary", ""], 3),
        (&["--binary", "/nonexistent"], 2),
        // Another program altogether.
        (&["--binary", "/bin/false"], 2),
        (&["--binary", "/bin/true"], 2),
    ] {
        let output = release(arguments, &out);
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {output:?}");
        assert!(!out.exists(), "{arguments:?}");
    }
}
