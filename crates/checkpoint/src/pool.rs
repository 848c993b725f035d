//! The threads that walk a tree, and write into it.

use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Threads that are started when they are needed first.
type Pool = OnceLock<Option<ThreadPool>>;

/// Runs on threads whose stacks are deep enough for deep trees, on every core.
pub(crate) fn run<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static POOL: Pool = OnceLock::new();
    run_on(&POOL, 0, work)
}

/// As [`run`], on one thread: to wake others takes longer than to walk a small tree.
pub(crate) fn run_alone<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static POOL: Pool = OnceLock::new();
    run_on(&POOL, 1, work)
}

/// `threads`: 0 for as many as there are cores.
fn run_on<T: Send>(pool: &Pool, threads: usize, work: impl FnOnce() -> T + Send) -> T {
    // The walk calls itself for each level. A large stack costs nothing: the system gives memory only to the pages that are used.
    const STACK: usize = 256 << 20;
    let start = || {
        raise_file_limit();
        ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK).build().ok()
    };
    match pool.get_or_init(start) {
        Some(pool) => pool.install(work),
        // No thread could be started: the work is done here, on a smaller stack.
        None => work(),
    }
}

/// A directory stays open while those below it are walked.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it cannot be raised, only very deep trees suffer, with an error.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
