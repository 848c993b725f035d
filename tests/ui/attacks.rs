//! Attacks: other names, other origins, no key, a plan that was sent before, hostile texts, many requests, and an endless one.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use ic_testkit::tree;

use crate::served::{Served, encoded, world};

#[test]
fn another_name_is_not_answered() {
    let world = world();
    let page = Served::of_world(&world);
    for host in [
        "evil.example",
        "evil.example:80",
        "127.0.0.1",
        "0.0.0.0:{port}",
        "[::1]:{port}",
        "localhost.evil.example:{port}",
    ] {
        let host = host.replace("{port}", &page.port.to_string());
        for path in ["/", "/assets/style.css", "/live", &format!("/enter?key={}", page.key)] {
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {}\r\nConnection: close\r\n\r\n", page.cookie);
            let reply = page.raw(&request);
            assert_eq!(reply.status, 421, "{host} {path}: {reply:?}");
            assert!(reply.header("set-cookie").is_none() && !reply.text().contains("shop"), "{reply:?}");
        }
    }
    let own = format!(
        "GET / HTTP/1.1\r\nHost: localhost:{}\r\nCookie: {}\r\nConnection: close\r\n\r\n",
        page.port, page.cookie
    );
    assert_eq!(page.raw(&own).status, 200);
}

#[test]
fn only_this_machine_is_answered() {
    let world = world();
    let page = Served::of_world(&world);
    let listening = std::fs::read_to_string("/proc/net/tcp").expect("the sockets");
    let port = format!(":{:04X} ", page.port);
    let own: Vec<&str> = listening.lines().filter(|line| line.contains(&port) && line.contains(" 0A ")).collect();
    assert_eq!(own.len(), 1, "{own:?}");
    assert!(own[0].contains("0100007F:"), "it listens at 127.0.0.1 alone: {own:?}");
}

#[test]
fn without_the_key_nothing_is_shown() {
    let world = world();
    let page = Served::of_world(&world);
    let wrong = [
        String::new(),
        format!("Cookie: ic-ui-{}=\r\n", page.port),
        format!("Cookie: ic-ui-{}={}\r\n", page.port, page.key),
        "Cookie: ic-ui-1=x\r\n".to_owned(),
    ];
    for cookie in &wrong {
        for path in ["/", "/events", "/live", "/acts/1", "/image/00", &format!("/runs/{}", world.run), "/nothing"] {
            let reply = page.ask(&format!("GET {path} HTTP/1.1\r\n{cookie}"), "");
            assert_eq!(reply.status, 403, "{path} {cookie}");
            let text = reply.text();
            assert!(!text.contains("Sell coffee") && !text.contains("project"), "{text}");
        }
    }
    for key in ["", "x", &page.key[1..], &format!("{}0", page.key)] {
        let reply = page.ask(&format!("GET /enter?key={key} HTTP/1.1\r\n"), "");
        assert_eq!((reply.status, reply.header("set-cookie")), (403, None), "{key}");
    }
    // The key opens; it does not pass for the cookie, and no page tells it.
    assert!(!page.page("/").text().contains(&page.key));
}

