use super::super::Servers;
use super::{HooksSettings, Location, copy_of, fs};
use ic_session::clients::Client;

fn claude_code() -> &'static Client {
    Client::parse("claude-code").unwrap()
}

/// A file in a directory that the client wants around it.
fn at(file: &std::path::Path) -> Location {
    let name = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let directory = file.parent().unwrap();
    Location::of_project(directory.parent().unwrap(), &format!("{}/{}", name(directory), name(file)))
}

fn install(file: &std::path::Path) {
    let settings = HooksSettings::read(&at(file), claude_code(), None).unwrap();
    settings.with(claude_code(), "/opt/ic").unwrap().write().unwrap();
}

fn uninstall(file: &std::path::Path) -> Vec<String> {
    let settings = HooksSettings::read(&at(file), claude_code(), None).unwrap();
    let edit = settings.without(claude_code()).unwrap();
    edit.write().unwrap();
    edit.left
}

#[test]
fn what_was_there_comes_back_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("of/settings.json");
    for before in [
        None,
        Some("{}"),
        Some(" \n"),
        Some("{\"hooks\":{}}"),
        Some("{ \"a\" : 1, \"hooks\":{\"Stop\":[] , \"Notification\":[]}}"),
        Some("{\"n\":12345678901234567890123,\"f\":1.50}"),
        Some(
            "{ \"model\" : \"m\",\n\t\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"say done\"}]}]}}",
        ),
    ] {
        if let Some(text) = before {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
        }
        install(&file);
        let installed = fs::read_to_string(&file).unwrap();
        assert!(installed.contains("hook claude-code PreToolUse"), "{installed}");
        install(&file);
        assert_eq!(fs::read_to_string(&file).unwrap(), installed, "the same again changes nothing");
        assert_eq!(uninstall(&file), Vec::<String>::new());
        assert_eq!(fs::read_to_string(&file).ok().as_deref(), before, "{before:?}");
        assert!(!copy_of(&file).exists());
    }
}

#[test]
fn install_and_uninstall_of_each_client_leave_nothing() {
    for client in Client::ALL {
        let directory = tempfile::tempdir().unwrap();
        let hooks = &Location::of_project(directory.path(), client.hook_files[0]);
        let servers = Location::of_user(directory.path(), client.server_files[1]);
        let (name, program) = (client.name, "/opt/i c");
        HooksSettings::read(hooks, client, None).unwrap().with(client, program).unwrap().write().unwrap();
        let installed = fs::read_to_string(&hooks.file).unwrap();
        for (event, _) in client.events {
            assert!(installed.contains(event), "{name}: {installed}");
        }
        let again = HooksSettings::read(hooks, client, None).unwrap().with(client, program).unwrap();
        assert!(!again.is_change(), "{name}");
        Servers::read(&servers, client, None).unwrap().with(program).unwrap().write().unwrap();
        assert!(fs::read_to_string(&servers.file).unwrap().contains(program), "{name}");
        let edit = Servers::read(&servers, client, None).unwrap().without().unwrap();
        assert!(edit.left.is_empty() && edit.is_change(), "{name}");
        edit.write().unwrap();
        HooksSettings::read(hooks, client, None).unwrap().without(client).unwrap().write().unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn what_a_person_changed_since_stays() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settings.json");
    fs::write(&file, "{\"model\": \"m\"}").unwrap();
    install(&file);
    let edited = fs::read_to_string(&file).unwrap().replace("\"timeout\": 30", "\"timeout\": 5");
    fs::write(&file, edited.replacen("\"timeout\": 5", "\"timeout\": 30", 6)).unwrap();
    assert_eq!(uninstall(&file), ["SessionEnd"]);
    let left = fs::read_to_string(&file).unwrap();
    assert!(left.contains("hook claude-code SessionEnd") && !left.contains("PreToolUse"), "{left}");
}

#[test]
fn what_was_empty_before_stays_though_something_else_was_changed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settings.json");
    for (before, after) in [
        ("{\"hooks\":{\"Stop\":[]}}", "{\n  \"hooks\": {\n    \"Stop\": []\n  },\n  \"n\": 1.50\n}\n"),
        ("{\"hooks\":{}}", "{\n  \"hooks\": {},\n  \"n\": 1.50\n}\n"),
        ("{}", "{\n  \"n\": 1.50\n}\n"),
    ] {
        fs::write(&file, before).unwrap();
        install(&file);
        let installed = fs::read_to_string(&file).unwrap();
        fs::write(&file, installed.trim_end().strip_suffix('}').unwrap().to_owned() + ", \"n\": 1.50}").unwrap();
        assert_eq!(uninstall(&file), Vec::<String>::new());
        assert_eq!(fs::read_to_string(&file).unwrap(), after);
    }
}

