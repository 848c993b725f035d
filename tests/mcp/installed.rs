//! `ic install` and `ic hooks install`: what they add to a client's settings, and that uninstalling removes exactly that.

use serde_json::Value;

use crate::project::world;

/// A client, its file in a project, what a person has in it, and what of it calls us.
const CLIENTS: [(&str, &str, &str, &str); 5] = [
    (
        "claude-code",
        ".mcp.json",
        "{ \"mcpServers\": {\"other\": {\"command\": \"x\",\n \"args\": [1.50]}} }\n",
        "/mcpServers/ic/args/0",
    ),
    ("codex", ".codex/config.toml", "# mine\nmodel = \"x\"\n[mcp_servers.other]\ncommand='y'", ""),
    ("gemini", ".gemini/settings.json", "{\"theme\":  \"dark\"}", "/mcpServers/ic/args/0"),
    ("copilot", ".github/mcp.json", "{ }\n", "/mcpServers/ic/args/0"),
    ("opencode", "opencode.json", "{\"mcp\": { },\n\"autoupdate\": false}\n", "/mcp/ic/command/1"),
];

#[test]
fn what_a_person_has_stays_and_comes_back_byte_for_byte() {
    for (client, file, before, ours) in CLIENTS {
        for before in [Some(before), None] {
            let world = world();
            if let Some(text) = before {
                world.write(file, text);
            }
            let status = world.git(&["status", "--porcelain", "--untracked-files=all"]);
            let planned = world.cli.json(["install", client, "--dry-run", "--json"]);
            let planned = &planned["mcp"];
            assert_eq!(world.read(file).as_deref(), before, "{client}: a dry run changes nothing");
            let done = world.cli.json(["install", client, "--json"]);
            let done = &done["mcp"];
            assert_eq!((&done["changed"], &done["dry_run"]), (&Value::from(true), &Value::from(false)), "{done}");
            let text = world.text(file);
            assert_eq!(planned["content"].as_str(), Some(text.as_str()), "{client}: the dry run showed it");
            if ours.is_empty() {
                assert!(text.starts_with(before.unwrap_or_default()) && text.contains("[mcp_servers.ic]\n"), "{text}");
            } else {
                let value: Value = serde_json::from_str(&text).expect("JSON");
                assert_eq!(value.pointer(ours), Some(&Value::from("mcp")), "{client}: {text}");
            }
            let again = world.cli.json(["install", client, "--json"]);
            let again = &again["mcp"];
            assert_eq!((&again["changed"], world.text(file)), (&Value::from(false), text), "{client}: once");
            let gone = world.cli.json(["uninstall", client, "--json"]);
            assert_eq!(gone["mcp"]["server_left"], Value::Null);
            assert_eq!(world.read(file).as_deref(), before, "{client}");
            let after = world.git(&["status", "--porcelain", "--untracked-files=all"]);
            assert_eq!(after, status, "{client}: nothing is left beside it");
        }
    }
}

#[test]
fn hooks_and_server_share_a_file_without_harm() {
    let orders: [[&[&str]; 4]; 2] = [
        [&["hooks", "install"], &["install"], &["uninstall"], &["uninstall"]],
        [&["install"], &["install"], &["uninstall"], &["uninstall"]],
    ];
    for before in [Some("{\"theme\":  \"dark\",\n\"mcpServers\": {}}"), Some("{}\n"), None] {
        for order in orders {
            let world = world();
            if let Some(text) = before {
                world.write(".gemini/settings.json", text);
            }
            for (at, call) in order.iter().enumerate() {
                let words: Vec<&str> = call.iter().copied().chain(["gemini"]).collect();
                world.cli.ok(words);
                let text = world.text(".gemini/settings.json");
                if at == 1 {
                    assert!(text.contains("\"ic\"") && text.contains("hook gemini BeforeAgent"), "{text}");
                }
            }
            assert_eq!(world.read(".gemini/settings.json").as_deref(), before, "{order:?}");
        }
    }
}

#[test]
fn both_are_shown_and_written_by_one_call() {
    for (client, file, before, _) in CLIENTS {
        let world = world();
        world.write(file, before);
        let dump = world.cli.dump();
        let planned = world.cli.json(["install", client, "--dry-run", "--json"]);
        assert!(planned["hooks"]["content"].is_string() && planned["mcp"]["content"].is_string(), "{planned}");
        assert_eq!((world.text(file).as_str(), world.cli.dump()), (before, dump), "{client}");
        world.cli.json(["install", client, "--json"]);
        assert_eq!(planned["mcp"]["content"].as_str(), Some(world.text(file).as_str()), "{client}");
        let planned = world.cli.json(["uninstall", client, "--dry-run", "--json"]);
        assert_eq!(planned["mcp"]["content"], before, "{client}");
        let is_one = planned["mcp"]["config_file"] == planned["hooks"]["config_file"];
        assert_eq!(planned["hooks"]["content"], if is_one { before } else { "" }, "{client}");
        assert_eq!(planned["hooks"]["removes_file"], !is_one, "{client}");
        world.cli.json(["uninstall", client, "--json"]);
        assert_eq!(world.text(file), before, "{client}");
        // Where there was no file, it goes.
        world.remove(file);
        world.cli.json(["install", client, "--json"]);
        let shown = world.cli.ok(["uninstall", client, "--dry-run", "--format", "text"]);
        assert!(shown.contains("Would remove ") && !shown.contains("Would write"), "{client}: {shown}");
        let done = world.cli.json(["uninstall", client, "--json"]);
        assert_eq!(done["hooks"]["removes_file"], true, "{done}");
        assert_eq!(done["mcp"]["removes_file"], !is_one, "{done}");
        assert_eq!(world.read(file), None, "{client}");
    }
}

