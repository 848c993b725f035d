//! A server that accepts connections and says nothing: who is asked by a person ends in time, and hooks lose nothing. It needs no server.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ic_testkit::Cli;

/// Far below the 35 seconds and more that a silent server was waited for, and far above what a slow machine adds.
const WELL_BELOW: Duration = Duration::from_secs(20);

/// What was accepted, which stays open.
struct BlackHole {
    port: u16,
    accepted: Arc<Mutex<Vec<TcpStream>>>,
}

impl BlackHole {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let accepted = Arc::<Mutex<Vec<TcpStream>>>::default();
        let kept = accepted.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                kept.lock().expect("what was accepted").push(client);
            }
        });
        Self { port, accepted }
    }

    fn url(&self, more: &str) -> String {
        format!("postgres://ic@127.0.0.1:{}/app?ledger=hole{more}", self.port)
    }

    fn attempts(&self) -> usize {
        self.accepted.lock().expect("what was accepted").len()
    }
}

/// A project whose store points to the server.
fn project(hole: &BlackHole) -> Cli {
    let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
    let store = cli.root().join(".ic");
    std::fs::create_dir_all(&store).expect("a store");
    std::fs::set_permissions(&store, PermissionsExt::from_mode(0o700)).expect("its mode");
    std::fs::write(store.join("remote"), hole.url("") + "\n").expect("its pointer");
    cli
}

#[test]
fn a_call_ends_with_the_timeout_of_the_connection_also_where_the_connection_is_made() {
    let hole = BlackHole::new();
    for tls in ["&sslmode=disable", "&sslmode=verify-full"] {
        let cli = Cli::without_ledger(env!("CARGO_BIN_EXE_ic"));
        let started = Instant::now();
        let said = cli.run(["--db", &hole.url(&format!("{tls}&connect_timeout=1")), "run", "list"]);
        assert_eq!((said.code, said.error().as_str()), (Some(2), "unreachable"), "{said:?}");
        assert!(started.elapsed() < WELL_BELOW, "{tls}: {:?}", started.elapsed());
    }
    assert!(hole.attempts() <= 2, "{} attempts", hole.attempts());
}

#[test]
fn a_hook_keeps_what_it_cannot_tell_and_says_so() {
    const EVENTS: [&str; 5] = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"];
    let hole = BlackHole::new();
    let cli = project(&hole);
    let started = Instant::now();
    for event in EVENTS {
        let payload = serde_json::json!({
            "session_id": "s-1", "hook_event_name": event, "prompt": "Use password=hunter2secret9", "prompt_id": "p-1",
            "cwd": cli.root(), "tool_name": "Write", "tool_use_id": "t-1",
        });
        let said = cli.run_with_input(["hook", "claude-code", event], payload.to_string().as_bytes());
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{event}: {said:?}");
    }
    assert!(started.elapsed() < WELL_BELOW, "{:?}", started.elapsed());
    assert!(hole.attempts() <= EVENTS.len(), "{} attempts", hole.attempts());

    let file = cli.root().join(".ic/unsent.jsonl");
    let mode = std::fs::metadata(&file).expect("what was kept").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).expect("what was kept");
    let kept: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("a line")).collect();
    assert_eq!(kept.iter().map(|line| line["event"].as_str()).collect::<Vec<_>>(), EVENTS.map(Some));
    for line in &kept {
        assert_eq!((line["session"].as_str(), line["code"].as_str()), (Some("s-1"), Some("unreachable")));
        assert!(line["at"].is_i64(), "{line}");
    }
    assert_eq!(kept[1]["title"], "Use password=…[masked]");

    let doctor = cli.ok(["hooks", "doctor", "claude-code", "--json"]);
    assert!(doctor.contains("5 events of hooks could not be recorded"), "{doctor}");
    let status = cli.run(["status", "--format", "text"]);
    assert!(status.stderr.contains("5 events of hooks could not be recorded"), "{status:?}");
}

#[test]
fn what_hooks_keep_is_bounded_and_the_rest_is_counted() {
    let hole = BlackHole::new();
    let cli = project(&hole);
    let file = cli.root().join(".ic/unsent.jsonl");
    std::fs::write(&file, "x".repeat(3 * 1024 * 1024)).expect("a full file");
    let payload = serde_json::json!({ "session_id": "s-1", "prompt": "one more", "cwd": cli.root() });
    for _ in 0..2 {
        cli.run_with_input(["hook", "claude-code", "UserPromptSubmit"], payload.to_string().as_bytes());
    }
    assert_eq!(std::fs::metadata(&file).expect("the file").len(), 3 * 1024 * 1024);
    assert_eq!(std::fs::metadata(cli.root().join(".ic/unsent.more")).expect("a number").len(), 2);
}
