//! `embed_migrations!` reads a directory that cargo does not know of: a new file must rebuild this crate.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations/sqlite");
}
