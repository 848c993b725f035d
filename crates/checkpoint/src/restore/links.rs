//! Names of one file: after a restore, names are one file where they were one in the target, and no others are.
//!
//! Nothing is written through a name, so what the plan replaces loses its ties by itself. What is left is to tie names together
//! that belong together, and to set names apart that do not, though their content is the same.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::{Limits, RestoreAction, RestoreNode, RestorePlan, RestoreStep};
use crate::manifest::PathText;
use crate::tree::Groups;

/// How names are tied now and in the target, and what stands there.
pub struct Ties<'t> {
    /// As the tree is.
    pub now: &'t Groups,
    /// As the target has it.
    pub target: &'t Groups,
    /// What stands at a path now.
    pub is: &'t dyn Fn(&[u8]) -> Option<RestoreNode>,
    /// What the target has there.
    pub becomes: &'t dyn Fn(&[u8]) -> Option<RestoreNode>,
}

/// Which group a path is in; a path that is in none is alone.
struct Classes<'t>(BTreeMap<&'t [u8], usize>, &'t Groups);

impl<'t> Classes<'t> {
    fn new(groups: &'t Groups) -> Self {
        let names =
            groups.iter().enumerate().flat_map(|(at, group)| group.iter().map(move |name| (name.as_slice(), at)));
        Self(names.collect(), groups)
    }

    /// The same for names of one file, another for every other.
    fn of<'p>(&self, path: &'p [u8]) -> Class<'p> {
        self.0.get(path).map_or(Class::Alone(path), |at| Class::Group(*at))
    }

    fn names(&self, path: &[u8]) -> &'t [Vec<u8>] {
        self.0.get(path).map_or(&[], |at| &self.1[*at])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class<'p> {
    Group(usize),
    Alone(&'p [u8]),
}

/// Adds to a plan what ties names and sets them apart.
pub fn tie(plan: &mut RestorePlan, limits: &Limits, ties: &Ties<'_>) {
    let (now, target) = (Classes::new(ties.now), Classes::new(ties.target));
    let paths: BTreeSet<&[u8]> = ties.now.iter().chain(ties.target).flatten().map(Vec::as_slice).collect();
    if paths.is_empty() {
        return;
    }
    let mut staying = BTreeSet::new();
    let (moving, stuck) = part(plan, limits, ties, &now, &target, &paths, &mut staying);
    for path in stuck {
        let (joined, wanted) = (now.names(path), target.names(path));
        // Where none of the names is restored, which of them are one file is not asked.
        if joined.iter().chain(wanted).any(|name| limits.allow_path(name)) {
            let what = if joined.is_empty() { "was" } else { "stays" };
            let what = format!("it {what} the same file as another name, which is not restored");
            plan.not_kept.push((PathText(path.to_vec()), what));
        }
    }
    for (path, node) in moving {
        let (before, after) = (Some(node.clone()), Some(node));
        let path = PathText(path.to_vec());
        plan.steps.push(RestoreStep::new(path, RestoreAction::Link, before, after));
    }
    // A directory comes before what is in it: by components, which a slash ends.
    plan.steps.sort_by(|a, b| a.path.0.split(|b| *b == b'/').cmp(b.path.0.split(|b| *b == b'/')));
    let in_place = |step: &RestoreStep| {
        matches!(step.action, RestoreAction::Chmod | RestoreAction::Attributes | RestoreAction::Link)
    };
    // These are places in the list of steps, so they are taken after it was sorted.
    let files = files_among(plan, &paths);
    let databases: BTreeSet<Vec<u8>> = plan.databases.iter().map(|one| one.path.0.clone()).collect();
    for (path, at) in &files {
        let group = target.names(path);
        // Where the same names are one file, and all get other looks, the file gets them.
        let gets_looks = |name: &Vec<u8>| {
            files
                .get(name)
                .is_some_and(|at| plan.steps[*at].action != RestoreAction::Link && in_place(&plan.steps[*at]))
        };
        if !group.is_empty() && group == now.names(path) && group.iter().all(gets_looks) {
            plan.steps[*at].names = group.len() as u64;
            continue;
        }
        let is_there = |name: &&Vec<u8>| staying.contains(name.as_slice());
        let is_written = |name: &&Vec<u8>| files.contains_key(*name);
        // A database that comes with its log comes as a file of its own: others are tied to it, never it to them.
        let comes_alone = |name: &&Vec<u8>| is_written(name) && databases.contains(*name);
        // Others are tied to the anchor: a name that stays, else a database, else the first name that is written.
        let anchor = group.iter().find(is_there).or_else(|| group.iter().find(comes_alone));
        let anchor = anchor.or_else(|| group.iter().find(is_written));
        let is_other = group.iter().any(|name| !is_there(&name) && !is_written(&name));
        let step = &mut plan.steps[*at];
        match anchor {
            Some(anchor) if anchor != path && databases.contains(path) => {
                let name = String::from_utf8_lossy(anchor);
                let what =
                    format!("it was the same file as {name}; a database is restored alone, with the files beside it");
                plan.not_kept.push((step.path.clone(), what));
            }
            Some(anchor) if anchor != path => step.link = Some(PathText(anchor.clone())),
            // It is the anchor, or a name that the target ties to no other: names that are tied to it now must not get its looks.
            _ => step.anew = in_place(step),
        }
        if is_other {
            let what = "it was the same file as another name, which is not restored".to_owned();
            plan.not_kept.push((step.path.clone(), what));
        }
    }
}

