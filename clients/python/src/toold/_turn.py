"""Turns and single calls, and what waits for them."""

from __future__ import annotations

import asyncio
import json

from ._errors import ModelError
from ._given import plain
from .v1 import tool_pb2 as wire

#: How many events of a call are kept for who iterates over them, before progress is dropped.
_UNREAD = 1000


class Waiting:
    """Something whose end is waited for."""

    def __init__(self, session, id):
        self.id = id
        self._session = session
        self._over = asyncio.Event()
        self._error = None

    def _end(self, error=None):
        self._error = error
        self._over.set()

    async def _wait(self):
        await self._over.wait()
        if self._error is not None:
            raise self._error


class Turn(Waiting):
    """The tool calls of one message of a model."""

    def __init__(self, session, id):
        super().__init__(session, id)
        self.results = []  #: the ToolResults so far, as they came
        self.notices = []  #: what the daemon has noticed about the message, such as that it was cut off
        self._index = 0

    async def feed(self, event):
        """Passes on one event of the model's stream, or a whole message: a dict or its JSON, verbatim."""
        coming = self._session._feeding
        if coming not in (None, self) and not coming._over.is_set():
            raise RuntimeError("another turn is being fed: end or discard it first")
        self._session._feeding = self
        if not self._over.is_set():
            self._session._turns[self.id] = self
        text = event if isinstance(event, str) else json.dumps(plain(event))
        request = wire.ExecuteRequest(model_event=wire.ModelEvent(turn_id=self.id, index=self._index, json=text, format=self._session._format))
        self._index += 1
        await self._session._send(request)

    async def end(self):
        """Waits for the turn's calls, and returns the items to append to the conversation, in the order of the calls.

        They are those of the model's API: for Anthropic one message of the user, which holds the results, for OpenAI messages of the
        role tool or output items. Without a call the list is empty. A message that has not ended is ended: calls that are not whole
        never run. Raises ModelError if the model's API has reported an error, or the message cannot be read.
        """
        await self._close()
        return await self._items()

    async def _close(self):
        """Ends the message, so that the next one may come."""
        if self._index and not self._over.is_set():
            await self._session._send(wire.ExecuteRequest(end_turn=wire.EndTurn(turn_id=self.id)))
        if self._session._feeding is self:
            self._session._feeding = None

    async def _items(self):
        if self._index:
            await self._wait()
        for notice in self.notices:
            if notice.code in ("model_failed", "invalid_model_event"):
                raise ModelError(notice.code, notice.message)
        items = [json.loads(r.native_json) for r in sorted(self.results, key=lambda r: r.index) if r.native_json]
        if items and items[0].get("type") == "tool_result":
            return [{"role": "user", "content": items}]
        return items

    async def cancel(self, reason=""):
        """Stops the calls of the turn, which have their results all the same. reason is for the model."""
        await self._session._send(wire.ExecuteRequest(cancel=wire.Cancel(turn_id=self.id, reason=reason)))

    async def discard(self):
        """Throws the turn away, because the model's message broke off and will be asked for again."""
        await self._session._send(wire.ExecuteRequest(discard_turn=wire.DiscardTurn(turn_id=self.id)))
        self._end()

    def _take(self, event):
        if event.HasField("tool_result"):
            if all(r.tool_use_id != event.tool_result.tool_use_id for r in self.results):  # it may be sent again
                self.results.append(event.tool_result)
        elif event.HasField("notice"):
            self.notices.append(event.notice)
        elif event.HasField("turn_ended"):
            self._end()


class Call(Waiting):
    """One call. Its events can be iterated over once, and end with its result."""

    def __init__(self, session, id, turn):
        super().__init__(session, id)
        self._turn = turn
        self._events = asyncio.Queue()
        self._result = None

    async def result(self):
        """Waits for the ToolResult and returns it, whatever the outcome."""
        await self._wait()
        return self._result

    async def cancel(self, reason=""):
        """Stops the call; its result follows. A background task that it has left is stopped too."""
        await self._session._send(wire.ExecuteRequest(cancel=wire.Cancel(tool_use_id=self.id, turn_id=self._turn, reason=reason)))

    async def __aiter__(self):
        while True:
            event = await self._events.get()
            if event is None:
                if self._error is not None:
                    raise self._error
                return
            yield event

    def _take(self, event):
        if self._over.is_set() or event.HasField("progress") and self._events.qsize() >= _UNREAD:
            return  # output has all of it
        self._events.put_nowait(event)
        if event.HasField("tool_result"):
            self._result = event.tool_result
            self._end()

    def _end(self, error=None):
        super()._end(error)
        self._events.put_nowait(None)