#[test]
fn what_another_page_sends_changes_nothing() {
    let world = world();
    let page = Served::of_world(&world);
    let run = page.page(&format!("/runs/{}", world.run));
    let plan = page.page(&run.link("/undo?to=dispatch"));
    let (token, hash, to) = (plan.field("token"), plan.field("plan"), encoded(&plan.field("to")));
    let path = format!("/runs/{}/undo", world.run);
    let before = (tree(world.root()), world.cli.dump());
    let own = format!("Origin: http://{}\r\n", page.host());
    let cookie = format!("Cookie: {}\r\n", page.cookie);
    let good = format!("token={token}&plan={hash}&to={to}");
    let tries = [
        ("no origin", cookie.clone(), good.clone()),
        ("a null origin", format!("{cookie}Origin: null\r\n"), good.clone()),
        ("another origin", format!("{cookie}Origin: http://evil.example\r\n"), good.clone()),
        ("another port", format!("{cookie}Origin: http://127.0.0.1:1\r\n"), good.clone()),
        ("another name of ours", format!("{cookie}Origin: http://localhost:{}\r\n", page.port), good.clone()),
        ("another scheme", format!("{cookie}Origin: https://{}\r\n", page.host()), good.clone()),
        ("two origins", format!("{cookie}{own}Origin: http://evil.example\r\n"), good.clone()),
        ("another site, says the browser", format!("{cookie}{own}Sec-Fetch-Site: cross-site\r\n"), good.clone()),
        ("a neighbour, says the browser", format!("{cookie}{own}Sec-Fetch-Site: same-site\r\n"), good.clone()),
        ("no cookie", own.clone(), good.clone()),
        ("no token", format!("{cookie}{own}"), format!("plan={hash}&to={to}")),
        ("a wrong token", format!("{cookie}{own}"), format!("token={}&plan={hash}&to={to}", "0".repeat(64))),
        ("the key as token", format!("{cookie}{own}"), format!("token={}&plan={hash}&to={to}", page.key)),
    ];
    for (what, headers, body) in tries {
        let reply = page.ask(
            &format!("POST {path} HTTP/1.1\r\n{headers}Content-Type: application/x-www-form-urlencoded\r\n"),
            &body,
        );
        assert_eq!(reply.status, 403, "{what}: {reply:?}");
    }
    let without_plan = page.post(&path, &format!("token={token}&to={to}"));
    assert_eq!(without_plan.status, 400, "{}", without_plan.text());
    let wrong_plan = page.post(&path, &format!("token={token}&plan={}&to={to}", "0".repeat(64)));
    assert_eq!(wrong_plan.status, 409, "{}", wrong_plan.text());
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"] {
        let reply = page.ask(&format!("{method} {path} HTTP/1.1\r\n{cookie}{own}"), "");
        assert_eq!(reply.status, 405, "{method}");
    }
    // A GET is never an act.
    assert_eq!(page.get(&format!("{path}?{good}")).status, 200);
    assert_eq!((tree(world.root()), world.cli.dump()), before);
}

#[test]
fn every_answer_tells_the_browser_to_trust_nothing_else() {
    let world = world();
    let page = Served::of_world(&world);
    let outside = page.ask("GET / HTTP/1.1\r\n", "");
    for reply in [page.page("/"), page.get("/nothing"), outside, page.page("/assets/page.js")] {
        let policy = reply.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'self'") && !policy.contains("unsafe"), "{policy}");
        for part in ["frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'", "object-src 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy"), Some("same-origin"));
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
    assert_eq!(page.page("/").header("cache-control"), Some("no-store"));
    let text = page.page(&format!("/runs/{}", world.run)).text();
    assert!(!text.contains("style=\"") && !text.contains("onclick") && !text.contains("javascript:"), "{text}");
    assert_eq!(text.matches("<script").count(), 1, "one script, from a file: {text}");
}

