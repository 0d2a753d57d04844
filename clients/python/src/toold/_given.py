"""What the program gives: its own tools, answers to questions, events of a model."""

from __future__ import annotations

import asyncio
import inspect
import json

from .v1 import event_pb2
from .v1 import tool_pb2 as wire

_DECISIONS = {True: wire.DECISION_ALLOW, "allow": wire.DECISION_ALLOW, False: wire.DECISION_DENY, "deny": wire.DECISION_DENY}


class Tool:
    """A tool that this program runs: run is called with the input as a dict, and returns a text or Content messages.

    It may be a coroutine function, which is cancelled when its call has ended. An exception is the call's error.
    """

    def __init__(self, name, description, schema, run, read_only=False):
        self.name, self.description, self.schema, self.run, self.read_only = name, description, schema, run, read_only

    def _wire(self):
        return wire.ClientTool(
            name=self.name, description=self.description, input_schema_json=json.dumps(self.schema), read_only=self.read_only
        )


async def given_by(function, *arguments):
    """What a function of the program gives, which may wait: a coroutine function here, another one on a thread of its own."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    given = await asyncio.to_thread(function, *arguments)
    return await given if inspect.isawaitable(given) else given


def answer_of(said):
    """The Answer in what on_question has returned. Nothing but a clear yes is one."""
    fields = dict(said) if isinstance(said, dict) else {"decision": said if isinstance(said, bool) else None}
    decision = fields.pop("decision", None)
    if decision not in _DECISIONS.keys() | _DECISIONS.values():
        raise TypeError(f'on_question returns True, False, or a dict whose "decision" is "allow" or "deny", not {said!r}')
    if "updated_input" in fields:
        fields["updated_input_json"] = json.dumps(fields.pop("updated_input"))
    return wire.Answer(decision=_DECISIONS.get(decision, decision), **fields)


def content_of(given):
    """The Contents in what a tool has returned."""
    contents = [event_pb2.Content(text=given)] if isinstance(given, str) else given
    if not isinstance(contents, (list, tuple)) or not all(isinstance(c, event_pb2.Content) for c in contents):
        raise TypeError(f"a tool returns a str or a list of toold.v1.event_pb2.Content, not {type(given).__name__}")
    return contents


def text_of(error):
    return str(error) or type(error).__name__


def plain(event):
    """An event as a dict; SDKs have objects that become one."""
    for method in ("model_dump", "to_dict"):
        if hasattr(event, method):
            return getattr(event, method)()
    return event
