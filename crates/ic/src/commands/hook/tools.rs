//! Reads tool calls of coding agents: the files that a call names, its command, and one line that describes it for people.

use std::path::{Component, Path, PathBuf};

use ic_base::mask::mask;
use ic_base::shell_word;
use serde_json::Value;

/// The keys under which the input of a tool names a file.
const FILES: [&str; 5] = ["file_path", "filePath", "path", "notebook_path", "absolute_path"];

/// The keys whose value describes a call to people, the most telling first.
const LINES: [&str; 8] = ["command", "cmd", "url", "query", "pattern", "description", "prompt", "message"];

/// The keys under which the input of a tool names the directory that its command runs in.
const DIRECTORIES: [&str; 4] = ["workdir", "dir_path", "directory", "cwd"];

/// What the input of a tool call says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientCall {
    /// The call in one line, for people: its files, its command, or the first of [`LINES`].
    pub(crate) line: String,
    /// The files that it names, relative to the root.
    pub(crate) paths: Vec<String>,
    /// The named files that lie outside of the root, absolute and without links.
    pub(crate) outside: Vec<PathBuf>,
    /// All files that it names, absolute.
    pub(crate) files: Vec<PathBuf>,
    /// The line for a shell that it runs.
    pub(crate) command: Option<String>,
    /// The directory that it runs in.
    pub(crate) directory: PathBuf,
}

impl ClientCall {
    /// Reads the input of a call. `directory`: the client's current directory; `root`: the top of its working tree.
    pub(crate) fn read(input: &Value, directory: &Path, root: &Path) -> Self {
        let text = |key: &&str| input[*key].as_str().filter(|text| !text.trim().is_empty());
        let shell = text(&"command").or_else(|| text(&"cmd")).map(str::to_owned);
        // Some clients give the words of a command one by one.
        let words: Option<Vec<&str>> =
            input["command"].as_array().map(|words| words.iter().filter_map(Value::as_str).collect());
        let command = shell.clone().or_else(|| Some(words.as_ref()?.join(" "))).unwrap_or_default();
        let runs_in = DIRECTORIES.iter().find_map(text).map_or_else(|| directory.to_owned(), |to| directory.join(to));
        // An edit tool names files from the directory of the client; a patch names them from where its command
        // runs.
        let files: Vec<(&Path, &str)> = FILES
            .iter()
            .filter_map(text)
            .map(|file| (directory, file))
            .chain(patched(&command).map(|file| (runs_in.as_path(), file)))
            .collect();
        // `path` may also be an address of the web.
        let whole = files.iter().filter(|(_, file)| !file.contains("://"));
        let whole = whole.map(|(from, file)| plain(&from.join(file))).collect();
        let named = files.iter().flat_map(|(from, file)| [below(from, file, root), through_links(from, file, root)]);
        let mut outside: Vec<PathBuf> = files
            .iter()
            // A path that masking would change holds a secret: it is not recorded at all, since a masked path names another file.
            .filter(|(_, file)| !file.contains("://") && mask(file) == *file)
            .filter_map(|(from, file)| ic_worktree::outside_files::outside(root, &plain(&from.join(file))))
            .collect();
        // A file that is named twice, as in two parts of a patch, is looked at only once.
        outside.sort();
        outside.dedup();
        let mut paths: Vec<String> = named.flatten().filter(|path| mask(path) == *path).collect();
        // Most paths lead through no link, and are what they lead to.
        paths.dedup();
        let mut lines = command.lines().map(str::trim).filter(|line| !line.is_empty());
        let line = match (FILES.iter().find_map(text), lines.next()) {
            // The first line of a patch says nothing, so its files describe it.
            _ if command.starts_with(PATCH) && !paths.is_empty() => paths.join(" "),
            (Some(file), _) => below(directory, file, root).unwrap_or_else(|| file.to_owned()),
            // As of a line that is cut: there is more.
            (None, Some(first)) if lines.next().is_some() => format!("{first} …"),
            (None, Some(only)) => only.to_owned(),
            (None, None) => LINES.iter().find_map(text).unwrap_or_default().to_owned(),
        };
        // Words that a client gave one by one are quoted, so that the guard reads the same command that the client runs.
        let quoted = || Some(words?.into_iter().map(shell_word).collect::<Vec<_>>().join(" "));
        // A bare patch goes to no shell, so the guard has nothing to read in it.
        let command = shell.or_else(quoted).filter(|line| !line.trim_start().starts_with(PATCH));
        Self { line, paths, outside, files: whole, command, directory: runs_in }
    }
}

