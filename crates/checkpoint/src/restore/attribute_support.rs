//! What of a target's attributes can come back: known before anything is written, so that the preview says it.

use super::plan::Limits;
use crate::attributes::{Attributes, CAPABILITY, FileOwner, described, unusual};
use crate::diff::{DiffState, Difference};
use crate::manifest::PathText;

/// What the caller may say of owners.
#[derive(Debug, Clone)]
pub struct Rights {
    /// The uid of the caller; 0 may give files to any owner.
    pub user: u32,
    /// The gid that new files of the caller get.
    pub group: u32,
    /// The other groups that the caller belongs to.
    pub groups: Vec<u32>,
}

impl Rights {
    /// Those of this process.
    pub fn here() -> Self {
        use rustix::process::{getegid, geteuid, getgroups};
        let groups = getgroups().unwrap_or_default();
        Self {
            user: geteuid().as_raw(),
            group: getegid().as_raw(),
            groups: groups.into_iter().map(rustix::fs::Gid::as_raw).collect(),
        }
    }

    fn may_give_to(&self, group: u32) -> bool {
        group == self.group || self.groups.contains(&group)
    }
}

/// Differences whose later side is what can come back, and what cannot. `usual`: who the root belongs to.
pub fn attain(
    differences: Vec<Difference>,
    limits: &Limits,
    rights: &Rights,
    usual: FileOwner,
) -> (Vec<Difference>, Vec<(PathText, String)>) {
    let mut lost = Vec::new();
    let mut kept = Vec::with_capacity(differences.len());
    for mut difference in differences {
        let has = difference.before.clone();
        let has = has.as_ref().and_then(attributes);
        let is_in_place = is_in_place(&difference);
        if let Some(wanted) = difference.after.as_mut().and_then(attributes_mut).filter(|_| rights.user != 0) {
            let missing = limit(wanted, has.filter(|_| is_in_place), rights, usual);
            // A path that this restore does not change lacks nothing because of it.
            if !missing.is_usual() && limits.allow(&difference) {
                let what = format!("{}: only root can restore it", described(&missing));
                lost.push((PathText(difference.path.clone()), what));
            }
        }
        // What only root could change is named, and not tried.
        if difference.before != difference.after {
            kept.push(difference);
        }
    }
    (kept, lost)
}

/// Limits what is wanted to what the caller may give; returns the rest. `has`: what the file has that stays in its place.
fn limit(wanted: &mut Attributes, has: Option<&Attributes>, rights: &Rights, usual: FileOwner) -> Attributes {
    let mut missing = Attributes::default();
    let owner = wanted.owner.unwrap_or(usual);
    let group = if rights.may_give_to(owner.group) { owner.group } else { rights.group };
    let attainable = match has.map(|has| has.owner.unwrap_or(usual)) {
        // What is written anew is the caller's.
        None => FileOwner { user: rights.user, group },
        // An owner may give a file to one of their own groups, but not to another user.
        Some(has) if has.user == rights.user && rights.may_give_to(owner.group) => FileOwner { group, ..has },
        Some(has) => has,
    };
    if attainable != owner {
        missing.owner = Some(owner);
        wanted.owner = unusual(attainable, usual);
    }
    let is_there = |value: &[u8]| has.is_some_and(|has| has.get(CAPABILITY) == Some(value));
    // The kernel lets only root set capabilities; one that is there already stays.
    if let Some(at) = wanted.extended.iter().position(|(name, value)| name == CAPABILITY && !is_there(value)) {
        missing.extended.push(wanted.extended.remove(at));
    }
    missing
}

/// Whether what stands there stays, and only gets other looks.
fn is_in_place(difference: &Difference) -> bool {
    match (&difference.before, &difference.after) {
        (Some(DiffState::File { hash, .. }), Some(DiffState::File { hash: other, .. })) => hash == other,
        (Some(DiffState::Directory { .. }), Some(DiffState::Directory { .. })) => true,
        _ => false,
    }
}

fn attributes(state: &DiffState) -> Option<&Attributes> {
    match state {
        DiffState::File { attributes, .. } | DiffState::Directory { attributes, .. } => Some(attributes),
        DiffState::Symlink(_) | DiffState::Passed(_) => None,
    }
}

fn attributes_mut(state: &mut DiffState) -> Option<&mut Attributes> {
    match state {
        DiffState::File { attributes, .. } | DiffState::Directory { attributes, .. } => Some(attributes),
        DiffState::Symlink(_) | DiffState::Passed(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, Rights, attain};
    use crate::attributes::{Attributes, FileOwner};
    use crate::diff::{DiffState, Difference};

    const USUAL: FileOwner = FileOwner { user: 1000, group: 1000 };

    fn file(content: u8, owner: Option<FileOwner>, names: &[&str]) -> DiffState {
        let extended = names.iter().map(|name| (name.as_bytes().to_vec(), Vec::new())).collect();
        let attributes = Attributes { owner, extended };
        DiffState::File { hash: [content; 32], size: 1, mode: 0o644, attributes }
    }

    /// What is planned, and what is lost, for a caller with these rights.
    fn planned(before: Option<DiffState>, after: DiffState, user: u32) -> (Option<DiffState>, Vec<String>) {
        let rights = Rights { user, group: user, groups: vec![2000] };
        let difference = Difference { path: b"f".to_vec(), before, after: Some(after) };
        let (kept, lost) = attain(vec![difference], &Limits::default(), &rights, USUAL);
        (kept.into_iter().next().and_then(|kept| kept.after), lost.into_iter().map(|(_, what)| what).collect())
    }

    #[test]
    fn root_gives_everything_back_and_others_what_is_theirs() {
        let other = |group| Some(FileOwner { user: 5, group });
        let wanted = || file(1, other(6), &["security.capability", "user.tag"]);
        assert_eq!(planned(None, wanted(), 0), (Some(wanted()), vec![]));
        let (after, lost) = planned(None, wanted(), 1000);
        assert_eq!(after, Some(file(1, None, &["user.tag"])));
        assert_eq!(lost, ["owner 5:6, security.capability: only root can restore it"]);
        // A group of the caller's own comes back.
        let (after, lost) = planned(None, file(1, Some(FileOwner { user: 1000, group: 2000 }), &[]), 1000);
        assert_eq!(after, Some(file(1, Some(FileOwner { user: 1000, group: 2000 }), &[])));
        assert_eq!(lost, Vec::<String>::new());
        // What differs in that alone is no step, and named.
        let (after, lost) = planned(Some(file(1, None, &[])), file(1, other(6), &[]), 1000);
        assert_eq!((after, lost.len()), (None, 1));
        // A caller that is neither root nor the owner cannot change a file that stays in its place.
        let (after, _) = planned(Some(file(1, other(6), &[])), file(1, None, &["user.tag"]), 1000);
        assert_eq!(after, Some(file(1, other(6), &["user.tag"])));
    }
}
