//! Which ways of the operating system this build takes: `linux_ways`, `macos_ways`, or neither with the feature `portable` and on every
//! other system.

use std::env::var_os;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(linux_ways, macos_ways)");
    let system = var_os("CARGO_CFG_TARGET_OS").unwrap_or_default();
    if var_os("CARGO_FEATURE_PORTABLE").is_some() {
        return;
    }
    for (name, ways) in [("linux", "linux_ways"), ("macos", "macos_ways")] {
        if system == name {
            println!("cargo:rustc-cfg={ways}");
        }
    }
}
