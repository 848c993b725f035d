//! Who this process acts for: the user, and the clone in which the call is made.

use std::path::Path;

use ic_ledger::Actor;
use ic_ledger::git_dirs;

/// The user of this process in the clone that `root` is of: all work trees of a repository are one clone.
pub(crate) fn own_actor(root: &Path) -> Actor {
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // Session and dispatch belong to a call: `Kernel` adds them to each write.
    Actor { user: user(), seat: format!("{machine}:{}", clone_of(root).display()), session: None, dispatch: None }
}

/// The main work tree of a repository, or a bare repository itself; outside of git the project's root.
fn clone_of(root: &Path) -> std::path::PathBuf {
    // Read from files: a process of git would take longer than the write for which it is asked.
    let Some(dirs) = git_dirs(root) else { return root.to_owned() };
    // `/home/ann/p/.git` is that of the clone `/home/ann/p`; a bare one, `/srv/p.git`, is the clone itself.
    match (dirs.common_dir.file_name(), dirs.common_dir.parent()) {
        (Some(name), Some(parent)) if name == ".git" => parent.to_owned(),
        _ => dirs.common_dir,
    }
}

/// The name of the user, as the machine's own table has it; else as the environment has it, else the number.
fn user() -> String {
    let id = rustix::process::getuid().as_raw().to_string();
    // The table first: a repository may set variables for the clients that start there.
    let table = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    for line in table.lines() {
        // name, password, number
        let mut fields = line.split(':');
        if let (Some(name), Some(_), Some(number)) = (fields.next(), fields.next(), fields.next())
            && number == id
        {
            return name.to_owned();
        }
    }
    match std::env::var("USER") {
        Ok(name) if !name.is_empty() => name,
        _ => format!("uid {id}"),
    }
}
