//! Where a symbolic link leads is no content of its own: a purge says that it does not reach it.

use std::os::unix::fs::symlink;

use ic_testkit::write_in;

use super::*;

#[test]
fn a_link_is_refused_and_named_with_the_way_out() {
    let cli = repository();
    symlink(SECRET, cli.root().join("l")).expect("a link");
    let with_link = cli.ok(["checkpoint", "create", "--format", "text"]);
    std::fs::remove_file(cli.root().join("l")).expect("no link");
    let before = cli.dump();
    let refused = cli.run(["checkpoint", "purge", "l", "--yes", "--json"]);
    assert_eq!((refused.code, refused.error().as_str()), (Some(3), "path_not_found"), "{refused:?}");
    assert_eq!(cli.dump(), before, "nothing was recorded");
    // The way out that it names works: then no object of the store has the name. The stat cache has it until it is written anew.
    let said: serde_json::Value = serde_json::from_str(&refused.stderr).expect("one error");
    let hint = said["error"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("ic checkpoint delete"), "{hint}");
    cli.ok(["checkpoint", "create"]);
    assert!(!of_objects(&cli).is_empty(), "it was there");
    cli.ok(["checkpoint", "delete", &with_link, "--grace", "0s"]);
    assert_eq!(of_objects(&cli), Vec::<String>::new());
}

/// Where the store's objects have the secret.
fn of_objects(cli: &Cli) -> Vec<String> {
    holders(cli).into_iter().filter(|holder| !holder.contains("objects.cache")).collect()
}

#[test]
fn a_path_that_was_a_file_and_a_link_is_purged_as_a_file_and_the_link_is_named() {
    let cli = repository();
    write_in(cli.root(), "l", SECRET);
    let with_file = cli.ok(["checkpoint", "create", "--format", "text"]);
    std::fs::remove_file(cli.root().join("l")).expect("no file");
    symlink("elsewhere", cli.root().join("l")).expect("a link");
    let with_link = cli.ok(["checkpoint", "create", "--format", "text"]);
    let purged = cli.json(["checkpoint", "purge", "l", "--yes", "--json"]);
    assert_eq!(purged["checkpoint_ids"], serde_json::json!([with_file]), "{purged}");
    let link = purged["left"].as_array().expect("a list").iter().find(|left| left["place"] == "links");
    let command = link.unwrap_or_else(|| panic!("{purged}"))["command"].as_str().expect("a command");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    assert!(cli.ok(words).contains(&with_link[28..]), "{command}");
    assert_eq!(holders(&cli), Vec::<String>::new());
}