const PATCH: &str = "*** Begin Patch";

/// The files that a patch in Codex's form names.
fn patched(command: &str) -> impl Iterator<Item = &str> {
    const HEADS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let is_patch = command.contains(PATCH);
    let lines = command.lines().filter(move |_| is_patch);
    lines.filter_map(|line| HEADS.iter().find_map(|head| line.strip_prefix(head)).map(str::trim))
}

/// A path relative to the root; `None`: it is not below it, or is an address of the web. The file may not be there yet.
fn below(directory: &Path, file: &str, root: &Path) -> Option<String> {
    let plain = plain(&directory.join(Some(file).filter(|file| !file.contains("://"))?));
    let relative = |path: &Path| path.strip_prefix(root).map(Path::to_owned).ok();
    let path = relative(&plain).or_else(|| {
        // The root is without links, and the file may have been named through one.
        let parent = std::fs::canonicalize(plain.parent()?).ok()?;
        relative(&parent.join(plain.file_name()?))
    })?;
    path.to_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// As [`below`], of the file to which the links of a path lead: a tool writes there.
fn through_links(directory: &Path, file: &str, root: &Path) -> Option<String> {
    let plain = plain(&directory.join(Some(file).filter(|file| !file.contains("://"))?));
    let new = || Some(std::fs::canonicalize(plain.parent()?).ok()?.join(plain.file_name()?));
    let path = std::fs::canonicalize(&plain).ok().or_else(new)?;
    path.strip_prefix(root).ok()?.to_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A path without `.` and `..`, resolved by its text alone: links are not looked at, and the file need not exist.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(input: &Value) -> (String, Vec<String>) {
        let call = ClientCall::read(input, Path::new("/shop/api"), Path::new("/shop"));
        (call.line, call.paths)
    }

    #[test]
    fn a_call_names_its_files_and_says_what_it_does() {
        let named = |line: &str, paths: &[&str]| (line.to_owned(), paths.iter().map(|p| (*p).to_owned()).collect());
        assert_eq!(read(&json!({"file_path": "/shop/a.txt", "content": "x"})), named("a.txt", &["a.txt"]));
        assert_eq!(read(&json!({"path": "../b/./c.txt"})), named("b/c.txt", &["b/c.txt"]));
        assert_eq!(read(&json!({"file_path": "/etc/passwd"})), named("/etc/passwd", &[]));
        assert_eq!(read(&json!({"command": "\n make all\nmake more"})), named("make all …", &[]));
        assert_eq!(read(&json!({"command": ["bash", "-c", "ls"]})), named("bash -c ls", &[]));
        let patch =
            "*** Begin Patch\n*** Add File: n.txt\n+x\n*** Update File: o.txt\n*** Move to: p.txt\n@@\n*** End Patch\n";
        let all = ["api/n.txt", "api/o.txt", "api/p.txt"];
        assert_eq!(read(&json!({ "command": patch })), named("api/n.txt api/o.txt api/p.txt", &all));
        assert_eq!(read(&json!({"anything": 1})), named("", &[]));
    }

    #[test]
    fn an_address_is_no_path_and_a_secret_is_in_none() {
        let url = "https://ann:hunter2pw@host/x";
        assert_eq!(read(&json!({ "path": url })), (url.to_owned(), Vec::new()));
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let (line, paths) = read(&json!({ "file_path": format!("of/{token}/a.txt") }));
        assert_eq!((line, paths), (format!("api/of/{token}/a.txt"), Vec::new()));
    }

    #[test]
    fn a_command_is_read_as_the_shell_gets_it_and_where_it_runs() {
        let call = |input: &Value| ClientCall::read(input, Path::new("/shop/api"), Path::new("/shop"));
        let words = call(&json!({"command": ["bash", "-lc", "rm -rf \"x y\""], "workdir": "../web"}));
        assert_eq!(words.command.as_deref(), Some("bash -lc 'rm -rf \"x y\"'"));
        assert_eq!(words.directory, Path::new("/shop/api/../web"));
        let patch = "*** Begin Patch\n*** Add File: n.txt\n*** End Patch\n";
        assert_eq!(call(&json!({ "command": patch })).command, None);
        let heredoc = format!("apply_patch <<'EOF'\n{patch}EOF\nrm -rf data");
        assert_eq!(call(&json!({ "command": heredoc })).command, Some(heredoc));
    }
}
