//! Links between pages lead somewhere.

use std::path::Path;

use super::page::prose;
use super::{source, text_of};

/// Every page of the sources, from their top.
pub(crate) fn pages() -> Vec<String> {
    let mut pages = Vec::new();
    let mut directories = vec![String::new()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(source(&directory)).expect("a directory") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
            let kind = entry.file_type().expect("its type");
            if kind.is_dir() && !name.starts_with('.') && name != "target" {
                directories.push(path);
            } else if kind.is_file() && Path::new(&name).extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    assert!(pages.len() > 60, "the pages are elsewhere");
    pages
}

/// A line without what stands in backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("")
}

/// Where the links of a page lead, each with its line.
pub(crate) fn links(page: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(page) {
        let line = without_code(line);
        let mut rest = line.as_str();
        while let Some((_, after)) = rest.split_once("](") {
            let (target, after) = after.split_once(')').unwrap_or((after, ""));
            links.push((number, target.to_owned()));
            rest = after;
        }
    }
    links
}

/// The anchors of a page's headings, as forges make them.
fn anchors(page: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(page) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug: String = title
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let earlier = anchors.iter().filter(|anchor| **anchor == slug).count();
        anchors.push(if earlier == 0 { slug } else { format!("{slug}-{earlier}") });
    }
    anchors
}

#[test]
fn every_link_of_every_page_leads_somewhere() {
    let mut astray = Vec::new();
    for page in pages() {
        let text = text_of(&page);
        for (line, link) in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target =
                if path.is_empty() { source(&page) } else { source(&page).parent().expect("a directory").join(path) };
            let is_there = target.exists();
            let is_anchored = anchor.is_empty()
                || std::fs::read_to_string(&target)
                    .is_ok_and(|text| anchors(&text).iter().any(|found| found == anchor));
            if !is_there || !is_anchored {
                astray.push(format!("{page}:{line}: {link}"));
            }
        }
    }
    assert!(astray.is_empty(), "these links lead nowhere:\n{}", astray.join("\n"));
}

#[test]
fn a_link_into_nothing_is_noticed() {
    let page = "# A `b` c\n\n[x](a.md#one) and `[no](no.md)` and ![y](b.png)\n\n```sh\n[z](c.md)\n```\n## A b c\n";
    let found: Vec<String> = links(page).into_iter().map(|(_, link)| link).collect();
    assert_eq!(found, ["a.md#one", "b.png"]);
    assert_eq!(anchors(page), ["a-b-c", "a-b-c-1"]);
}
