//! A page whose ledger is on a PostgreSQL server.

use ic_testkit::{Cluster, wait_for};

use crate::served::Served;

#[test]
fn a_page_of_a_ledger_on_a_server_offers_no_undo_and_holds_no_transaction_open() {
    let Some(cluster) = Cluster::start_with(env!("CARGO_BIN_EXE_ic"), &[]) else { return };
    let cli = cluster.project("shop");
    let run = cli.ok(["run", "create", "--goal", "Sell coffee", "--phases", "a,b"]);
    let dispatch = cli.ok(["dispatch", "create", &run, "--name", "menu"]);
    cli.ok(["dispatch", "start", &dispatch]);
    cli.ok(["dispatch", "complete", &dispatch]);
    let page = Served::of(&cli, &[]);
    for path in [format!("/runs/{run}"), format!("/dispatches/{dispatch}")] {
        let text = page.page(&path).text();
        assert!(text.contains("Sell coffee") || text.contains("menu"), "{path}: {text}");
        assert!(!text.contains("data-undo") && !text.contains("/undo?"), "{path}: {text}");
    }
    // While it looks for news, and after there are some.
    cli.ok(["run", "advance", &run]);
    let open = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%' AND now() - state_change > '50 ms'";
    wait_for("the page to have heard of it", || page.page("/").text().contains("Sell coffee"));
    for _ in 0..60 {
        assert_eq!(cluster.psql(open), "0");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