#[test]
fn hostile_texts_are_texts() {
    const BAD: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{202e}&amp;{{7*7}}";
    let world = world();
    let ic = |words: &[&str]| world.ic(words);
    ic(&["run", "cancel", &world.run]);
    let run = ic(&["run", "create", "--goal", BAD, "--phases", "<b>plan,done\"x"]);
    let id = ic(&["dispatch", "create", &run, "--name", BAD, "--agent-type", "<i>agent", "--model", "<u>model"]);
    ic(&["dispatch", "start", &id]);
    let name = "a <script>'\" &\u{202e}\u{7f}\n\t\\x.txt";
    std::fs::write(world.root().join(name), format!("{BAD}\n\u{1b}[31m\n")).expect("a file");
    std::fs::write(world.root().join(std::ffi::OsStr::new("plain.txt")), "x\n").expect("a file");
    {
        use std::os::unix::ffi::OsStrExt;
        let odd: Vec<u8> = (1..=255).filter(|byte| *byte != b'/').collect();
        std::fs::write(world.root().join(std::ffi::OsStr::from_bytes(&odd)), "odd\n").expect("a file");
    }
    ic(&["dispatch", "complete", &id, "--summary", BAD]);
    ic(&["run", "artifact", "add", &run, "--path", "plain.txt"]);
    ic(&["checkpoint", "create", "--run", &run, "--message", BAD]);
    let page = Served::of_world(&world);
    let shown = page.page(&format!("/runs/{run}"));
    let plan = page.page(&shown.link("/undo?to=dispatch"));
    let done = page.confirm(
        &plan,
        &format!("/runs/{run}/undo"),
        &format!("&to={}&reason={}", encoded(&plan.field("to")), encoded("<script>why</script>")),
    );
    assert!(done.main().contains("It is done"), "{}", done.main());
    let point = page.page(&page.page(&format!("/runs/{run}")).link("/point?"));
    let all = page.page(&format!("/runs/{run}"));
    let dots: Vec<String> = all
        .main()
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next().map(|link| link.replace("&amp;", "&")))
        .collect();
    let mut pages =
        vec![shown, plan, done, point, page.page("/"), page.page("/events"), page.page(&format!("/dispatches/{id}"))];
    pages.push(page.page(&format!("/search?q={}", encoded("<script>"))));
    for link in dots.iter().filter(|link| link.starts_with('/')) {
        pages.push(page.get(link));
    }
    let seen = pages.iter().filter(|page| page.text().contains("&lt;script&gt;")).count();
    assert!(seen >= 5, "the texts are shown, {seen} times");
    for one in &pages {
        let text = one.text();
        assert_eq!(text.matches("<script").count(), 1, "{text}");
        for bad in ["<img src=x", "<b>plan", "<i>agent", "<u>model", "\u{202e}", "\u{1b}", "\u{7f}"] {
            assert!(!text.contains(bad), "{bad:?}: {text}");
        }
    }
}

#[test]
fn nothing_of_the_store_is_served_by_a_path() {
    let world = world();
    let page = Served::of_world(&world);
    let ledger = world.cli.content();
    let paths = [
        "/assets/../../ic.db",
        "/assets/%2e%2e/ic.db",
        "/assets/..%2fic.db",
        "//etc/passwd",
        "/.git/config",
        "/.git/ic/ic.db",
        "/image/../ic.db",
        "/image/00",
        "/image/zz",
        "/compare?from=../../ic.db",
        "/compare/file?from=x&path=2e2e",
        "/runs/../../ic.db",
        "/runs/%00",
        "/acts/99999999999999999999",
        "/events?before=x",
        "/runs/0/point?at=x&ref=y",
    ];
    for path in paths {
        let reply = page.get(path);
        assert!(matches!(reply.status, 400 | 404), "{path}: {} {}", reply.status, reply.head);
        assert!(!reply.body.windows(15).any(|part| part == &ledger[..15]), "{path}");
    }
    // A tree or a text is an object as an image is, but no image.
    let checkpoint =
        world.cli.json(["checkpoint", "list", "--json"])[0]["tree_sha256"].as_str().expect("a hash").to_owned();
    assert_eq!(page.get(&format!("/image/{checkpoint}")).status, 404);
}

