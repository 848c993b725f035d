//! What an undo does, described for people.

use ic_base::display::{path_text, plain};
use ic_base::mask::mask;
use ic_base::shell_word;
use ic_ledger::path_from_bytes;

use crate::action::{CompensatedFile, EffectAction, EffectBefore};

pub(crate) fn because(what: &str, reason: Option<&String>) -> String {
    reason.map_or_else(|| what.to_owned(), |reason| format!("{what}: {reason}"))
}

impl EffectAction {
    /// What it does, in a few words; secrets are masked.
    pub fn said(&self) -> String {
        match self {
            Self::Exec { argv, .. } => {
                argv.iter().map(|word| shell_word(&plain(&mask(word)))).collect::<Vec<_>>().join(" ")
            }
            Self::Shell { line, .. } => format!("sh: {}", mask(line)),
            Self::RestoreFiles { files } => files.iter().map(CompensatedFile::said).collect::<Vec<_>>().join(", "),
            Self::KillProcess { identity: Some(identity), .. } => format!("end process {}", identity.pid),
            Self::KillProcess { pid_file: Some(file), .. } => {
                format!("end the process in {}", path_text(&path_from_bytes(&file.0)))
            }
            Self::KillProcess { .. } => "end a process".to_owned(),
            Self::Skip { reason } => because("needs no undo", reason.as_ref()),
            Self::Retry { reason } => because("nothing; try it again", reason.as_ref()),
            Self::Pivot { reason } => because("cannot be undone", reason.as_ref()),
        }
    }
}

impl CompensatedFile {
    /// The words for restoring what was at the path.
    pub fn said(&self) -> String {
        let path = path_text(&path_from_bytes(&self.path.0));
        match self.before {
            EffectBefore::Absent => format!("remove {path}"),
            EffectBefore::File { .. } | EffectBefore::Symlink { .. } => format!("restore {path}"),
        }
    }
}
