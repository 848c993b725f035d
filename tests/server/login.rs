//! Who may connect, to whom, and what a role may do; passwords are seen nowhere.

use std::process::Command;

use ic_testkit::{Cli, CliOutcome, Cluster};

use crate::cluster::{cluster, project_at, role_of_every_day};

const SECRET: &str = "correct-horse-battery";

fn openssl(cluster: &Cluster, arguments: &str) {
    let mut openssl = Command::new("openssl");
    openssl.args(arguments.split(' ')).current_dir(cluster.root());
    let done = CliOutcome::of(&mut openssl);
    assert_eq!(done.code, Some(0), "openssl {arguments}: {done:?}");
}

/// A certificate `name` for a host, signed by an authority of its own, which is `name-ca.crt`.
fn certificate(cluster: &Cluster, name: &str, host: &str, days: &str) {
    let ca = format!(
        "req -x509 -newkey rsa:2048 -nodes -subj /CN={name}-ca -days 30 -keyout {name}-ca.key -out {name}-ca.crt"
    );
    openssl(cluster, &ca);
    openssl(cluster, &format!("req -newkey rsa:2048 -nodes -subj /CN={host} -keyout {name}.key -out {name}.csr"));
    std::fs::write(cluster.root().join("ext"), format!("subjectAltName=DNS:{host}\n")).expect("an extension");
    openssl(
        cluster,
        &format!(
            "x509 -req -in {name}.csr -CA {name}-ca.crt -CAkey {name}-ca.key -CAcreateserial {days} -extfile ext -out {name}.crt"
        ),
    );
}

/// The server speaks TLS with this certificate on a port of localhost, after a restart.
fn serve_tls(cluster: &Cluster, name: &str, port: u16) {
    let data = cluster.root().join("data");
    for (from, to) in [(format!("{name}.crt"), "server.crt"), (format!("{name}.key"), "server.key")] {
        let own = data.join(to);
        std::fs::copy(cluster.root().join(from), &own).expect("the certificate");
        let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&data).expect("the directory"));
        std::os::unix::fs::chown(&own, Some(owner), None).expect("its owner");
        std::fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("its mode");
    }
    cluster.configure("postgresql.conf", &format!("listen_addresses = '127.0.0.1'\nport = {port}\nssl = on\n"));
    cluster.crash_and_restart();
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port()
}

#[test]
fn only_a_server_of_its_name_and_of_a_trusted_authority_is_talked_to() {
    let Some(cluster) = cluster(&[]) else { return };
    cluster.project("shop");
    certificate(&cluster, "good", "localhost", "-days 30");
    certificate(&cluster, "other", "db.example", "-days 30");
    certificate(&cluster, "old", "localhost", "-days -1");
    let port = free_port();
    let call = |name: &str, authority: &str| {
        serve_tls(&cluster, name, port);
        let file = cluster.root().join(format!("{authority}.crt"));
        let url = format!(
            "postgres://ic@localhost:{port}/postgres?ledger=shop&sslmode=verify-full&sslrootcert={}",
            file.display()
        );
        project_at(&url).run(["run", "list"])
    };
    assert_eq!(call("good", "good-ca").code, Some(0));
    for (name, authority, why) in [
        ("good", "other-ca", "UnknownIssuer"),
        ("other", "other-ca", "not valid for name"),
        ("old", "old-ca", "expired"),
    ] {
        let outcome = call(name, authority);
        assert_eq!((outcome.code, outcome.error()), (Some(2), "untrusted_server".to_owned()), "{name}: {outcome:?}");
        assert!(outcome.stderr.to_lowercase().contains(&why.to_lowercase()), "{name}: {outcome:?}");
    }
    // The authorities of the system do not know it.
    let url = format!("postgres://ic@localhost:{port}/postgres?ledger=shop&sslmode=verify-full");
    assert_eq!(project_at(&url).refused(["run", "list"]), (Some(2), "untrusted_server".to_owned()));
    let none = url + "&sslrootcert=/nonexistent";
    assert_eq!(project_at(&none).refused(["run", "list"]), (Some(3), "invalid_value".to_owned()));
}

