//! Every page, whole; what man(1) and mandoc(1) say of them is asked in `tests/cli`.

use super::pages;
use crate::cli::CommandLine;
use clap::CommandFactory;

#[test]
fn every_command_has_a_page_with_every_section() {
    let pages = pages(CommandLine::command());
    let mut tree = CommandLine::command();
    tree.build();
    let mut wanted = vec!["ic.1".to_owned()];
    collect(&tree, "ic", &mut wanted);
    let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
    assert_eq!(names, wanted);
    for page in &pages {
        let sections: Vec<&str> =
            page.text.lines().filter_map(|line| line.strip_prefix(".SH ")).map(|name| name.trim_matches('"')).collect();
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"] {
            assert!(sections.iter().any(|one| one.ends_with(section)), "{} has no {section}", page.name);
        }
        let is_group = sections.contains(&"COMMANDS");
        assert!(is_group || sections.contains(&"EXAMPLES"), "{} has no examples", page.name);
        assert!(!page.text.contains("[default: ]"), "{}", page.name);
    }
}

fn collect(command: &clap::Command, before: &str, wanted: &mut Vec<String>) {
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        let name = format!("{before}-{}", verb.get_name());
        wanted.push(format!("{name}.1"));
        collect(verb, &name, wanted);
    }
}

#[test]
fn a_page_refers_to_pages_that_there_are() {
    let pages = pages(CommandLine::command());
    for page in &pages {
        let also = page.text.split(".SH \"SEE ALSO\"\n").nth(1).expect("see also");
        let named = also.split("\\fB").skip(1).filter_map(|rest| rest.split_once("\\fR(1)"));
        for (name, _) in named.filter(|(name, _)| name.starts_with("ic")) {
            let file = format!("{}.1", name.replace("\\-", "-"));
            assert!(pages.iter().any(|other| other.name == file), "{}: {name}", page.name);
            assert_ne!(file, page.name);
        }
    }
    let rollback = pages.iter().find(|page| page.name == "ic-run-rollback.1").expect("the page");
    assert!(rollback.text.contains("\\fBic\\-run\\-advance\\fR(1)"), "{}", rollback.text);
    assert!(rollback.text.contains("--layer=code".replace('-', "\\-").as_str()), "{}", rollback.text);
}
