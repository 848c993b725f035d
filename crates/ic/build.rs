//! How a debug build is linked, which the tests start some hundred thousand times.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| var(name).as_deref() == Ok(value);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") {
        // A debug build has 220,000 addresses that the loader must fix in each process where the program may lie anywhere: 2.5 of the
        // 6 ms that `ic run status` takes. Releases lie anywhere, as programs should.
        println!("cargo::rustc-link-arg-bins=-no-pie");
        println!("cargo::rustc-link-arg-tests=-no-pie");
    }
}
