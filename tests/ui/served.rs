//! A running page, and a browser that keeps its cookie.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use ic_testkit::{Cli, TestWorld};
use serde_json::Value;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_ic");

/// A page, until it is dropped.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) port: u16,
    pub(crate) key: String,
    pub(crate) cookie: String,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("a page is UTF-8")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// What is between the tags of its main part.
    pub(crate) fn main(&self) -> String {
        let text = self.text();
        let (_, rest) = text.split_once("<main").unwrap_or_else(|| panic!("no main part: {text}"));
        rest.split_once('>').and_then(|(_, rest)| rest.split_once("</main>")).expect("its end").0.to_owned()
    }

    /// The hidden field of this name.
    pub(crate) fn field(&self, name: &str) -> String {
        let text = self.main();
        let from = format!("type=\"hidden\" name=\"{name}\" value=\"");
        let (_, rest) = text.split_once(&from).unwrap_or_else(|| panic!("no field {name}: {text}"));
        rest.split('"').next().expect("its value").to_owned()
    }

    /// The first link that contains this, unescaped.
    pub(crate) fn link(&self, part: &str) -> String {
        let text = self.main();
        let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let found = links.map(|link| link.replace("&amp;", "&")).find(|link| link.contains(part));
        found.unwrap_or_else(|| panic!("no link with {part}: {text}"))
    }
}

impl Served {
    /// Serves the page of a project, and enters it.
    pub(crate) fn of(cli: &Cli, flags: &[&str]) -> Self {
        let mut words = vec!["ui", "--json"];
        words.extend(flags);
        let mut command = cli.command(words);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start ic ui");
        let mut line = String::new();
        let read = BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        if read == 0 {
            let mut error = String::new();
            let _ = child.stderr.take().expect("its errors").read_to_string(&mut error);
            panic!("no page: {error}");
        }
        let address: Value = serde_json::from_str(&line).expect("an address");
        let url = address["url"].as_str().expect("a URL");
        let port = u16::try_from(address["port"].as_u64().expect("a port")).expect("a port");
        let key = url.split_once("key=").expect("a key").1.to_owned();
        let mut served = Self { child, port, key, cookie: String::new() };
        let entered = served.ask(&format!("GET /enter?key={} HTTP/1.1\r\n", served.key), "");
        assert_eq!(entered.status, 200, "{entered:?}");
        let cookie = entered.header("set-cookie").expect("a cookie");
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        cookie.split(';').next().expect("its value").clone_into(&mut served.cookie);
        served
    }

    /// The page of a world.
    pub(crate) fn of_world(world: &TestWorld) -> Self {
        Self::of(&world.cli, &[])
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connect");
        stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a timeout");
        stream
    }

    /// Sends the beginning of a request, with the usual headers, and its body.
    pub(crate) fn ask(&self, begin: &str, body: &str) -> Reply {
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        self.raw(&format!("{begin}Host: {}\r\nConnection: close\r\n{length}\r\n{body}", self.host()))
    }

    /// Sends exactly this.
    pub(crate) fn raw(&self, request: &str) -> Reply {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("send");
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(all.len().saturating_sub(4));
        let head = String::from_utf8_lossy(&all[..end.min(all.len())]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = all.get(end + 4..).unwrap_or_default();
        let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        Reply { status, body: if is_chunked { unchunked(body) } else { body.to_vec() }, head }
    }

    /// A page, asked for by who is in.
    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask(&format!("GET {path} HTTP/1.1\r\nCookie: {}\r\n", self.cookie), "")
    }

    /// A page that must be there.
    pub(crate) fn page(&self, path: &str) -> Reply {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply
    }

    /// A form, sent as our own page sends it.
    pub(crate) fn post(&self, path: &str, body: &str) -> Reply {
        let origin = format!("http://{}", self.host());
        self.ask(
            &format!(
                "POST {path} HTTP/1.1\r\nCookie: {}\r\nOrigin: {origin}\r\nContent-Type: application/x-www-form-urlencoded\r\n",
                self.cookie
            ),
            body,
        )
    }

    /// Confirms the plan of a page: what came of it, after redirects.
    pub(crate) fn confirm(&self, plan: &Reply, path: &str, more: &str) -> Reply {
        let body = format!("token={}&plan={}{more}", plan.field("token"), plan.field("plan"));
        let mut reply = self.post(path, &body);
        while let (303, Some(to)) = (reply.status, reply.header("location").map(str::to_owned)) {
            reply = self.get(&to);
        }
        reply
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|two| two == b"\r\n") {
        let length = std::str::from_utf8(&body[..end]).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
        let Some(length) = length.filter(|length| *length > 0) else { break };
        let from = end + 2;
        whole.extend_from_slice(body.get(from..from + length).unwrap_or(&body[from..]));
        body = body.get(from + length + 2..).unwrap_or_default();
    }
    whole
}

/// A text as it stands in a form.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A project in git, with a run and two pieces of work, of which the second one committed.
pub(crate) fn world() -> TestWorld {
    let world = TestWorld::around(Cli::without_ledger(BINARY).with_checkpoints());
    world.git(&["init", "-q", "-b", "main", "."]);
    world.write("README.md", "# A shop\n");
    world.write("prices.csv", "tea,4\n");
    world.commit("A shop");
    world.ic(&["init"]);
    let run = world.ic(&["run", "create", "--goal", "Sell coffee, too", "--phases", "plan,build,done"]);
    let world = world.with_run(run);
    work(&world, "write a menu", || world.write("menu.md", "coffee 5\n"));
    work(&world, "tidy up", || {
        world.remove("prices.csv");
        world.write("README.md", "# Shop\n");
        world.commit("Tidy up");
    });
    world
}

/// A dispatch that does something, and ends.
pub(crate) fn work(world: &TestWorld, name: &str, does: impl FnOnce()) -> String {
    let id = world.ic(&["dispatch", "create", &world.run, "--name", name]);
    world.ic(&["dispatch", "start", &id]);
    does();
    world.ic(&["dispatch", "complete", &id]);
    id
}