/// The steps that leave a file at one of these paths.
fn files_among(plan: &RestorePlan, paths: &BTreeSet<&[u8]>) -> BTreeMap<Vec<u8>, usize> {
    let is_one = |step: &RestoreStep| {
        matches!(step.after, Some(RestoreNode::File { .. })) && paths.contains(step.path.0.as_slice())
    };
    let steps = plan.steps.iter().enumerate().filter(|(_, step)| is_one(step));
    steps.map(|(at, step)| (step.path.0.clone(), at)).collect()
}

type Moving<'t> = Vec<(&'t [u8], RestoreNode)>;

/// Parts the names whose content is right already: those that stay what they are, those that must become another file though their
/// content is the same, and those that should and may not.
fn part<'t>(
    plan: &RestorePlan,
    limits: &Limits,
    ties: &Ties<'_>,
    now: &Classes<'_>,
    target: &Classes<'_>,
    paths: &BTreeSet<&'t [u8]>,
    staying: &mut BTreeSet<&'t [u8]>,
) -> (Moving<'t>, Vec<&'t [u8]>) {
    let steps: BTreeSet<&[u8]> = plan.steps.iter().map(|step| step.path.0.as_slice()).collect();
    let right = |path: &&'t [u8]| {
        let node = (ties.is)(path).filter(|node| matches!(node, RestoreNode::File { .. }))?;
        let is_right =
            !steps.contains(path) && (ties.becomes)(path).is_some_and(|other| other.plain() == node.clone().plain());
        is_right.then_some((*path, node))
    };
    let mut names: Vec<(&[u8], RestoreNode)> = paths.iter().filter_map(right).collect();
    // What must stay where it is comes first: the others go where they belong.
    names.sort_by_key(|(path, _)| limits.allow_path(path));
    let (mut files, mut groups) = (BTreeMap::new(), BTreeMap::new());
    let (mut moving, mut stuck) = (Vec::new(), Vec::new());
    for (path, node) in names {
        let (file, group) = (now.of(path), target.of(path));
        // Each group has one file, and each file has one group: the first name settles both, and the others must agree.
        let is_first = !files.contains_key(&file) && !groups.contains_key(&group);
        if is_first || (files.get(&file) == Some(&group) && groups.get(&group) == Some(&file)) {
            files.insert(file, group);
            groups.insert(group, file);
            staying.insert(path);
        } else if limits.allow_path(path) {
            moving.push((path, node));
        } else {
            stuck.push(path);
        }
    }
    (moving, stuck)
}
