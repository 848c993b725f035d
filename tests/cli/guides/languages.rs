//! The translations of a page match it: the same headings, commands, files and links, and the words of their own country.

use super::links::links;
use super::page::{blocks, exchanges, prose};
use super::text_of;

const PAGES: &[&str] = &["README", "docs/TOUR"];

/// A translation, and words that its readers would take for those of another language.
struct Language {
    suffix: &'static str,
    foreign: &'static [&'static str],
}

const LANGUAGES: &[Language] = &[
    Language {
        suffix: "zh-Hant",
        foreign: &[
            "程序", "文件夾", "數據庫", "默認", "信息", "回滾", "倉庫", "服務器", "網絡", "軟件", "命令行", "撤銷",
            "進程", "哈希", "管道", "事務", "門禁", "智能體", "崩潰", "超時",
        ],
    },
    Language {
        suffix: "zh-Hans",
        foreign: &[
            "程式", "档案", "资料库", "资料表", "预设", "资讯", "版本库", "伺服器", "网路", "软体", "命令列", "复原",
            "行程", "杂凑", "管线", "交易", "关卡", "当机", "逾时", "终端机", "代理",
        ],
    },
];

/// Every page in English and in another language.
fn translated(check: impl Fn(&str, &str, &str, &Language)) {
    for page in PAGES {
        let original = text_of(&format!("{page}.md"));
        for language in LANGUAGES {
            let name = format!("{page}.{}.md", language.suffix);
            check(&name, &original, &text_of(&name), language);
        }
    }
}

/// A line of code without its comment, which may be in the reader's language.
fn uncommented(line: &str) -> &str {
    let at = if line.starts_with('#') { Some(0) } else { line.find("  # ") };
    at.map_or(line, |at| &line[..at]).trim_end()
}

#[test]
fn translations_have_the_same_headings() {
    let levels = |page: &str| {
        let headings = prose(page).into_iter().filter(|(_, line)| line.starts_with('#'));
        headings.map(|(_, line)| line.chars().take_while(|c| *c == '#').count()).collect::<Vec<_>>()
    };
    translated(|name, original, translation, _| {
        assert_eq!(levels(translation), levels(original), "{name}");
    });
}

#[test]
fn translations_have_the_same_code() {
    let code = |page: &str| -> Vec<String> {
        let mut code = Vec::new();
        for (head, lines) in blocks(page) {
            code.push(format!("```{head}"));
            if head == "console" {
                // The answers are compared with what the commands say.
                code.extend(exchanges(&lines).into_iter().flat_map(|(command, _)| command).map(str::to_owned));
            } else {
                code.extend(lines.into_iter().map(|line| uncommented(line).to_owned()));
            }
        }
        code
    };
    translated(|name, original, translation, _| assert_eq!(code(translation), code(original), "{name}"));
}

#[test]
fn translations_name_the_same_things() {
    let named = |page: &str| {
        let lines = prose(page).into_iter().map(|(_, line)| line);
        let spans = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
        let mut spans: Vec<String> = spans.map(str::to_owned).collect();
        spans.sort();
        spans
    };
    translated(|name, original, translation, _| assert_eq!(named(translation), named(original), "{name}"));
}

#[test]
fn translations_link_to_the_same_places() {
    let places = |page: &str| {
        let targets = links(page).into_iter().map(|(_, link)| {
            let page = link.split_once('#').map_or(link.as_str(), |(page, _)| page);
            LANGUAGES
                .iter()
                .fold(page.to_owned(), |page, language| page.replace(&format!(".{}.md", language.suffix), ".md"))
        });
        let mut places: Vec<String> = targets.collect();
        places.sort();
        places
    };
    translated(|name, original, translation, _| assert_eq!(places(translation), places(original), "{name}"));
}

#[test]
fn translations_have_the_same_rows() {
    let rows = |page: &str| prose(page).into_iter().filter(|(_, line)| line.starts_with('|')).count();
    translated(|name, original, translation, _| assert_eq!(rows(translation), rows(original), "{name}"));
}

#[test]
fn translations_speak_like_their_readers() {
    translated(|name, _, translation, language| {
        // The glossary holds the words of both.
        for (number, line) in prose(translation).into_iter().filter(|(_, line)| !line.starts_with('|')) {
            for word in language.foreign {
                assert!(!line.contains(word), "{name}:{number}: {word}");
            }
        }
    });
}

#[test]
fn the_glossary_is_the_same_everywhere() {
    let glossary = |page: &str| {
        let rows = prose(page).into_iter().filter_map(|(_, line)| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (cells.len() == 6).then(|| cells[1..4].join(" | "))
        });
        // The first row is in the language of the page.
        rows.skip(1).collect::<Vec<_>>()
    };
    let original = glossary(&text_of("docs/TOUR.md"));
    assert!(original.len() > 30, "the glossary is elsewhere");
    for language in LANGUAGES {
        let name = format!("docs/TOUR.{}.md", language.suffix);
        assert_eq!(glossary(&text_of(&name)), original, "{name}");
    }
}
