use proptest::prelude::*;

use super::{MARK, Masker, mask};

#[path = "../../../../tests/security/forms.rs"]
mod forms;
mod repository;

/// Options, parameters and keys before a password without a shape.
const OPTIONS: [&str; 11] = [
    "mysql -u root -p",
    "/usr/bin/mysqldump -h h -p'",
    "mariadb-admin -p",
    "sshpass -p ",
    "sshpass -p '",
    "redis-cli -h h -a ",
    "//h/x?key=",
    "h?a=b&token=",
    "?api_key=",
    "passwd: ",
    "password: '",
];

/// Tokens of every kind, put together here so that no scanner of this file takes them for real ones: what is shown, and
/// what must be hidden.
fn tokens() -> Vec<(String, String)> {
    let a = |count: usize| "aB3dE6gH9".chars().cycle().take(count).collect::<String>();
    let upper = |count: usize| "A3C7".chars().cycle().take(count).collect::<String>();
    let mut all = Vec::new();
    for kind in ["p", "o", "u", "s", "r"] {
        all.push((format!("gh{kind}_"), a(36)));
        all.push((format!("gh{kind}_"), a(255)));
    }
    all.push(("github_pat_".to_owned(), format!("{}_{}", a(22), a(59))));
    for kind in ["pat", "oas", "dt", "rt", "rtr", "cbt", "ptt", "ft", "imt", "agent", "soat"] {
        all.push((format!("gl{kind}-"), format!("{}-_x", a(17))));
    }
    for kind in ["xoxa", "xoxb", "xoxp", "xoxr", "xoxs", "xoxe", "xapp"] {
        all.push((format!("{kind}-"), format!("123456789012-123456789012-{}", a(24))));
    }
    all.push((["AK", "IA"].concat(), upper(16)));
    all.push((["AS", "IA"].concat(), upper(16)));
    all.push((["AI", "za"].concat(), a(35)));
    for kind in ["sk_live_", "rk_live_", "sk_test_", "rk_test_"] {
        all.push((kind.to_owned(), a(24)));
    }
    all.push(("npm_".to_owned(), a(36)));
    all.push((["pypi-", "AgE"].concat(), format!("IcHlwaS5vcmcCJ{}", a(100))));
    for kind in ["sk-", "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-ant-"] {
        all.push((kind.to_owned(), a(48)));
    }
    all.push(("sk-ant-".to_owned(), format!("api03-{}-AA", a(90))));
    all.push((
        format!("{}.", ["ey", "JhbGciOiJIUzI1NiJ9"].concat()),
        format!("{}.{}", ["ey", "JzdWIiOiIxMjM0NTY3ODkwIn0"].concat(), a(43)),
    ));
    all.push(("Authorization: Bearer ".to_owned(), a(9)));
    all.push(("authorization: basic ".to_owned(), "dXNlcjpwYXNz".to_owned()));
    all.push(("\"Authorization\": \"token ".to_owned(), a(20)));
    all.push(("Bearer ".to_owned(), format!("{}~+/=", a(24))));
    all.push(("AWS_SECRET_ACCESS_KEY=".to_owned(), format!("{}/+{}", a(20), a(18))));
    all.push(("aws_session_token = ".to_owned(), format!("{}//{}==", a(100), a(100))));
    all.push(("\"SecretAccessKey\": \"".to_owned(), a(40)));
    for name in ["PASSWORD=", "DB_PASSWORD=", "--password ", "--api-key=", "MY_TOKEN='", "\"secret\": \"", "apiKey="] {
        all.push((name.to_owned(), "hunter2".to_owned()));
    }
    for name in ["curl -u ann:", "--user 'ann:"] {
        all.push((name.to_owned(), "hunter2".to_owned()));
    }
    all.extend(OPTIONS.map(|name| (name.to_owned(), "hunter2x".to_owned())));
    all.push(("https://me:".to_owned(), "pass:w@rd!".to_owned()));
    all.push(("postgres://app:".to_owned(), "p%40ss".to_owned()));
    all.push(("https://".to_owned(), a(40)));
    for label in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        all.push((format!("-----BEGIN {label}PRIVATE KEY-----"), format!("\nMII{}\n{}=\n", a(64), a(30))));
    }
    all.push(("-----BEGIN PGP PRIVATE KEY BLOCK-----".to_owned(), "\\nlQOY-----x\\n".to_owned()));
    all
}

/// What must stand after a token of this kind, for it to be one.
fn after(shown: &str) -> &'static str {
    if shown.contains("://") {
        "@example.org/x"
    } else if shown.contains("BEGIN") {
        "-----END PRIVATE KEY-----"
    } else {
        ""
    }
}

fn in_pieces(text: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut masker = Masker::new();
    let (mut out, mut rest) = (Vec::new(), text);
    for size in sizes.iter().cycle() {
        let (piece, left) = rest.split_at(rest.len().min((*size).max(1)));
        out.extend_from_slice(masker.push(piece));
        rest = left;
        if rest.is_empty() {
            break;
        }
    }
    out.extend_from_slice(masker.finish());
    out
}

