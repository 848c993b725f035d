//! Workers that call the real binary until their time is up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ic_testkit::{Cli, CliOutcome, tell, time};

/// Runs `work(worker, turn)` in `workers` threads until the time is up and returns how many calls there were.
pub(crate) fn work(cli: &Arc<Cli>, workers: usize, work: impl Fn(&Cli, usize, usize) + Send + Sync + 'static) -> usize {
    let work = Arc::new(work);
    let calls = Arc::new(AtomicUsize::new(0));
    let end = Instant::now() + time(Duration::from_secs(3));
    let threads: Vec<_> = (0..workers)
        .map(|worker| {
            let (cli, work, calls) = (Arc::clone(cli), Arc::clone(&work), Arc::clone(&calls));
            std::thread::spawn(move || {
                let mut turn = 0;
                while Instant::now() < end {
                    work(&cli, worker, turn);
                    turn += 1;
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no worker saw anything unexpected");
    }
    let calls = calls.load(Ordering::Relaxed);
    tell(&format!("{calls} calls by {workers} workers"));
    calls
}

/// Runs a call that may be refused, but only with one of these codes; returns whether it succeeded.
pub(crate) fn allowed(cli: &Cli, arguments: &[&str], codes: &[&str]) -> bool {
    let outcome = cli.run(arguments);
    if outcome.code == Some(0) {
        return true;
    }
    assert!(codes.contains(&refusal(&outcome).as_str()), "{arguments:?}: {outcome:?}");
    false
}

/// The code of a refusal: in the error line, or in the record of a blocked advance.
fn refusal(outcome: &CliOutcome) -> String {
    if outcome.stderr.is_empty() {
        return outcome.json()["code"].as_str().unwrap_or_default().to_owned();
    }
    outcome.error()
}
