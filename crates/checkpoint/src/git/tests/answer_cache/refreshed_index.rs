//! An index that was written anew and says the same.

use super::*;

/// Most commands of git's write new stats into the index, and nothing else: git need not be asked about that.
#[test]
fn an_index_that_was_only_refreshed_is_not_asked_about() {
    for mut told in [Told::new(), Told::changed_long_ago()] {
        for line in ["status", "add a", "read-tree HEAD"] {
            told.refresh(line);
            assert!(told.record(), "{line}");
            assert!(told.record());
        }
        // What it says besides is asked about, also where its entries were looked at before.
        told.write("new", "new");
        for (line, back) in [
            ("add -N new", "reset -q"),
            ("update-index --chmod=+x a", "reset -q"),
            ("update-index --assume-unchanged a", "update-index --no-assume-unchanged a"),
            ("rm -q --cached a", "reset -q"),
        ] {
            for _ in 0..2 {
                told.refresh("status");
                assert!(told.record(), "before {line}");
            }
            told.git(line);
            assert!(!told.record(), "{line}");
            told.git(back);
            told.record();
        }
    }
}

impl Told {
    /// Has git write another stat of a file into the index. Git may look at whole seconds alone.
    fn refresh(&self, line: &str) {
        let (index, path) = (self.root.join(".git/index"), self.root.join("a"));
        let before = std::fs::read(&index).unwrap();
        let file = std::fs::File::options().append(true).open(path).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        file.set_modified(modified - std::time::Duration::from_secs(1)).unwrap();
        self.git(line);
        assert!(std::fs::read(&index).unwrap() != before, "{line} wrote it");
    }
}

/// A filter that only the user's own git runs may find that a file does not differ: the stat in the index says so from then on.
#[test]
fn a_changed_file_that_a_refresh_takes_for_unchanged_is_asked_about() {
    let mut told = Told::new();
    told.write(".gitattributes", "a filter=case\n");
    told.git("-c filter.case.clean=true add .gitattributes");
    told.git("commit -q -m attributes");
    told.write("a", "TWO");
    told.record();
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    told.record();
    assert!(told.shoot().0.dirty);
    // Its filter makes of any content what the index has.
    let clean = format!("filter.case.clean=git cat-file blob {}", told.repository.git("rev-parse HEAD:a").trim());
    let status = Command::new("git").args(["-c", &clean, "add", "a"]).current_dir(&told.root).status();
    assert!(status.unwrap().success());
    assert!(!told.record());
    assert!(!told.shoot().0.dirty, "as git says, too");
}