#[test]
fn a_password_comes_from_its_file_and_is_seen_nowhere() {
    let Some(cluster) = cluster(&[]) else { return };
    let log = |cli: &Cli| cli.dump();
    let owner = cluster.project("shop");
    role_of_every_day(&cluster, "ann", &format!("ALTER ROLE ann PASSWORD '{SECRET}'"));
    let hba = cluster.root().join("data/pg_hba.conf");
    let rules = std::fs::read_to_string(&hba).expect("the rules");
    std::fs::write(&hba, format!("local all ann scram-sha-256\n{rules}")).expect("the rules");
    cluster.crash_and_restart();
    let url = cluster.url("shop").replace("ic@", "ann@");
    let file = owner.home().join("pgpass");
    std::fs::write(
        &file,
        format!("{}:5432:*:ann:{SECRET}\n", cluster.socket().display().to_string().replace(':', "\\:")),
    )
    .expect("the file");
    let with_file = |mode: u32| {
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("its mode");
        project_at(&url).with_env("PGPASSFILE", &file)
    };
    let ann = with_file(0o600);
    let mut said = vec![
        ann.run(["-v", "run", "create", "--goal", "Port"]),
        ann.run(["where", "--json"]),
        ann.run(["health", "--json"]),
    ];
    assert!(said.iter().all(|outcome| outcome.code == Some(0)), "{said:?}");
    let open = with_file(0o644);
    let wrong = project_at(&url).with_env("PGPASSWORD", "not-that-one");
    for cli in [&open, &wrong, &project_at(&url)] {
        let outcome = cli.run(["run", "list"]);
        assert_eq!((outcome.code, outcome.error()), (Some(2), "permission_denied".to_owned()), "{outcome:?}");
        said.push(outcome);
    }
    let in_url = url.replace("ann@", &format!("ann:{SECRET}@"));
    for url in [in_url, format!("{url}&password={SECRET}")] {
        let outcome = project_at(&url).run(["run", "list"]);
        assert_eq!((outcome.code, outcome.error()), (Some(3), "invalid_value".to_owned()), "{outcome:?}");
        said.push(outcome);
    }
    assert!(!format!("{said:?}").contains(SECRET));
    assert!(!log(&owner).contains(SECRET) && !cluster.log().contains(SECRET));
}

#[test]
fn the_daily_role_does_the_daily_work_and_can_neither_delete_nor_truncate() {
    let Some(cluster) = cluster(&[]) else { return };
    let owner = cluster.project("shop");
    owner.ok(["run", "create", "--goal", "Port"]);
    // As docs/FLEET.md has it.
    role_of_every_day(&cluster, "daily", "REVOKE INSERT, UPDATE ON shop.refinery_schema_history FROM daily");
    let daily = project_at(&cluster.url("shop").replace("ic@", "daily@"));
    assert_eq!(daily.json(["init", "--json"])["created"], false);
    let run = daily.ok(["run", "create", "--goal", "Port", "--phases", "a,b,c"]);
    daily.ok(["run", "advance", &run]);
    let dispatch = daily.ok(["dispatch", "create", &run]);
    daily.ok(["dispatch", "record", &dispatch, "--commit", "abcdef1"]);
    daily.ok(["run", "rollback", &run, "--to-phase", "a"]);
    daily.assert_sound("as the daily role");
    for sql in [
        "DELETE FROM shop.events",
        "DELETE FROM shop.runs",
        "TRUNCATE shop.events",
        "TRUNCATE shop.runs CASCADE",
        "ALTER TABLE shop.events DISABLE TRIGGER ALL",
        "UPDATE shop.events SET seq = seq + 100",
        "UPDATE shop.events SET payload = 'x'",
        "DROP TABLE shop.events",
        "INSERT INTO shop.events SELECT 1000, run_id, source, type, subject_id, from_state, to_state, epoch, gate_result, gate_tier, \
         reason, payload, created_at, prev_hash, hash FROM shop.events LIMIT 1",
    ] {
        let refused = cluster.psql_as("daily", sql);
        assert_ne!(refused.code, Some(0), "{sql}");
    }
    // A redaction is made, and what only the owner can do is said.
    let outcome = daily.run(["events", "redact", "2", "--reason", "r"]);
    assert_eq!((outcome.code, outcome.error()), (Some(2), "permission_denied".to_owned()), "{outcome:?}");
    assert!(outcome.stderr.contains("the event is redacted"), "{outcome:?}");
    let mine = project_at(&cluster.url("mine").replace("ic@", "daily@"));
    assert_eq!(mine.refused(["init"]), (Some(2), "permission_denied".to_owned()));
    daily.assert_sound("after all that was refused");
}