#[test]
fn what_is_not_valid_is_refused_and_nothing_is_written() {
    for (client, file, ..) in CLIENTS {
        for bad in ["{ // mine\n}", "[", "\u{feff}{}", "\"text\""] {
            let world = world();
            world.write(file, bad);
            for words in [vec!["install", client], vec!["install", client, "--dry-run"]] {
                let outcome = world.cli.run(&words);
                assert_eq!(
                    (outcome.code, outcome.error().as_str()),
                    (Some(1), "config_not_changed"),
                    "{words:?} {bad}"
                );
            }
            assert_eq!(world.text(file), bad);
            assert!(!world.git(&["status", "--porcelain", "--untracked-files=all"]).contains("before-ic"));
            let hooks = [
                ".claude/settings.local.json",
                ".codex/hooks.json",
                ".github/hooks/ic.json",
                ".opencode/plugins/ic.js",
            ];
            assert!(hooks.iter().all(|hooks| world.read(hooks).is_none()), "{client}: neither of the two");
        }
    }
}

#[test]
fn a_server_of_that_name_that_is_not_ours_is_left() {
    let world = world();
    let others = "{\"mcpServers\": {\"ic\": {\"command\": \"integrated-circuits\"}}}";
    world.write(".mcp.json", others);
    let outcome = world.cli.run(["install", "claude-code"]);
    assert_eq!((outcome.code, outcome.error().as_str()), (Some(1), "config_not_changed"), "{outcome:?}");
    let outcome = world.cli.run(["uninstall", "claude-code", "--json"]);
    assert_eq!((outcome.code, &outcome.json()["mcp"]["server_left"]), (Some(1), &Value::from("ic")));
    assert_eq!(world.text(".mcp.json"), others);
}

#[test]
fn what_is_installed_is_no_work_of_an_agent() {
    let world = world();
    world.cli.ok(["install", "claude-code"]);
    let id = world.ic(&["dispatch", "create", &world.run, "--name", "work"]);
    world.ic(&["dispatch", "start", &id]);
    world.write("work.txt", "x\n");
    world.ic(&["dispatch", "complete", &id]);
    world.ic(&["undo", "created", "--run", &world.run, "--yes"]);
    assert_eq!(world.read("work.txt"), None);
    assert!(world.read(".mcp.json").is_some(), "an undo does not take the server away");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

#[test]
fn at_home_it_is_for_all_projects() {
    let world = world();
    let home = world.cli.home().to_owned();
    std::fs::write(home.join(".claude.json"), "{\"numStartups\": 3}").expect("settings");
    let run = |words: &[&str]| {
        let done = world.cli.command(words).env("HOME", &home).output().expect("run");
        assert!(done.status.success(), "{done:?}");
    };
    run(&["install", "claude-code", "--user"]);
    let text = std::fs::read_to_string(home.join(".claude.json")).expect("settings");
    assert!(text.contains("\"mcpServers\"") && text.contains("numStartups"), "{text}");
    assert_eq!(world.read(".mcp.json"), None);
    run(&["uninstall", "claude-code", "--user"]);
    assert_eq!(std::fs::read_to_string(home.join(".claude.json")).expect("settings"), "{\"numStartups\": 3}");
}

#[test]
fn the_copy_is_kept_while_anything_calls_us_and_goes_with_the_last() {
    let world = world();
    let (file, copy) = (".gemini/settings.json", ".gemini/settings.json.before-ic");
    let before = "{\"theme\":  \"dark\"}";
    world.write(file, before);
    world.cli.ok(["install", "gemini"]);
    let installed = world.text(file);
    world.write(file, &installed.replace("30000", "40000"));
    assert_eq!(world.cli.run(["uninstall", "gemini"]).code, Some(1), "a hook was changed by hand");
    assert_eq!(world.read(copy).as_deref(), Some(before), "the hooks still call ic");
    world.write(file, &world.text(file).replace("40000", "30000"));
    world.cli.ok(["uninstall", "gemini"]);
    assert_eq!((world.text(file).as_str(), world.read(copy)), (before, None));
}

#[test]
fn in_the_home_directory_a_link_is_not_followed_and_what_ic_made_goes() {
    for (client, name) in [("opencode", ".config/opencode"), ("copilot", ".copilot"), ("codex", ".codex")] {
        let world = world();
        let home = tempfile::tempdir().expect("a home");
        let call = |verb: &str| {
            let mut command = world.cli.command([verb, client, "--user"]);
            command.env("HOME", home.path()).output().expect("start ic")
        };
        let directory = home.path().join(name);
        assert!(call("install").status.success(), "{client}");
        assert!(directory.read_dir().expect("its directory").next().is_some(), "{client}");
        assert!(call("uninstall").status.success(), "{client}");
        assert!(!directory.exists(), "{client}: what ic made is gone");
        let elsewhere = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(directory.parent().expect("above")).expect("a directory");
        std::os::unix::fs::symlink(elsewhere.path(), &directory).expect("a link");
        let refused = call("install");
        assert_eq!(refused.status.code(), Some(1), "{client}: {refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("its directory is a link"), "{client}");
        assert!(elsewhere.path().read_dir().expect("it").next().is_none(), "{client}: nothing is written");
    }
}