#[test]
fn every_kind_of_token_is_cut_down_to_its_kind() {
    for (shown, hidden) in tokens() {
        for (left, right) in
            [("", ""), ("error: ", " is wrong\n"), ("x='", "'"), ("{\"a\":\"b\\n", "\"}"), ("\u{1b}[31m", "\u{1b}[0m")]
        {
            let text = format!("{left}{shown}{hidden}{}{right}", after(&shown));
            let expected = format!("{left}{shown}{MARK}{}{right}", after(&shown));
            assert_eq!(mask(&text), expected, "{text}");
            assert_eq!(mask(&expected), expected, "masked twice");
        }
    }
}

#[test]
fn tokens_that_come_in_pieces_are_found_as_if_they_came_in_one() {
    for (shown, hidden) in tokens() {
        let text = format!("one {shown}{hidden}{} two", after(&shown));
        let whole = mask(&text).into_owned();
        for size in 1..text.len() {
            assert_eq!(String::from_utf8_lossy(&in_pieces(text.as_bytes(), &[size])), whole, "{text} by {size}");
            assert_eq!(
                String::from_utf8_lossy(&in_pieces(text.as_bytes(), &[size, 100_000])),
                whole,
                "{text} at {size}"
            );
        }
    }
}

#[test]
fn the_value_of_a_header_that_is_a_secret_as_a_whole_is_hidden_to_the_end_of_its_line() {
    for name in ["Cookie: ", "cookie:", "set-cookie: ", "X-Api-Key:", "PRIVATE-TOKEN: ", "x-auth-token: "] {
        for (left, right) in [("curl -H '", "' h"), ("> ", "\nHost: h"), ("{\"a\":\"b\\n", "\"}")] {
            let text = format!("{left}{name}a=hunter2; b=c{right}");
            assert_eq!(mask(&text), format!("{left}{name}{MARK}{right}"), "{text}");
            for size in 1..text.len() {
                assert_eq!(String::from_utf8_lossy(&in_pieces(text.as_bytes(), &[size])), mask(&text), "{size}");
            }
        }
    }
}

#[test]
fn what_is_no_token_stays() {
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let texts = [
        commit,
        "01a1fe35-c076-73ad-8725-cc9cf6ced86a",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "task-0123456789abcdef0123456789abcdef0123456789abcdef",
        "sk-fading-circle-with-a-long-name-of-a-class",
        "npm_config_registry=https://registry.npmjs.org/",
        "pypi-attestations-verification-service",
        "github_pat_ghp_gho_ sk-ant- AKIA xoxb- glpat- eyJ ey e",
        "https://example.org:8080/a@b?c=d@e git@github.com:a/b.git ssh://git@github.com/a/b",
        "http://localhost:3000 was asked by me@example.org",
        "Bearer authentication is needed; bearer of bad news, bearerless",
        "Authorization: required",
        "AWS_SECRET_ACCESS_KEY is not set; aws_session_token=$TOKEN",
        "AccessKey: 0123456789abcdef0123",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "keyJ.properties0123456 eyJhbGci.toString eyJhbGciOiJIUzI1NiJ9. eyJhbGciOiJIUzI1NiJ9.x",
        &"-".repeat(1000),
        "the password: it must be long; a secret is no token=abcd, PASSWORD=$PASSWORD, --secret -x, api_key=''",
        "passwords = secrets(12) and tokens=4096; tokenize; secretly; token_count=12345",
        "git add -u . && git push -u origin main:main2 && sort -u a:b; date -u +%H:%M; set -u; docker run -u 1000:100 x",
        "Cookie: $C\"; the cookie: a\"; cookies: there are many; -u $USER:$PASS, --user ann",
        "mkdir -p mysql/data; ps -a; cp -a x y; ssh -p 2222 h; mysql -u root -p shop; mysql --port -P3306; docker run mysql -p3306:3306",
        "mysql x; mkdir -p1234 | redis-cli ping && ls -a x\nsshpass\nssh -p 22 h; mysql -p$PW -p\"$PW\"; sshpass -p $PW ssh -p 22 h",
        "https://h/x?key=title&token=$T&key=${K}&tokens=12345 a?b:c password: hunter passwd: password updated",
        "計劃 é \u{202e} …[masked]",
        "",
    ];
    for text in texts {
        assert!(matches!(mask(text), std::borrow::Cow::Borrowed(same) if same == text), "{text}: {}", mask(text));
        for size in 1..text.len() {
            assert_eq!(in_pieces(text.as_bytes(), &[size]), text.as_bytes(), "{text} by {size}");
        }
    }
}

#[test]
fn several_tokens_and_what_is_no_text_between_them() {
    let token = format!("ghp_{}", "a1".repeat(18));
    let text = [token.as_bytes(), b"\xff\xfe,", token.as_bytes(), b"\0", token.as_bytes()].concat();
    let masked = format!("ghp_{MARK}");
    let expected = [masked.as_bytes(), b"\xff\xfe,", masked.as_bytes(), b"\0", masked.as_bytes()].concat();
    assert_eq!(in_pieces(&text, &[7]), expected);
}