#[test]
fn health_says_what_is_wrong_with_the_server() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    let found = |name: &str| {
        let outcome = cli.run(["health", "--json"]);
        let all = outcome.json();
        let check = all["checks"].as_array().expect("checks").iter().find(|check| check["name"] == name).cloned();
        (outcome.code, check.unwrap_or_else(|| panic!("no {name}: {all}"))["ok"].as_bool())
    };
    for name in ["schema", "server", "encoding", "durability", "writable", "triggers", "rights", "clock"] {
        assert_eq!(found(name), (Some(0), Some(true)), "{name}");
    }
    cluster.psql("ALTER TABLE shop.events DISABLE TRIGGER events_are_not_deleted");
    assert_eq!(found("triggers"), (Some(2), Some(false)));
    cluster.psql("ALTER TABLE shop.events ENABLE TRIGGER events_are_not_deleted");
    cluster.configure("postgresql.conf", "fsync = off\n");
    cluster.crash_and_restart();
    assert_eq!(found("durability"), (Some(2), Some(false)));
    cluster.configure("postgresql.conf", "fsync = on\n");
    cluster.crash_and_restart();
    cluster.psql("CREATE ROLE weak LOGIN; GRANT USAGE ON SCHEMA shop TO weak; GRANT SELECT ON ALL TABLES IN SCHEMA shop TO weak; GRANT UPDATE ON shop.event_head TO weak");
    let weak = project_at(&cluster.url("shop").replace("ic@", "weak@"));
    let rights = weak.run(["health", "--json"]);
    assert_eq!(rights.code, Some(2), "{rights:?}");
    assert!(rights.stdout.contains("lacks INSERT"), "{rights:?}");
    assert_eq!(weak.refused(["run", "create", "--goal", "x"]), (Some(2), "permission_denied".to_owned()));
}

#[test]
fn a_standby_can_be_read_and_says_that_it_is_one() {
    let Some(cluster) = cluster(&[]) else { return };
    let cli = cluster.project("shop");
    cli.ok(["run", "create", "--goal", "Port"]);
    // A server that recovers for ever is a standby.
    cluster.stop("fast");
    let signal = cluster.root().join("data/standby.signal");
    std::fs::write(&signal, "").expect("the signal");
    let data = std::fs::metadata(cluster.root().join("data")).expect("the directory");
    std::os::unix::fs::chown(&signal, Some(std::os::unix::fs::MetadataExt::uid(&data)), None).expect("its owner");
    cluster.start();
    assert_eq!(cli.json(["run", "list", "--json"]).as_array().map(Vec::len), Some(1));
    let health = cli.run(["health", "--json"]);
    assert!(health.code == Some(2) && health.stdout.contains("a standby"), "{health:?}");
    let refused = cli.run(["--busy-timeout", "200ms", "run", "create", "--goal", "x"]);
    assert_eq!((refused.code, refused.error()), (Some(2), "unreachable".to_owned()), "{refused:?}");
}
