//! The directories around what an undo changes: one that holds anything of others stays, and what comes back needs one to come back into.

use ic_base::Result;

use super::Work;
use super::path_state::is_same;
use crate::diff::DiffState;

impl Work<'_> {
    /// Directories that the work made stay where something of others is in them.
    pub(super) fn keep_directories(&mut self) -> Result<()> {
        let is_directory = |state: &Option<DiffState>| matches!(state, Some(DiffState::Directory { .. }));
        let leaving: Vec<Vec<u8>> = self
            .wanted
            .iter()
            .filter(|(_, (now, to))| is_directory(now) && !is_directory(to))
            .map(|(path, _)| path.clone())
            .collect();
        // What lies deeper comes first: a directory goes when all that is in it does.
        for path in leaving.into_iter().rev() {
            let stays = self
                .entries(&path)?
                .into_iter()
                .find(|entry| self.wanted.get(entry).is_none_or(|(_, to)| to.is_some()));
            let Some(stays) = stays else { continue };
            let Some((_, to)) = self.wanted.remove(&path) else { continue };
            if self.backwards.own.of_undone.contains(&path) {
                continue;
            }
            let stays = String::from_utf8_lossy(&stays).into_owned();
            if to.is_some() {
                self.reversed.conflicts.push((path, format!("others keep {stays} in it")));
            } else {
                self.reversed.left.push((path, format!("{stays} stays in it")));
            }
        }
        Ok(())
    }

    /// The paths right below a directory of the current tree.
    fn entries(&self, path: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut tree = self.objects.tree(self.now.exact)?;
        for name in path.split(|b| *b == b'/').filter(|name| !name.is_empty()) {
            let Some(crate::tree::TreeNode::Directory(below)) = tree.get(name).map(|entry| entry.node.clone()) else {
                return Ok(Vec::new());
            };
            tree = self.objects.tree(&below)?;
        }
        let below = |name: &Vec<u8>| if path.is_empty() { name.clone() } else { [path, b"/", name].concat() };
        Ok(tree.entries.iter().map(|entry| below(&entry.name)).collect())
    }

    /// What comes back needs a directory to come back into.
    pub(super) fn require_parents(&mut self) -> Result<()> {
        let coming: Vec<Vec<u8>> = self
            .wanted
            .iter()
            .filter(|(_, (now, to))| to.is_some() && !is_same(now.as_ref(), to.as_ref()))
            .map(|(path, _)| path.clone())
            .collect();
        for path in coming {
            let Some(at) = path.iter().rposition(|b| *b == b'/') else { continue };
            let parent = &path[..at];
            let then = match self.wanted.get(parent) {
                Some((_, to)) => to.clone(),
                None => self.finder.find(parent)?,
            };
            if !matches!(then, Some(DiffState::Directory { .. })) {
                self.wanted.remove(&path);
                let why = "others removed the directory that it was in".to_owned();
                self.reversed.conflicts.push((path, why));
            }
        }
        Ok(())
    }
}
