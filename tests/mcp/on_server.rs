//! A server of `ic mcp` whose ledger is on a PostgreSQL server. It keeps its connection between calls, for a while, and checks it like any
//! other.

use ic_testkit::{Cli, Cluster, wait_for};
use serde_json::json;

use crate::client::{Client, SESSION};

/// The connections to the ledgers of a server: which backend, and what it does.
fn backends(cluster: &Cluster) -> Vec<String> {
    let sql = "SELECT pid || ' ' || state FROM pg_stat_activity WHERE application_name = 'ic' ORDER BY pid";
    cluster.psql(sql).lines().map(str::to_owned).collect()
}

fn client(cli: &Cli) -> Client {
    Client::start(&mut cli.command(["mcp"]), SESSION)
}

fn begun(cluster: &Cluster) -> (Cli, String) {
    let cli = cluster.project("shop");
    let run = cli.ok(["run", "create", "--goal", "g", "--phases", "a,b,c,d,e,f,g,h"]);
    (cli, run)
}

#[test]
fn a_connection_is_kept_from_call_to_call_between_transactions_and_closed_when_nobody_calls() {
    let Some(cluster) = Cluster::start_with(env!("CARGO_BIN_EXE_ic"), &[]) else { return };
    let (cli, _) = begun(&cluster);
    let mut client = client(&cli);
    let mut seen = Vec::new();
    for call in 0..6 {
        client.tool(if call % 2 == 0 { "status" } else { "advance" }, json!({}));
        // The end of what only read is not waited for.
        wait_for("the end of the transaction", || backends(&cluster).iter().all(|found| found.ends_with(" idle")));
        seen.extend(backends(&cluster));
    }
    assert_eq!(seen.len(), 6, "one connection at a time: {seen:?}");
    seen.dedup();
    assert_eq!(seen.len(), 1, "and always the same: {seen:?}");
    wait_for("the end of the connection", || backends(&cluster).is_empty());
    client.tool("status", json!({}));
    assert_eq!(client.goes_away(), (Some(0), String::new()));
    wait_for("the end of the connection with its process", || backends(&cluster).is_empty());
}

#[test]
fn a_call_alone_keeps_no_connection() {
    let Some(cluster) = Cluster::start_with(env!("CARGO_BIN_EXE_ic"), &[]) else { return };
    let (cli, run) = begun(&cluster);
    cli.ok(["run", "status", &run]);
    wait_for("the end of the connection", || backends(&cluster).is_empty());
}

#[test]
fn what_happened_to_a_kept_connection_costs_no_call() {
    let Some(cluster) = Cluster::start_with(env!("CARGO_BIN_EXE_ic"), &[]) else { return };
    let (cli, run) = begun(&cluster);
    let mut client = client(&cli);
    let phase = |client: &mut Client| client.tool("status", json!({}))["run"]["phase"].clone();
    assert_eq!(phase(&mut client), "a");
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'ic'";
    assert_eq!(cluster.psql(end), "1");
    client.tool("advance", json!({}));
    assert_eq!(phase(&mut client), "b", "an advance after its connection was ended is done once");
    assert_eq!(cluster.psql(end), "1");
    assert_eq!(phase(&mut client), "b");
    cluster.crash_and_restart();
    client.tool("advance", json!({}));
    assert_eq!(phase(&mut client), "c", "and after a crash of the server");
    // A server that is gone is said to be at once, as by a call alone.
    cluster.stop("fast");
    assert_eq!(client.failure("status", json!({})).0, "unreachable");
    assert_eq!(client.failure("advance", json!({})).0, "unreachable");
    cluster.start();
    client.tool("advance", json!({}));
    assert_eq!(phase(&mut client), "d");
    // Another schema since then is seen, as by a call alone.
    cluster.psql("UPDATE shop.refinery_schema_history SET version = 1000 WHERE version = (SELECT max(version) FROM shop.refinery_schema_history)");
    assert_eq!(client.failure("status", json!({})).0, "newer_schema");
    assert_eq!(client.failure("advance", json!({})).0, "newer_schema");
    cluster.psql("UPDATE shop.refinery_schema_history SET version = 11 WHERE version = 1000");
    assert_eq!(cli.json(["run", "status", &run, "--json"])["phase"], "d");
    cli.assert_sound("after all");
}
