//! A thousand calls: the server's memory does not grow, and it stays quick.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::project::{client, spoiled, world};

/// Bytes that a process has in memory.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its state");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).expect("a number") * 1024
}

#[test]
fn a_thousand_calls_leave_it_as_it_is() {
    let world = world();
    spoiled(&world);
    let mut client = client(&world);
    let mut times = Vec::new();
    let mut warm = 0;
    for n in 0..1000 {
        let begin = Instant::now();
        client.tool("status", json!({}));
        times.push(begin.elapsed());
        if n % 10 == 0 {
            client.tool("undo", json!({}));
            client.failure("undo", json!({ "point": "--no" }));
        }
        // By then every path was taken, and what the allocator keeps is there.
        if n == 600 {
            warm = resident(client.child.id());
        }
    }
    let grown = resident(client.child.id()).saturating_sub(warm);
    times.sort();
    println!("median of status: {:?}; grown by {grown} bytes after the first 600 rounds, from {warm}", times[500]);
    assert!(grown < 2 << 20, "grown by {grown} bytes");
    // A build for tests is many times slower than the one that is shipped, and others use this machine.
    assert!(times[500] < Duration::from_millis(100), "{:?}", times[500]);
}
