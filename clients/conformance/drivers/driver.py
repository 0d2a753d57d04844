"""Does with the Python library what lines of JSON ask for: see cases.txt. Its argument is asyncio or sync."""

import asyncio
import inspect
import json
import sys
import threading

import toold
import toold.sync
from toold.v1 import event_pb2

library = toold.sync if sys.argv[1] == "sync" else toold


async def given(value):
    return await value if inspect.isawaitable(value) else value


class Seen:
    """What a session has seen and was asked."""

    def __init__(self):
        self.changed = threading.Condition()
        self.counts = {"asked": 0, "ran": 0, "stopped": 0, "resumed": -1}
        self.events, self.epochs, self.answers, self.texts = [], [], [], []

    def note(self, change):
        with self.changed:
            change()
            self.changed.notify_all()

    def count(self, what):
        self.note(lambda: self.counts.__setitem__(what, self.counts[what] + 1))

    async def until(self, condition):
        def wait():
            with self.changed:
                return self.changed.wait_for(condition, 60)

        if not await asyncio.to_thread(wait):
            raise RuntimeError("it has waited for a minute")

    def event(self, event):
        kind = event.WhichOneof("event")
        if kind == "attached":
            self.count("resumed")
            if event.attached.epoch not in self.epochs:
                self.note(lambda: self.epochs.append(event.attached.epoch))
        id = getattr(getattr(event, kind), "tool_use_id", "")
        self.note(lambda: self.events.append((kind, id)))

    async def ask(self, question):
        self.count("asked")
        await self.until(lambda: self.answers)
        return decisions[self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)]  # "fails" is none

    async def hold(self, _):
        self.count("ran")
        try:
            while not self.texts:
                await asyncio.sleep(0.01)
            return self.texts.pop(0)
        except asyncio.CancelledError:
            self.count("stopped")
            raise

    def double(self, input):
        self.count("ran")
        return str(2 * input["n"])

    def fail(self, _):
        self.count("ran")
        raise ValueError("out of order")


decisions = {"yes": True, "no": False}
clients, sessions, seen, things = {}, {}, {}, {}


async def connect(name, address=None):
    clients[name] = await given(library.connect(address))
    await given(clients[name].info())


async def session(as_, client, questions=None, tools=(), buffers=False, saves="", address=None, **options):
    if client not in clients:
        await connect(client, address)
    s = Seen()
    if questions:
        s.answers += [] if questions == "held" else [questions]
        options["on_question"] = s.ask
    number = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    schemas = {"double": number, "hold": {"type": "object"}, "fail": {"type": "object"}}
    options["tools"] = [toold.Tool(t, "A tool.", schemas[t], getattr(s, t), read_only=True) for t in tools]
    if buffers:
        options["on_edit"] = lambda path, text: s.note(lambda: s.texts.append(text))
    if saves:
        options["on_save"] = write if saves == "yes" else (lambda path, text: 1 / 0)
    sessions[as_] = await given(clients[client].session(on_event=s.event, **options))
    seen[as_] = s


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


async def call(of, name, tool, value):
    things[name] = await given(sessions[of].call(tool, value, id=name))


async def sees(of, kind, id):
    await seen[of].until(lambda: (kind, id) in seen[of].events)


async def events(of, id):
    return " ".join(kind for kind, about in seen[of].events if about == id and kind != "progress")


async def result(name):
    r = await given(things[name].result())
    text = "".join(c.text for c in r.content)
    return f"{event_pb2.Outcome.Name(r.outcome)[len('OUTCOME_'):]} {r.error.code or text}"


async def run(of, value):
    return await given(sessions[of].run(value))


async def turn(of, name):
    things[name] = await given(sessions[of].turn())


async def feed(name, value):
    for event in value:
        await given(things[name].feed(event))


async def end(name):
    return await given(things[name].end())


async def discard(name):
    await given(things[name].discard())


async def cancel(name):
    await given(things[name].cancel("enough"))


async def interrupt(of):
    await given(sessions[of].interrupt("enough"))


async def count(of, what, number):
    await seen[of].until(lambda: seen[of].counts[what] >= int(number))
    return str(seen[of].counts[what])


async def epochs(of):
    return str(len(seen[of].epochs))


async def answer(of, said):
    seen[of].note(lambda: seen[of].answers.append(said))


async def finish(of, text):
    seen[of].note(lambda: seen[of].texts.append(text))


async def buffer(of, path, text=None):
    await given(sessions[of].buffer(path, text))


async def edited(of):
    await seen[of].until(lambda: seen[of].texts)
    return seen[of].texts.pop(0)


async def output(of, id):
    parts = clients["main"].output(sessions[of].id, id)
    return b"".join([p async for p in parts] if hasattr(parts, "__aiter__") else list(parts)).decode()


async def undo(of, id):
    await given(clients["main"].undo(sessions[of].id, tool_use_id=id))


async def close(of):
    await given(sessions.pop(of).close())


async def id_of(of):
    return sessions[of].id


async def reset():
    for each in list(sessions.values()) + list(clients.values()):
        await given(each.close())
    for kept in (clients, sessions, seen, things):
        kept.clear()


async def serve():
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        try:
            said = {"answer": await globals()[asked["do"]](*asked.get("args", []), **asked.get("with", {})) or ""}
        except toold.TooldError as e:
            said = {"answer": f"error {e.code} {e.reason}".strip()}
        print(json.dumps(said), flush=True)


asyncio.run(serve())
