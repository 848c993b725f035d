//! What a restore does about git's state.

use ic_worktree::GitRestore;

use super::plain;

/// What moves and how, a pair for each: branches, HEAD, the index, the stash.
pub(crate) fn moves(git: &GitRestore) -> Vec<(String, String)> {
    let short = |oid: &Option<String>| {
        oid.as_deref().map_or("gone".to_owned(), |oid| oid[..oid.len().min(8)].to_owned())
    };
    let mut moves = Vec::new();
    for moved in &git.plan.refs {
        let name = String::from_utf8_lossy(&moved.name).into_owned();
        let name = name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned();
        let how = match &moved.from {
            None => format!("made again at {}", short(&moved.to)),
            Some(_) => format!("{} → {}", short(&moved.from), short(&moved.to)),
        };
        moves.push((name, how));
    }
    if git.plan.head {
        let branch = git.target.standing_on();
        moves.push(("HEAD".to_owned(), format!("→ {}", branch.unwrap_or_else(|| short(&git.target.head)))));
    }
    if git.plan.index {
        moves.push(("index".to_owned(), "restored as it was".to_owned()));
    }
    if git.plan.stash {
        moves.push((
            "stash".to_owned(),
            "restored as it was; entries made since leave it, and are kept".to_owned(),
        ));
    }
    moves
}

/// Where the tips of what moved are kept; empty where nothing moved.
pub(crate) fn kept(git: &GitRestore) -> String {
    let moved = !git.plan.refs.is_empty() || git.plan.head;
    let what = if moved { "the old branches are kept" } else { "the old stash is kept" };
    let kept = git.kept_below.as_deref().filter(|_| moved || git.plan.stash);
    kept.map_or_else(String::new, |below| format!("  {what}: git for-each-ref {}\n", plain(below)))
}
