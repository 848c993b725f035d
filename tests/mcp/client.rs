//! A client of our own: it sends and reads the text of the protocol itself, without a library.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How the client begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// A session: `initialize`, at this version.
    Session(&'static str),
    /// Requests that stand alone, each with all that it needs (2026-07-28).
    Alone,
}

pub(crate) const SESSION: Era = Era::Session("2025-11-25");

/// A server and the two ends of its pipes.
pub(crate) struct Client {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    era: Era,
    capabilities: Value,
    next: u64,
    /// What the person says who is asked: `accept`, `decline` or `cancel`; and what they put into the form.
    pub(crate) says: &'static str,
    pub(crate) form: Value,
    /// How long the person thinks; a client without one does not.
    pub(crate) thinks: Duration,
    /// What the person was asked.
    pub(crate) asked: Vec<String>,
}

impl Client {
    /// A client that cannot ask its person.
    pub(crate) fn start(command: &mut Command, era: Era) -> Self {
        Self::with_capabilities(command, era, json!({}))
    }

    pub(crate) fn with_capabilities(command: &mut Command, era: Era, capabilities: Value) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the server");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut client = Self {
            child,
            input,
            output,
            era,
            capabilities,
            next: 0,
            says: "accept",
            form: json!({ "approve": true }),
            thinks: Duration::ZERO,
            asked: Vec::new(),
        };
        if let Era::Session(version) = era {
            let result = client.request(
                "initialize",
                json!({
                    "protocolVersion": version,
                    "capabilities": client.capabilities.clone(),
                    "clientInfo": { "name": "test", "version": "1" },
                }),
            );
            assert_eq!(result["protocolVersion"], version, "{result}");
            client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        client
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("an open input");
        writeln!(input, "{message}").and_then(|()| input.flush()).expect("the server reads");
    }

    /// Sends what is no message.
    pub(crate) fn send_text(&mut self, text: &str) {
        let input = self.input.as_mut().expect("an open input");
        writeln!(input, "{text}").and_then(|()| input.flush()).expect("the server reads");
    }

    /// The next line of the server, which holds no control character that JSON forbids.
    pub(crate) fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).expect("the server writes");
        if read == 0 {
            return None;
        }
        let text = line.trim_end_matches('\n');
        assert_eq!(text.chars().find(|c| *c < ' '), None, "{text}");
        Some(serde_json::from_str(text).unwrap_or_else(|e| panic!("no message ({e}): {text}")))
    }

    /// The result of a request. Panics where it is an error.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        match self.ask(method, params) {
            Ok(result) => result,
            Err(error) => panic!("{method}: {error}"),
        }
    }

    /// The result of a request, or its error. While it waits, the person is asked what the server asks.
    pub(crate) fn ask(&mut self, method: &str, mut params: Value) -> Result<Value, Value> {
        self.next += 1;
        let id = self.next;
        if self.era == Era::Alone {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.read().unwrap_or_else(|| panic!("{method}: the server ended"));
            if message["method"] == "elicitation/create" {
                self.asked.push(message["params"]["message"].as_str().expect("a question").to_owned());
                std::thread::sleep(self.thinks);
                let result = json!({ "action": self.says, "content": self.form });
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
                continue;
            }
            if message["id"] == id {
                return if message["error"].is_null() {
                    Ok(message["result"].clone())
                } else {
                    Err(message["error"].clone())
                };
            }
        }
    }

    /// The answer of a tool, whatever it is.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut params = json!({ "name": tool });
        params["arguments"] = arguments;
        self.request("tools/call", params)
    }

    /// What a tool answers. Panics where it fails.
    pub(crate) fn tool(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments);
        assert_ne!(answer["isError"], true, "{tool}: {answer}");
        let value = answer["structuredContent"].clone();
        assert!(value.is_object(), "{tool}: {answer}");
        let text: Value = serde_json::from_str(answer["content"][0]["text"].as_str().expect("a text")).expect("JSON");
        assert_eq!(text, value, "{tool}: the text is the same");
        value
    }

    /// Code, message and hint of a tool that fails.
    pub(crate) fn failure(&mut self, tool: &str, arguments: Value) -> (String, String, String) {
        let answer = self.call(tool, arguments);
        assert_eq!(answer["isError"], true, "{tool}: {answer}");
        assert!(answer["structuredContent"].is_null(), "{tool}: an error has no shape of an answer: {answer}");
        let error: Value = serde_json::from_str(answer["content"][0]["text"].as_str().expect("a text")).expect("JSON");
        let part = |name: &str| error["error"][name].as_str().unwrap_or_default().to_owned();
        (part("code"), part("message"), part("hint"))
    }

    /// The client goes away: the exit code of the server, and what it wrote on standard error.
    pub(crate) fn goes_away(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        self.ends()
    }

    /// The end of the server, which is near.
    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("its state") {
                break status;
            }
            assert!(Instant::now() < deadline, "the server did not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().expect("its errors"), &mut said).expect("text");
        (status.code(), said)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