#[test]
fn a_key_without_an_end_hides_so_much_and_no_more() {
    let text = format!("-----BEGIN PRIVATE KEY-----{}the rest", "x".repeat(super::verdict::LONGEST_KEY));
    assert_eq!(mask(&text), format!("-----BEGIN PRIVATE KEY-----{MARK}the rest"));
    assert_eq!(mask("-----BEGIN PRIVATE KEY-----\nMII"), format!("-----BEGIN PRIVATE KEY-----{MARK}"));
}

#[test]
fn what_is_held_back_is_short_whatever_comes() {
    let endless = [
        "a", "e", "eyJ", "://", "ghp_", "-----BEGIN ", "BEGIN ", "Bearer ", "authorization: ", "AccessKey=", "sk-",
        "\u{1b}[",
    ];
    for piece in endless {
        for tail in ["", "a", "A", "-", " "] {
            let text = format!("{}{}", piece, tail.repeat(20_000));
            let mut masker = Masker::new();
            for byte in text.as_bytes() {
                masker.push(std::slice::from_ref(byte));
                assert!(masker.engine.held.len() <= 600, "{piece}{tail}: {}", masker.engine.held.len());
            }
        }
    }
}

/// Pieces from which tokens, halves of tokens and ordinary text are put together.
fn parts() -> impl Strategy<Value = String> {
    let words: Vec<String> = tokens()
        .into_iter()
        .flat_map(|(shown, hidden)| [format!("{shown}{hidden}{}", after(&shown)), shown, hidden])
        .chain([" ", "\n", ".", "@", ":", "//", "-", "e", "ey", "the", "\\n", "é", "=", "\""].map(str::to_owned))
        .collect();
    prop::collection::vec(prop::sample::select(words), 0..12).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn the_cut_into_pieces_makes_no_difference(text in parts(), sizes in prop::collection::vec(1_usize..40, 1..8)) {
        let whole = mask(&text).into_owned();
        prop_assert_eq!(String::from_utf8(in_pieces(text.as_bytes(), &sizes)).unwrap(), whole);
    }

    #[test]
    fn any_bytes_go_through(bytes in prop::collection::vec(any::<u8>(), 0..300), sizes in prop::collection::vec(1_usize..40, 1..8)) {
        let whole = in_pieces(&bytes, &[1000]);
        prop_assert_eq!(in_pieces(&bytes, &sizes), whole);
    }
}

#[test]
fn a_password_beside_the_name_of_its_program_is_hidden_wherever_its_option_stands() {
    for (text, masked) in [
        ("mysql --password=hunter2 -phunter2 db", "mysql --password=…[masked] -p…[masked] db"),
        ("mysql -p1; mkdir -pv a", "mysql -p…[masked]; mkdir -pv a"),
        ("sshpass -phunter2 ssh -p 22 h", "sshpass -p…[masked] ssh -p 22 h"),
        ("curl https://u:p@h", "curl https://u:…[masked]@h"),
    ] {
        assert_eq!(mask(text), masked);
        assert_eq!(mask(masked), masked, "masked twice");
    }
}

#[test]
fn a_secret_is_hidden_in_whatever_form_it_stands() {
    let mut plain = Vec::new();
    for form in forms::forms() {
        for (left, right) in [("", ""), ("error: ", "\n"), ("{\"a\":\"b\\n", "\"}"), ("\u{1b}[31m", "\u{1b}[0m")] {
            let text = format!("{left}{}{right}", form.text);
            let masked = mask(&text).into_owned();
            if form.secrets.iter().any(|secret| masked.contains(secret.as_str())) || !masked.contains(MARK) {
                plain.push(format!("{text} => {masked}"));
            }
            assert_eq!(mask(&masked), masked, "masked twice");
            for size in [1, 2, 3, 7, 64] {
                let pieces = in_pieces(text.as_bytes(), &[size]);
                assert_eq!(String::from_utf8_lossy(&pieces), masked, "{text} by {size}");
            }
        }
    }
    assert!(plain.is_empty(), "{} are shown:\n{}", plain.len(), plain.join("\n"));
    assert!(forms::forms().len() >= 100);
}

#[test]
fn escapes_stay_in_what_is_shown() {
    for (text, masked) in [
        ("\u{1b}[1mbold\u{1b}[0m and \u{1b}]0;title\u{7}text", None),
        (
            "a\u{1b}[32mpassword\u{1b}[0m=\u{1b}[1mhunter2\u{1b}[0m!",
            Some("a\u{1b}[32mpassword\u{1b}[0m=\u{1b}[1m…[masked]\u{1b}[0m"),
        ),
        ("password=hunt\u{1b}[1mer2\u{1b}[0m b", Some("password=…[masked]\u{1b}[1m\u{1b}[0m b")),
        ("no end \u{1b}]0; of a title", None),
        ("\u{1b}[31", None),
        ("\u{1b}", None),
    ] {
        assert_eq!(mask(text), masked.unwrap_or(text));
    }
    // Without an end, an escape is text, and what is in it is looked at.
    let text = format!("\u{1b}]0;{}password=hunter2", "x".repeat(5000));
    assert!(mask(&text).ends_with("xpassword=…[masked]"), "{}", mask(&text));
}
