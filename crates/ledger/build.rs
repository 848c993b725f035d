//! `embed_migrations!` reads directories that cargo does not know of: a new file in either must rebuild this crate.

fn main() {
    for folder in ["sqlite", "postgres"] {
        println!("cargo::rerun-if-changed=../../migrations/{folder}");
    }
}
