//! Two servers and the command line at once on one ledger.

use std::thread;

use serde_json::json;

use crate::project::{client, world};

#[test]
fn two_servers_and_the_command_line_work_on_one_ledger() {
    const EACH: usize = 15;
    let world = world();
    thread::scope(|scope| {
        for who in ["one", "two"] {
            let world = &world;
            scope.spawn(move || {
                let mut client = client(world);
                for n in 0..EACH {
                    client.tool("status", json!({}));
                    client.tool("checkpoint", json!({ "name": format!("{who}-{n}") }));
                    client.tool("register_artifact", json!({ "path": format!("{who}-{n}.md") }));
                }
                assert_eq!(client.goes_away(), (Some(0), String::new()));
            });
        }
        for n in 0..EACH {
            world.ic(&["run", "artifact", "add", &world.run, "--path", &format!("typed-{n}.md")]);
        }
    });
    let artifacts = world.cli.json(["run", "artifact", "list", &world.run, "--json"]);
    assert_eq!(artifacts.as_array().map(Vec::len), Some(3 * EACH), "nothing is lost");
    world.cli.assert_sound("after two servers and the command line");
}

#[test]
fn the_ledger_can_be_moved_away_and_back_under_a_server() {
    let world = world();
    let mut client = client(&world);
    client.tool("status", json!({}));
    let (db, away) = (world.root().join(".ic"), world.root().join(".ic-away"));
    let dir = if db.exists() { db } else { world.root().join(".git/ic") };
    std::fs::rename(&dir, &away).expect("moved away");
    let (code, ..) = client.failure("status", json!({}));
    assert_eq!(code, "no_ledger");
    std::fs::rename(&away, &dir).expect("moved back");
    client.tool("status", json!({}));
}
