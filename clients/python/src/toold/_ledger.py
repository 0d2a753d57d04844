"""What was sent and what the daemon has confirmed of it: the same rules as the Go client's."""

from __future__ import annotations

import json

from .v1 import tool_pb2 as wire

#: How often a stream is resumed without a record in between, before the daemon counts as unable to serve.
TRIES = 3


class Ledger:
    def __init__(self):
        self.last = 0  # the newest record received
        self.kept = []  # in the order sent: what the daemon may not have
        self.calls = set()  # (turn, id) of those that have no result
        self.turns = set()  # those that were not ended or discarded
        self.tries = 0
        self.buffers = {}  # the newest text of each, by path, or that it was closed
        self.repeated = {}  # by (turn, id) of calls that were sent again on this stream: the kinds of events that have come

    def buffer(self, path, text):
        """Keeps a text, and returns it under its new version."""
        version = getattr(self.buffers.get(path), "version", 0) + 1
        self.buffers[path] = wire.BufferChanged(path=path, version=version, content=text)
        return self.buffers[path]

    def restart(self):
        """Begins with the first record again, because they have other numbers now; false: that is so already."""
        was, self.last = self.last, 0
        return was > 0

    def begin(self, asked, attached):
        self.last = asked.after_seq if asked.HasField("after_seq") else attached.last_seq

    def add(self, request):
        """Takes note of a message that is about to be sent."""
        kind = request.WhichOneof("message")
        message = getattr(request, kind)
        if kind == "tool_use":
            self.calls.add((message.turn_id, use_id(message)))
            self.turns.add(message.turn_id)
        elif kind == "model_event":
            self.turns.add(message.turn_id)
        elif kind == "end_turn":
            if not self.has_events(message.turn_id):
                self.turns.discard(message.turn_id)  # else its calls are known to the daemon alone
        elif kind == "discard_turn":
            self.turns.discard(message.turn_id)
        elif kind == "cancel":
            if message.tool_use_id and all(id != message.tool_use_id for _, id in self.calls):
                return
        elif kind not in ("interrupt", "client_tool_result"):
            return
        self.kept.append(request)

    def confirm(self, event):
        """Takes note of an event; false: it is not to be passed on."""
        # The daemon may send records of a call that was sent again twice: as missed ones, and for the call that it knows.
        about = event.accepted.tool_use_id or event.started.tool_use_id or event.tool_result.tool_use_id
        kinds = self.repeated.get((event.turn_id, about), None)
        if kinds is not None:
            if event.WhichOneof("event") in kinds:
                return False
            kinds.add(event.WhichOneof("event"))
        if event.seq:
            self.tries = 0
            self.last = max(self.last, event.seq)
        if over := ended(event):
            self.calls = {(turn, id) for turn, id in self.calls if id != over or not in_turn(event, turn)}
        if event.turn_ended.interrupted and self.has_events(event.turn_id):
            return False  # of a message that the daemon has lost: another turn of the name follows
        if event.HasField("turn_ended"):
            self.turns.discard(event.turn_id)
        self.kept = [request for request in self.kept if not confirms(event, request)]
        return True

    def has_events(self, turn):
        return any(r.model_event.turn_id == turn for r in self.kept if r.HasField("model_event"))

    def unconfirmed(self):
        self.repeated = {(r.tool_use.turn_id, use_id(r.tool_use)): set() for r in self.kept if r.HasField("tool_use")}
        closed = wire.BufferClosed
        texts = [
            wire.ExecuteRequest(buffer_closed=b) if isinstance(b, closed) else wire.ExecuteRequest(buffer_changed=b)
            for b in self.buffers.values()
        ]
        return texts + self.kept

    def first(self):
        """Whether it is tried once more to attach for the first time: the connection may have been an old one."""
        self.tries += 1
        return self.tries == 1

    def resumable(self):
        self.tries += 1
        return self.tries <= TRIES and bool(self.calls or self.turns)

    def forget(self):
        self.kept, self.calls, self.turns, self.tries = [], set(), set(), 0


def use_id(use):
    """The id of a tool use, which a model's own item has in it."""
    if not use.native_json:
        return use.id
    try:
        item = json.loads(use.native_json)
        return item.get("call_id") or item.get("id") or ""
    except (ValueError, AttributeError):  # it is refused
        return ""


def ended(event):
    """The id of the tool use of which nothing more comes after an event."""
    if event.notice.code == "duplicate_id":
        return event.notice.tool_use_id
    return event.tool_result.tool_use_id


def in_turn(event, turn):
    """Whether an event is about the turn, as far as it names one: a notice does not."""
    return event.turn_id == turn or event.HasField("notice")


def confirms(event, request):
    """Whether an event shows that the daemon has a message and will not lose it."""
    kind = request.WhichOneof("message")
    message = getattr(request, kind)

    def turn_ends(turn):
        return event.HasField("turn_ended") and turn in ("", event.turn_id)

    if kind == "tool_use":
        id = use_id(message)
        accepted = event.HasField("accepted") and event.accepted.tool_use_id == id and not event.accepted.replayed
        return in_turn(event, message.turn_id) and (accepted or ended(event) == id)
    if kind == "client_tool_result" or kind == "cancel" and message.tool_use_id:
        return event.HasField("tool_result") and event.tool_result.tool_use_id == message.tool_use_id
    if kind == "interrupt":
        return turn_ends("")
    return turn_ends(message.turn_id)
