"""A model that says what a story wants, for coding agents that run without a network.

It answers in the dialects of Anthropic Messages, OpenAI Responses and Chat, and Gemini, streaming. A prompt names its scene (`@@name`); how many
results of tools follow it says which step of the scene is next. Whatever was asked is kept, so that a test can see what reached it.
"""

import http.server
import itertools
import json
import threading

LONGEST = 300  # answers; a client that asks for ever is cut off


def words(value):
    """All text in a message."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(words(one) for one in value)
    if isinstance(value, dict):
        return "\n".join(words(value[key]) for key in ("text", "content", "parts", "input") if key in value)
    return ""


def results(message):
    """How many results of tools a message has."""
    if message.get("type", "").endswith("_call_output") or message.get("role") == "tool":
        return 1
    parts = message.get("content") or message.get("parts") or []
    if not isinstance(parts, list):
        return 0
    return sum(isinstance(part, dict) and (part.get("type") == "tool_result" or "functionResponse" in part) for part in parts)


class Model:
    """`scenes`: for each name a list of steps: a line for the shell, a tool's name with its input, or None for the end; or a function that gives one.
    """

    def __init__(self, scenes, tool, key):
        self.scenes, self.tool, self.key = scenes, tool, key
        self.asked, self.numbers = [], itertools.count(1)
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def send(self, body, kind="application/json", code=200):
                self.send_response(code)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def stream(self, events, end=b""):
                lines = []
                for event in events:
                    name = event.get("type")
                    lines.append((f"event: {name}\n" if name else "") + f"data: {json.dumps(event)}\n\n")
                self.send("".join(lines).encode() + end, "text/event-stream")

            def do_HEAD(self):
                self.send(b"")

            def do_GET(self):
                self.send(b'{"data": [], "models": []}')

            def body(self):
                if "chunked" not in self.headers.get("transfer-encoding", ""):
                    return self.rfile.read(int(self.headers.get("content-length") or 0))
                read = b""
                while size := int(self.rfile.readline().strip() or b"0", 16):
                    read += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return read

            def do_POST(self):
                question = json.loads(self.body() or b"{}")
                path = self.path.split("?")[0]
                if next(model.numbers) > LONGEST:
                    return self.send(b"{}", code=500)
                model.asked.append(json.dumps(question))
                if path.endswith("/messages"):
                    return self.anthropic(question)
                if path.endswith("/responses"):
                    return self.openai(question)
                if path.endswith("/chat/completions"):
                    return self.chat(question)
                if "enerateContent" in path:
                    return self.gemini(question, "stream" in path)
                return self.send(b'{"input_tokens": 1, "totalTokens": 1}')

            def anthropic(self, question):
                line = model.step(question.get("messages", []), bool(question.get("tools")))
                n = next(model.numbers)
                text = {"type": "text", "text": ""}
                tool, given = model.call(line)
                use = {"type": "tool_use", "id": f"toolu_{n}", "name": tool, "input": {}}
                block, delta, stop = (
                    (text, {"type": "text_delta", "text": "done"}, "end_turn")
                    if line is None
                    else (use, {"type": "input_json_delta", "partial_json": json.dumps(given)}, "tool_use")
                )
                message = {"id": f"msg_{n}", "type": "message", "role": "assistant", "model": question.get("model"), "content": []}
                message |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
                if not question.get("stream"):
                    message["content"] = [{"type": "text", "text": "done"}]
                    return self.send(json.dumps(message | {"stop_reason": "end_turn"}).encode())
                return self.stream([
                    {"type": "message_start", "message": message},
                    {"type": "content_block_start", "index": 0, "content_block": block},
                    {"type": "content_block_delta", "index": 0, "delta": delta},
                    {"type": "content_block_stop", "index": 0},
                    {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}},
                    {"type": "message_stop"},
                ])

            def openai(self, question):
                line = model.step(question.get("input", []), True)
                n = next(model.numbers)
                said = {"type": "output_text", "text": "done", "annotations": []}
                tool, given = model.call(line)
                space, _, name = tool.rpartition("/")
                item = (
                    {"type": "message", "id": f"m_{n}", "role": "assistant", "status": "completed", "content": [said]}
                    if line is None
                    else {"type": "function_call", "id": f"f_{n}", "call_id": f"c_{n}", "name": name, "status": "completed",
                          "arguments": json.dumps(given)} | ({"namespace": space} if space else {})
                )
                usage = {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
                         "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2}
                answer = {"id": f"r_{n}", "object": "response", "model": question.get("model"), "usage": usage}
                return self.stream([
                    {"type": "response.created", "response": answer | {"status": "in_progress", "output": []}},
                    {"type": "response.output_item.added", "output_index": 0, "item": item},
                    {"type": "response.output_item.done", "output_index": 0, "item": item},
                    {"type": "response.completed", "response": answer | {"status": "completed", "output": [item]}},
                ])

            def chat(self, question):
                line = model.step(question.get("messages", []), bool(question.get("tools")))
                n = next(model.numbers)
                call = {"index": 0, "id": f"call_{n}", "type": "function"}
                tool, given = model.call(line)
                call |= {"function": {"name": tool, "arguments": json.dumps(given)}}
                said = {"role": "assistant", "content": None, "tool_calls": [call]} if line else {"role": "assistant", "content": "done"}
                why = "tool_calls" if line else "stop"
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                answer = {"id": f"c{n}", "created": 1, "model": question.get("model")}
                if not question.get("stream"):
                    choice = {"index": 0, "message": said, "finish_reason": why}
                    return self.send(json.dumps(answer | {"object": "chat.completion", "choices": [choice], "usage": usage}).encode())
                answer |= {"object": "chat.completion.chunk"}
                return self.stream([
                    answer | {"choices": [{"index": 0, "delta": said, "finish_reason": None}]},
                    answer | {"choices": [{"index": 0, "delta": {}, "finish_reason": why}]},
                    answer | {"choices": [], "usage": usage},
                ], b"data: [DONE]\n\n")

            def gemini(self, question, streams):
                line = model.step(question.get("contents", []), bool(question.get("tools")))
                tool, given = model.call(line)
                call = {"functionCall": {"name": tool, "args": given}} if line else {"text": "done"}
                usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
                answer = {"candidates": [{"content": {"role": "model", "parts": [call]}, "finishReason": "STOP", "index": 0}]}
                answer |= {"usageMetadata": usage, "modelVersion": "story"}
                return self.stream([answer]) if streams else self.send(json.dumps(answer).encode())

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def call(self, step):
        """The tool that a step calls, and what it is given. A tool's namespace stands before its name."""
        return step if isinstance(step, tuple) else (self.tool, {self.key: step, "description": "a step"})

    def step(self, messages, has_tools):
        """What comes next; None: the agent is to stop."""
        if not has_tools:
            return None
        messages = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        scene, done = None, 0
        for message in messages:
            if results(message):
                done += results(message)
            elif message.get("role") == "user":
                found = [name for name in self.scenes if f"@@{name}" in words(message)]
                scene, done = (found[-1], 0) if found else (scene, done)
        steps = self.scenes.get(scene, [])
        step = steps[done] if done < len(steps) else None
        return step() if callable(step) else step
