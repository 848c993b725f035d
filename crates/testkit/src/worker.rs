//! A process that works beside a test, for as long as the test runs.

use std::cell::RefCell;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends what a test started when its thread ends.
struct Workers(Vec<Child>);

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            // One that has ended already is what is wanted.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

thread_local! {
    static WORKERS: RefCell<Workers> = const { RefCell::new(Workers(Vec::new())) };
}

/// The number of a process that lives until the test is over, and that nothing descends from.
///
/// # Panics
/// If it cannot be started.
pub fn living_process() -> u32 {
    let mut sleep = Command::new("sleep");
    sleep.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = sleep.spawn().expect("start sleep");
    let pid = child.id();
    WORKERS.with_borrow_mut(|workers| workers.0.push(child));
    pid
}

/// Ends every process that [`living_process`] started for this test.
pub fn end_living_processes() {
    WORKERS.with_borrow_mut(|workers| drop(std::mem::replace(workers, Workers(Vec::new()))));
}

/// Tells another thread to end when it is dropped, so that it ends even when an assertion fails.
pub struct WorkerEnding<'e>(pub &'e AtomicBool);

impl Drop for WorkerEnding<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
