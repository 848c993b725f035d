//! Reads the client's messages, one a line. A line that is no message is answered here, because the protocol's library ignores it silently.

use std::fs::File;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// How many bytes are buffered in each direction; a client that reads nothing stops the library when it is full.
const UNDER_WAY: usize = 64 * 1024;

/// The streams that the library reads and writes instead of standard input and output.
pub(crate) struct Ends {
    pub(crate) input: DuplexStream,
    pub(crate) output: DuplexStream,
    /// Ends when everything that the library wrote has reached the client.
    pub(crate) writing: JoinHandle<()>,
}

/// Stands between the client and the library: passes messages on, and answers what is none.
pub(crate) fn between(input: File, output: File) -> Ends {
    let (good, their_input) = duplex(UNDER_WAY);
    let (their_output, answers) = duplex(UNDER_WAY);
    let (sender, refusals) = unbounded_channel();
    // Reading ends with the client's stream. Writing is awaited by the caller, so that no answer is lost.
    tokio::spawn(read(tokio::fs::File::from_std(input), good, sender));
    let writing = tokio::spawn(write(tokio::fs::File::from_std(output), answers, refusals));
    Ends { input: their_input, output: their_output, writing }
}

async fn read(input: tokio::fs::File, mut good: DuplexStream, refusals: UnboundedSender<Vec<u8>>) {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).await.is_ok_and(|count| count > 0) {
        match refusal(&line) {
            // An empty line is neither a message nor a mistake.
            None if line.trim_ascii().is_empty() => {}
            None => {
                // Passed on unchanged: the library reads a message by itself, and here only its form was checked.
                // The last line of all may have no end.
                if !line.ends_with(b"\n") {
                    line.push(b'\n');
                }
                if good.write_all(&line).await.is_err() {
                    return;
                }
            }
            Some(answer) => {
                // A writer that has ended has no client to answer.
                let _ = refusals.send(answer);
            }
        }
        line.clear();
    }
}

async fn write(mut output: tokio::fs::File, answers: DuplexStream, mut refusals: UnboundedReceiver<Vec<u8>>) {
    let mut answers = BufReader::new(answers);
    let (mut line, mut has_more) = (Vec::new(), true);
    while has_more {
        // A line that is not whole yet stays in `line` while a refusal goes first.
        let wrote = tokio::select! {
            read = answers.read_until(b'\n', &mut line) => {
                // At the end, what is left may have no line break: it is written, too.
                has_more = read.is_ok_and(|count| count > 0);
                let wrote = output.write_all(&line).await;
                line.clear();
                wrote
            }
            // Between two lines of the library, never within one: each of its lines is written by a single call.
            Some(answer) = refusals.recv() => output.write_all(&answer).await,
        };
        if wrote.is_err() || output.flush().await.is_err() {
            return;
        }
    }
    // The library has ended; refusals that it had no part in may still wait.
    while let Ok(answer) = refusals.try_recv() {
        let _ = output.write_all(&answer).await;
    }
    let _ = output.flush().await;
}

/// The answer to a line that is no message; `None` if it is one, or is empty.
fn refusal(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return None;
    }
    // The parser bounds how deep a value may be.
    // The codes are those of JSON-RPC: a parse error, and an invalid request.
    let (id, code, message) = match serde_json::from_slice::<Value>(line) {
        Err(error) => (Value::Null, -32700, format!("Parse error: {error}")),
        Ok(value) if value["jsonrpc"] == "2.0" => return None,
        // A batch of messages, as older protocols allowed, is an array, and is refused with -32600.
        Ok(value) => (value.get("id").cloned().unwrap_or_default(), -32600, "Invalid Request".to_owned()),
    };
    let answer = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } });
    Some(format!("{answer}\n").into_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::refusal;

    fn code(line: &str) -> Option<i64> {
        let answer: Value = serde_json::from_slice(&refusal(line.as_bytes())?).expect("JSON");
        answer["error"]["code"].as_i64()
    }

    #[test]
    fn what_is_no_message_is_answered() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for bad in ["{", "hello", "{\"jsonrpc\":\"2.0\",", "\u{0}", &deep] {
            assert_eq!(code(bad), Some(-32700), "{bad:.40}");
        }
        for odd in ["[]", "1", "{}", "{\"id\":7,\"method\":\"ping\"}"] {
            assert_eq!(code(odd), Some(-32600), "{odd}");
        }
        let answer = refusal(b"{\"id\":7}").expect("a refusal");
        assert!(String::from_utf8(answer).expect("text").contains("\"id\":7"));
        for good in ["", "  \r\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"] {
            assert_eq!(code(good), None, "{good}");
        }
    }
}