#[test]
fn numbers_stay_as_they_were_written_while_it_is_installed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settings.json");
    fs::write(&file, "{\"n\":12345678901234567890123,\"f\":[1.50, 1e3]}").unwrap();
    install(&file);
    let text = fs::read_to_string(&file).unwrap();
    for number in ["12345678901234567890123", "1.50", "1e3"] {
        assert!(text.contains(number), "{text}");
    }
}

#[test]
fn a_copy_is_of_what_was_there_last_and_goes_with_the_hooks() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settings.json");
    let copy = || fs::read_to_string(copy_of(&file)).ok();
    fs::write(&file, "{\"m\":1}").unwrap();
    install(&file);
    fs::write(&file, "{\"o\":1}").unwrap();
    install(&file);
    assert_eq!(copy().as_deref(), Some("{\"o\":1}"), "the file was replaced in between");
    uninstall(&file);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"o\":1}");
    install(&file);
    fs::remove_file(&file).unwrap();
    install(&file);
    assert_eq!(copy(), None, "there was nothing");
    uninstall(&file);
    assert!(!file.exists());
    fs::create_dir_all(directory.path()).unwrap();
    fs::write(&file, "{\"p\":1}").unwrap();
    install(&file);
    fs::remove_file(&file).unwrap();
    uninstall(&file);
    assert_eq!((file.exists(), copy()), (false, None), "who removed the file wanted no copy of it");
}

#[test]
fn what_is_wrong_with_a_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settings.json");
    for (text, hint) in [
        ("\u{feff}{}", "save it as UTF-8 without one, then call again"),
        ("{ /* a comment */ }", "JSON has no comments; remove them, then call again"),
        ("{\"a\": 1,}", "correct it, then call again"),
    ] {
        fs::write(&file, text).unwrap();
        let error = HooksSettings::read(&at(&file), claude_code(), None).err().unwrap();
        assert_eq!(error.get_hint(), Some(hint), "{text}");
    }
}

#[test]
fn an_older_entry_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settings.json");
    let settings = HooksSettings::read(&at(&file), claude_code(), None).unwrap();
    settings.with(claude_code(), "/old/ic").unwrap().write().unwrap();
    install(&file);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("/opt/ic") && !text.contains("/old/ic"), "{text}");
}

#[test]
fn what_is_no_plain_json_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settings.json");
    for text in [
        "{ // a comment\n}",
        "[]",
        "{\"hooks\": []}",
        "{\"hooks\": {\"Stop\": {}}}",
        "\u{feff}{}",
        "{\"a\": \"\u{1}ic number 7\"}",
        "{\"a\": \"\\u0001ic number 7\"}",
        "{\"a\": ",
    ] {
        fs::write(&file, text).unwrap();
        assert!(HooksSettings::read(&at(&file), claude_code(), None).is_err(), "{text}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    let link = directory.path().join("link.json");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(HooksSettings::read(&at(&link), claude_code(), None).is_err());
    fs::write(&file, "{}").unwrap();
    let elsewhere = directory.path().join("elsewhere");
    std::os::unix::fs::symlink(directory.path(), &elsewhere).unwrap();
    assert!(HooksSettings::read(&at(&elsewhere.join("settings.json")), claude_code(), None).is_err());
}
