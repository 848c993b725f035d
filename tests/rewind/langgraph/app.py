"""A graph without a model, on a checkpointer: app.py DATABASE VERB ...

A step, a subgraph of two, two steps side by side, a question, a last step; all write down what they saw.
"""

import json
import operator
import pathlib
import sqlite3
import sys
import threading
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict):
    n: int
    log: Annotated[list, operator.add]


ran = []


def step(name, change):
    def node(state):
        ran.append(name)
        return {"n": change(state["n"]), "log": [f"{name}{state['n']}"]}
    return node


def side(name):
    def node(state):
        ran.append(name)
        return {"log": [f"{name}{state['n']}"]}
    return node


def ask(state):
    ran.append("ask")
    return {"log": [interrupt(f"continue with {state['n']}?")]}


inner = StateGraph(State)
inner.add_node("s1", lambda state: ran.append("s1") or {"n": state["n"] + 100})
inner.add_node("s2", lambda state: ran.append("s2") or {"n": state["n"] - 90})
inner.add_edge(START, "s1")
inner.add_edge("s1", "s2")
inner.add_edge("s2", END)

graph = StateGraph(State)
graph.add_node("a", step("a", lambda n: n + 1))
graph.add_node("sub", inner.compile())
graph.add_node("p", side("p"))
graph.add_node("q", side("q"))
graph.add_node("ask", ask)
graph.add_node("b", step("b", lambda n: n * 2))
graph.add_edge(START, "a")
graph.add_edge("a", "sub")
graph.add_edge("sub", "p")
graph.add_edge("sub", "q")
graph.add_edge(["p", "q"], "ask")
graph.add_edge("ask", "b")
graph.add_edge("b", END)


class Watched(SqliteSaver):
    """Keeps a copy of the database in its state right after each checkpoint of one thread.

    LangGraph saves while it goes on: what a step writes waits here for the copy of its checkpoint, and what comes when the next checkpoint
    of its namespace is there already belongs into that copy, and those after it, too.
    """

    copies = None
    copied, turn, order = {}, threading.Condition(), threading.Lock()

    def watches(self, config):
        return self.copies and config["configurable"]["thread_id"] == "ann"

    def put(self, config, checkpoint, metadata, new_versions):
        if not self.watches(config):
            return super().put(config, checkpoint, metadata, new_versions)
        with self.order:
            done = super().put(config, checkpoint, metadata, new_versions)
            copy = sqlite3.connect(self.copies / checkpoint["id"])
            with self.lock:
                self.conn.backup(copy)
            copy.close()
        with self.turn:
            self.copied[checkpoint["id"]] = config["configurable"]["checkpoint_ns"]
            self.turn.notify_all()
        return done

    def put_writes(self, config, *rest):
        if not self.watches(config):
            return super().put_writes(config, *rest)
        own = config["configurable"]["checkpoint_id"]
        with self.turn:
            assert self.turn.wait_for(lambda: own in self.copied, timeout=20), config
        with self.order:
            super().put_writes(config, *rest)
            namespace = config["configurable"]["checkpoint_ns"]
            later = [id for id, of in self.copied.items() if of == namespace and id > own]
            for id in [id for id in self.copied if later and id >= min(later)]:
                copy = SqliteSaver(sqlite3.connect(self.copies / id))
                copy.put_writes(config, *rest)
                copy.conn.close()


def opened(path):
    saver = Watched(sqlite3.connect(path, check_same_thread=False))
    return graph.compile(checkpointer=saver), saver


def of(thread):
    return {"configurable": {"thread_id": thread}}


def go(app, thread, given):
    return app.invoke(given, of(thread), durability="sync")


def described(state):
    return {
        "id": state.config["configurable"].get("checkpoint_id"),
        "values": state.values,
        "next": list(state.next),
        "pending": [[task.name, task.result, task.error, [i.value for i in task.interrupts]] for task in state.tasks],
    }


def finish(app, thread):
    """Goes on to the end of the run; every question is answered in the same way."""
    for _ in range(12):
        state = app.get_state(of(thread))
        if not state.next:
            return described(state)["values"]
        asked = any(task.interrupts for task in state.tasks)
        go(app, thread, Command(resume="yes") if asked else None)
    raise SystemExit("it does not end")


def fill(app, saver, copies):
    """Two runs in three threads, which take turns; one of them is edited by hand in between."""
    saver.copies = pathlib.Path(copies)
    names = ["ann", "bob", "cid"]
    for n in [1, 10]:
        for name in names:
            go(app, name, {"n": n, "log": [f"in{n}"]})
        for name in names:
            go(app, name, Command(resume="yes"))
        app.update_state(of("ann"), {"log": ["edited"]})


def main(database, verb, *rest):
    if verb == "ends":
        # The state of a thread in each of these databases, then what it comes to, and which steps ran for it.
        answers = {}
        for path in sorted(pathlib.Path(database).iterdir()):
            app, saver = opened(path)
            ran.clear()
            answers[path.name] = [described(app.get_state(of(rest[0]))), finish(app, rest[0]), list(ran)]
            saver.conn.close()
        return answers
    app, saver = opened(database)
    if verb == "fill":
        return fill(app, saver, *rest)
    if verb == "say":
        go(app, rest[0], {"n": int(rest[1]), "log": [f"in{rest[1]}"]})
        return finish(app, rest[0])
    if verb == "finish":
        return finish(app, rest[0])
    if verb == "state":
        return described(app.get_state(of(rest[0])))
    return [described(state) for state in app.get_state_history(of(rest[0]))]


print(json.dumps(main(*sys.argv[1:])))
