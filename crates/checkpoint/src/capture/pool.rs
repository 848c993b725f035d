//! The threads that walk a tree.

use std::sync::OnceLock;

/// Runs on threads whose stacks are deep enough for deep trees.
pub(crate) fn run<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    // The walk calls itself for each level. A stack is only reserved: memory is taken as it is used.
    const STACK: usize = 256 << 20;
    static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    raise_file_limit();
    match POOL.get_or_init(|| rayon::ThreadPoolBuilder::new().stack_size(STACK).build().ok()) {
        Some(pool) => pool.install(work),
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