#[test]
fn a_page_bounds_what_it_takes() {
    let world = world();
    let page = Served::of_world(&world);
    let own = format!("Cookie: {}\r\nOrigin: http://{}\r\n", page.cookie, page.host());
    let long = page.ask(&format!("POST /theme HTTP/1.1\r\n{own}"), &format!("token={}", "x".repeat(1 << 20)));
    assert_eq!(long.status, 413, "{}", long.head);
    let header = page.ask(&format!("GET / HTTP/1.1\r\nX-Long: {}\r\n", "x".repeat(1 << 20)), "");
    assert!(matches!(header.status, 431 | 0), "{}", header.head);
    // A theme leads back to our own pages alone.
    let token = page
        .page("/")
        .text()
        .split("name=\"token\" value=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next().map(str::to_owned))
        .expect("a token");
    for back in [
        "//evil.example", "https://evil.example", "/\\evil.example", "/\t/evil.example", "/\n/evil.example",
        "/\u{b}\\evil.example", "javascript:alert(1)",
    ] {
        let reply = page.post("/theme", &format!("token={token}&to=dark&back={}", encoded(back)));
        assert_eq!((reply.status, reply.header("location")), (303, Some("/")), "{back}");
    }
    let dark = page.post("/theme", &format!("token={token}&to=dark&back=%2Fevents"));
    assert_eq!(dark.header("location"), Some("/events"));
    let cookie = dark.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned();
    let themed = page.ask(&format!("GET / HTTP/1.1\r\nCookie: {}; {cookie}\r\n", page.cookie), "");
    assert!(themed.text().contains("data-theme=\"dark\""), "{}", themed.text());
}

#[test]
fn connections_that_ask_for_nothing_do_not_shut_the_page() {
    let world = world();
    let page = Served::of_world(&world);
    let mut idle: Vec<_> = (0..300).map(|_| page.connect()).collect();
    assert_eq!(page.get("/").status, 200);
    // With this many, the oldest are closed by now, so that the page never runs out of them.
    let mut oldest = idle.remove(0);
    let mut byte = [0];
    let end = oldest.read(&mut byte);
    let is_closed = match &end {
        Ok(count) => *count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    };
    assert!(is_closed, "{end:?}");
    // Who has no key gets an answer, and no connection to keep.
    let refused = page.raw(&format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", page.host()));
    assert_eq!((refused.status, refused.header("connection")), (403, Some("close")), "{}", refused.head);
}

#[test]
fn fifty_at_once_are_all_answered() {
    let world = world();
    let page = Served::of_world(&world);
    let path = format!("/runs/{}", world.run);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..50).map(|_| scope.spawn(|| page.get(&path).status)).collect();
        for one in all {
            assert_eq!(one.join().expect("an answer"), 200);
        }
    });
    assert!(begin.elapsed() < Duration::from_mins(1), "{:?}", begin.elapsed());
}

#[test]
fn who_never_reads_and_who_never_ends_hold_up_no_other() {
    let world = world();
    let page = Served::of_world(&world);
    let mut held = Vec::new();
    for n in 0..40 {
        let mut stream = page.connect();
        let request = match n % 3 {
            // It listens, and never reads.
            0 => format!("GET /live?since=0 HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n", page.host(), page.cookie),
            // It never ends its request.
            1 => "GET / HTTP/1.1\r\nHost: ".to_owned(),
            // It promises a form, and never sends it.
            _ => format!(
                "POST /theme HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nCookie: {1}\r\nContent-Length: 1000\r\n\r\n",
                page.host(),
                page.cookie
            ),
        };
        stream.write_all(request.as_bytes()).expect("send");
        held.push(stream);
    }
    for _ in 0..20 {
        assert_eq!(page.get("/").status, 200);
    }
    drop(held);
}

#[test]
fn who_breaks_off_gets_no_further_turn() {
    let world = world();
    for n in 0..2_000 {
        world.write(&format!("many/{n}.txt"), "text\n");
    }
    let page = Served::of_world(&world);
    let slow = page.page(&format!("/runs/{}", world.run)).link("/point?") + "&show=now";
    let threads = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", page.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Threads:").map(str::trim).map(str::to_owned));
        line.and_then(|count| count.parse::<usize>().ok()).unwrap_or_default()
    };
    let before = threads();
    for _ in 0..30 {
        let mut stream = page.connect();
        let request = format!("GET {slow} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n", page.host(), page.cookie);
        std::io::Write::write_all(&mut stream, request.as_bytes()).expect("send");
        std::thread::sleep(std::time::Duration::from_millis(15));
    }
    let most = (0..20)
        .map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            threads()
        })
        .max()
        .unwrap_or_default();
    // Six are answered at a time; a walk of the tree has threads of its own, one for each core.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    assert!(most <= before + 6 + 2 * cores, "{most} threads, {before} before");
    assert_eq!(page.get("/").status, 200);
}
