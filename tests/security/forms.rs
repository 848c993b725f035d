//! The forms of `forms.txt`, in which secrets stand in text.

/// A text, and the secrets in it.
pub(crate) struct Form {
    pub(crate) text: String,
    pub(crate) secrets: Vec<String>,
}

/// All of them.
pub(crate) fn forms() -> Vec<Form> {
    include_str!("forms.txt").lines().filter(|line| !line.starts_with("# ")).map(form).collect()
}

fn form(line: &str) -> Form {
    let line = filled(line).replace(r"\e", "\u{1b}").replace(r"\a", "\u{7}");
    let secrets = line.split('⟦').skip(1).filter_map(|rest| rest.split_once('⟧'));
    let secrets = secrets.map(|(secret, _)| secret.to_owned()).collect();
    Form { text: line.replace(['⟦', '⟧'], ""), secrets }
}

/// The line with what is made put in.
fn filled(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (made, left) = made(after).unwrap_or_else(|| ("{".to_owned(), after));
        out.push_str(&made);
        rest = left;
    }
    out + rest
}

fn made(text: &str) -> Option<(String, &str)> {
    let (word, left) = text.split_once('}')?;
    let digits = word.find(|c: char| c.is_ascii_digit())?;
    let letters = match &word[..digits] {
        "hex" => "0a9c4e7b2d81f3",
        "up" => "A3C7Q2Z5M",
        "aln" => "aB3dE6gH9kL2xY7",
        _ => return None,
    };
    let count = word[digits..].parse().ok()?;
    Some((letters.chars().cycle().take(count).collect(), left))
}
