//! What HEAD is on, names and messages that are not text, and branches that move only in part.

use std::os::unix::ffi::OsStrExt;

use super::{Repository, apply_refs};

#[test]
fn a_head_on_another_ref_comes_back() {
    let repository = Repository::with_history();
    let main = repository.git("rev-parse main");
    repository.git("update-ref refs/own/x HEAD");
    repository.git("symbolic-ref HEAD refs/own/x");
    let first = repository.record(None);
    assert_eq!((first.branch.as_ref(), first.standing_on().as_deref()), (None, Some("refs/own/x")));
    repository.commit("a", "three");
    let second = repository.record(Some(&first));
    repository.git("symbolic-ref HEAD refs/heads/main");
    repository.git("update-ref -d refs/own/x");
    repository.record(Some(&second));
    for (at, state) in [&first, &second, &first].into_iter().enumerate() {
        repository.restore(state, &format!("id-{at}"));
        assert_eq!(repository.git("symbolic-ref HEAD"), "refs/own/x");
        assert_eq!(Some(repository.git("rev-parse HEAD")), state.head);
        assert_eq!(repository.git("rev-parse main"), main);
    }
    // One that is not there yet.
    repository.git("symbolic-ref HEAD refs/own/unborn");
    let unborn = repository.record(None);
    repository.git("symbolic-ref HEAD refs/heads/main");
    repository.restore(&unborn, "id-unborn");
    assert_eq!(repository.git("symbolic-ref HEAD"), "refs/own/unborn");
}

#[test]
fn branches_may_be_called_as_git_calls_other_states() {
    for name in ["(detached)", "(null)", "refs/heads/x", "(initial)"] {
        let repository = Repository::with_history();
        repository.git(&format!("checkout -q -b {name}"));
        let on_it = repository.record(None);
        assert_eq!(on_it.standing_on().as_deref(), Some(name));
        repository.git("checkout -q --detach");
        let detached = repository.record(Some(&on_it));
        assert_eq!(detached.standing_on(), None, "{name}");
        repository.restore(&on_it, "id");
        assert_eq!(repository.git("symbolic-ref HEAD"), format!("refs/heads/{name}"));
    }
}

#[test]
fn stash_messages_come_back_byte_for_byte() {
    let repository = Repository::with_history();
    let messages: [&[u8]; 5] = [b"\xff\xfe", b"a\xc3 b", "計\u{301}".as_bytes(), b"tab\there", b"%H %gs"];
    for message in messages {
        repository.write("a", "changed");
        let mut stash = std::process::Command::new("git");
        stash.args(["-c", "user.name=a", "-c", "user.email=a@b.c", "stash", "push", "-q", "-m"]);
        stash.arg(std::ffi::OsStr::from_bytes(message)).current_dir(repository.root());
        assert!(stash.status().unwrap().success());
    }
    let texts = || {
        let log = std::fs::read(repository.root().join(".git/logs/refs/stash")).unwrap();
        let text = |line: &[u8]| line.splitn(2, |b| *b == b'\t').nth(1).map(<[u8]>::to_vec);
        log.split(|b| *b == b'\n').filter_map(text).collect::<Vec<_>>()
    };
    let before = texts();
    let state = repository.record(None);
    repository.git("stash clear");
    repository.restore(&state, "one");
    assert_eq!(texts(), before);
    assert_eq!(before.iter().filter(|text| text.contains(&0xff)).count(), 1);
}

#[test]
fn branches_that_moved_in_part_are_named_in_the_error() {
    let repository = Repository::with_history();
    repository.git("branch feat/login");
    repository.git("branch new");
    let target = repository.record(None);
    repository.git("branch -D feat/login new");
    repository.git("branch feat");
    let (plan, current) = repository.plan(&target).unwrap();
    // Git lists no ref for it, and cannot make a file of this name.
    let blocked = repository.root().join(".git/refs/heads/new");
    std::fs::create_dir(&blocked).unwrap();
    std::fs::write(blocked.join("x.lock"), "").unwrap();
    let error = apply_refs(&repository.root(), &plan, &target, &current, "id", &repository.objects).unwrap_err();
    assert_eq!(repository.git("branch --list feat"), "", "it went ahead of the others");
    assert_eq!(error.details()["done"], serde_json::json!(["refs"]), "{error}");
    assert!(error.get_hint().unwrap().contains("restored in part"), "{error}");
}
