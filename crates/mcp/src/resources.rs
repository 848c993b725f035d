//! The resources, which a client can show its model without a call of a tool.

use ic_base::Result;
use percent_encoding::percent_decode_str;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};

use crate::command_words::Words;
use crate::commands::Said;
use crate::inputs::{DiffInput, Input};

const JSON: &str = "application/json";
const PATCH: &str = "text/x-diff";

/// A resource, by its URI.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ResourceName {
    /// `ic://run/RUN`: what `ic status` says about it, as JSON.
    Run(String),
    /// `ic://run/RUN/history`: its phases, attempts and rollbacks, as JSON.
    History(String),
    /// `ic://point/POINT/diff`: the patch from there to the working tree.
    Diff(String),
}

/// The resources that clients list: those of the open run here.
pub(crate) fn fixed() -> Vec<Resource> {
    vec![
        Resource::new("ic://run/@", "run")
            .with_title("The run here")
            .with_description("Its phase, its gate, who works, what is unfinished: the answer of the tool status.")
            .with_mime_type(JSON),
        Resource::new("ic://run/@/history", "history")
            .with_title("The history of the run here")
            .with_description("Its phases, attempts and rollbacks, as JSON.")
            .with_mime_type(JSON),
    ]
}

/// The templates of the others, whose URI names a run or a point.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("ic://run/{id}", "run")
            .with_title("A run")
            .with_description("By its id, or the end of one.")
            .with_mime_type(JSON),
        ResourceTemplate::new("ic://run/{id}/history", "history")
            .with_title("The history of a run")
            .with_description("By its id, or the end of one.")
            .with_mime_type(JSON),
        ResourceTemplate::new("ic://point/{id}/diff", "diff")
            .with_title("What changed since a point")
            .with_description("The patch from a point, as log names it, to the working tree.")
            .with_mime_type(PATCH),
    ]
}

impl ResourceName {
    /// The resource of this URI; `None`: there is none.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        let mut parts = uri.strip_prefix("ic://")?.split('/');
        let kind = parts.next()?;
        // Split before it is decoded: the name of a step may hold a slash.
        let id = percent_decode_str(parts.next()?).decode_utf8().ok()?.into_owned();
        match (kind, parts.next(), parts.next()) {
            ("run", None, None) => Some(Self::Run(id)),
            ("run", Some("history"), None) => Some(Self::History(id)),
            ("point", Some("diff"), None) => Some(Self::Diff(id)),
            _ => None,
        }
    }

    /// The command that prints it. Errors: `invalid_value` for a name that would be read as a flag.
    pub(crate) fn words(&self) -> Result<Words> {
        match self {
            // Without an argument it shows the newest run if none is open, as the tool does.
            Self::Run(run) if run == "@" => Ok(Words::of(&["status"])),
            Self::Run(run) => Words::of(&["status"]).value("run", run),
            Self::History(run) => Words::of(&["run", "history"]).value("run", run),
            Self::Diff(point) => DiffInput::since(point).words(None),
        }
    }

    /// The contents, made of what the command printed.
    pub(crate) fn contents(&self, uri: &str, said: &Said) -> ReadResourceResult {
        let (text, kind) = match self {
            Self::Run(_) | Self::History(_) => (said.json.trim_end().to_owned(), JSON),
            // With a line at its end that says where it was cut.
            Self::Diff(_) => (said.text.clone(), PATCH),
        };
        let contents = ResourceContents::TextResourceContents {
            uri: uri.to_owned(),
            mime_type: Some(kind.to_owned()),
            text,
            meta: None,
        };
        ReadResourceResult::new(vec![contents])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_one_resource_or_none() {
        assert_eq!(ResourceName::parse("ic://run/@"), Some(ResourceName::Run("@".to_owned())));
        assert_eq!(ResourceName::parse("ic://run/@/history"), Some(ResourceName::History("@".to_owned())));
        let step = ResourceName::parse("ic://point/step:deploy%232/diff");
        assert_eq!(step, Some(ResourceName::Diff("step:deploy#2".to_owned())));
        for unknown in
            ["ic://run", "ic://run/@/x", "ic://point/a", "ic://point/a/diff/b", "file:///etc/passwd", "ic://x/y", ""]
        {
            assert_eq!(ResourceName::parse(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_uri_gives_no_flag() {
        let hostile = ResourceName::parse("ic://run/--yes").expect("a run");
        assert!(hostile.words().is_err());
    }
}
