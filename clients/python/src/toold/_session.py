"""Sessions, which survive the loss of their stream."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from contextlib import suppress

import grpc
import grpc.aio

from ._errors import TooldError, error_of
from ._given import answer_of, content_of, given_by, text_of
from ._ledger import Ledger
from ._turn import Call, Turn
from .v1 import event_pb2, session_pb2, tool_pb2_grpc
from .v1 import tool_pb2 as wire

#: How long closing a session waits for the end of what runs in it, in seconds. Ours.
_PATIENCE = 10


class Session:
    """A session of the daemon. While calls are under way or a turn is open, a lost stream is resumed, and nothing runs twice."""

    def __init__(self, client, attach, on_question, tools, on_event, on_edit, on_save, format):
        self.id = ""  #: its name
        self.epoch = ""  #: changes when numbers of records may have been given twice
        self.attached = None  #: the newest Attached message
        self._client, self._attach, self._on_question, self._tools = client, attach, on_question, tools
        self._on_event, self._on_edit, self._on_save, self._format = on_event, on_edit, on_save, format
        self._ledger = Ledger()
        self._outgoing = None  # of the stream; None: there is none
        self._ready = asyncio.Event()  # the stream is attached, or cannot be
        self._reader = None
        self._turns, self._running = {}, {}  # turns and single calls that have not ended, by their turn; calls of own tools
        self._asked, self._answers = set(), {}
        self._feeding = None  # the turn whose message is coming
        self._whole = asyncio.Lock()  # held while a whole message is sent
        self._failed = None
        self._closed = False
        self._work = set()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    # What a program asks for.

    async def run(self, message):
        """Runs the tool calls of a model's whole message, and returns the items to append to the conversation.

        message is what the API has answered with, as a dict or JSON. See Turn.end. It may run beside others; when it is cancelled, so
        are its calls.
        """
        turn = self.turn()
        async with self._whole:
            await turn.feed(message)
            await turn._close()
        try:
            return await turn._items()
        except asyncio.CancelledError:
            with suppress(TooldError):
                await turn.cancel()
            raise

    def turn(self, id=None):
        """Begins a turn, which is fed with the events of a model's stream. id is its name; each needs its own."""
        return Turn(self, id or uuid.uuid4().hex)

    async def call(self, name, input=None, id=None, timeout=None):
        """Asks for one call, a turn of its own, and returns it. input is a dict, or JSON text; timeout is in seconds."""
        turn = uuid.uuid4().hex
        call = self._turns[turn] = Call(self, id or "call-" + turn, turn)
        use = wire.ToolUse(id=call.id, turn_id=turn, name=name, input_json=input if isinstance(input, str) else json.dumps(input or {}))
        if timeout is not None:
            use.timeout.FromNanoseconds(int(timeout * 1e9))
        await self._send(wire.ExecuteRequest(tool_use=use))
        await self._send(wire.ExecuteRequest(end_turn=wire.EndTurn(turn_id=turn)))
        return call

    async def interrupt(self, reason=""):
        """Stops every open turn, but lets calls finish whose tool is not interruptible."""
        await self._send(wire.ExecuteRequest(interrupt=wire.Interrupt(reason=reason)))

    async def buffer(self, path, text):
        """Offers the unsaved text of a file, in place of what is on the disk; None: not any more. It needs on_edit."""
        if text is None:
            closed = self._ledger.buffers[path] = wire.BufferClosed(path=path)
            await self._send(wire.ExecuteRequest(buffer_closed=closed))
        else:
            await self._send(wire.ExecuteRequest(buffer_changed=self._ledger.buffer(path, text)))

    async def close(self):
        """Leaves the session, and ends it if it has no name.

        In one with a name, Options.on_disconnect decides what becomes of calls that are under way. Who waits for them gets a TooldError.
        """
        if self._closed:
            return
        self._closed = True
        self._client._sessions.discard(self)
        is_ours = not self._attach.session_id and getattr(self._failed, "reason", "") != "displaced"
        self._reader.cancel()
        with suppress(asyncio.CancelledError, TooldError):
            await self._reader
        for task in list(self._work):
            task.cancel()
        if is_ours and self._client._channel is not None:
            with suppress(grpc.aio.AioRpcError):  # then it has ended, or ends as one that was lost
                await self._client.session_service.CloseSession(session_pb2.CloseSessionRequest(session_id=self.id), timeout=_PATIENCE)

    # The stream.

    async def _open(self):
        self._ready.clear()
        self._failed = None
        self._reader = asyncio.create_task(self._read())
        await self._ready.wait()
        if self._failed is not None:
            raise self._failed

    async def _send(self, request):
        if self._closed:
            raise closed()
        self._ledger.add(request)
        if self._reader.done():
            await self._open()  # which sends what is kept
        elif self._outgoing is not None:
            self._outgoing.put_nowait(request)

    async def _say(self, **message):
        """Sends what is not sent again, if there is a stream."""
        if self._outgoing is not None:
            self._outgoing.put_nowait(wire.ExecuteRequest(**message))

    async def _read(self):
        """Reads streams until one ends that is not resumed."""
        try:
            while True:
                channel = await self._client._dial()
                try:
                    await self._one_stream(channel)
                    error = TooldError("UNAVAILABLE", "", "the stream has ended")
                except grpc.aio.AioRpcError as e:
                    error = error_of(e)
                except TooldError as e:
                    error = e
                finally:
                    self._outgoing = None
                if error.code == "OUT_OF_RANGE" and self.id and self._ledger.restart():
                    continue
                if error.code != "UNAVAILABLE" or not (self._ledger.resumable() if self.id else self._ledger.first()):
                    raise error
                await self._client._redial(channel)
        except asyncio.CancelledError:
            self._fail(closed())
            raise
        except Exception as e:  # also of on_event: whoever waits is told
            self._fail(e)
        finally:
            self._ready.set()

    async def _one_stream(self, channel):
        outgoing = asyncio.Queue()
        stream = tool_pb2_grpc.ToolServiceStub(channel).Execute()

        async def write():
            with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # the reader has the reason
                await stream.write(wire.ExecuteRequest(attach=self._next_attach()))
                while True:
                    await stream.write(await outgoing.get())

        writer = asyncio.create_task(write())
        try:
            while (event := await stream.read()) is not grpc.aio.EOF:
                if event.HasField("attached"):
                    if self.epoch not in ("", event.attached.epoch) and self._ledger.last:
                        raise TooldError("OUT_OF_RANGE", "", "the records have other numbers now")
                    self._attached(event.attached, outgoing)
                self._take(event)
            if await stream.code() != grpc.StatusCode.OK:
                raise grpc.aio.AioRpcError(
                    await stream.code(), await stream.initial_metadata(), await stream.trailing_metadata(), details=await stream.details()
                )
        finally:
            writer.cancel()
            stream.cancel()

    def _attached(self, hello, outgoing):
        if not self.id:
            self.id = hello.session_id
            self._ledger.begin(self._attach, hello)
        self.attached, self.epoch = hello, hello.epoch
        for request in self._ledger.unconfirmed():
            outgoing.put_nowait(request)
        self._outgoing = outgoing
        self._ready.set()

    def _next_attach(self):
        if not self.id:
            return self._attach
        again = wire.Attach(session_id=self.id, after_seq=self._ledger.last)
        for field in ("client", "capabilities"):
            getattr(again, field).CopyFrom(getattr(self._attach, field))
        again.env.update(self._attach.env)
        again.client_tools.extend(self._attach.client_tools)
        return again

    def _fail(self, error):
        self._failed = error
        self._ledger.forget()
        turns, self._turns = self._turns, {}
        for turn in turns.values():
            turn._end(error)

    def _take(self, event):
        """Passes an event on to whom it concerns."""
        if not self._ledger.confirm(event):
            return
        if self._on_event is not None:
            self._on_event(event)
        kind = event.WhichOneof("event")
        about = getattr(event, kind)
        id = getattr(about, "tool_use_id", "")
        if (turn := self._turns.get(event.turn_id or kind == "notice" and _detail(about, "turn_id"))) is not None:
            turn._take(event)
        if kind == "question" and about.question_id not in self._asked:
            self._asked.add(about.question_id)
            self._start(self._answer(about))
        elif kind == "question" and about.question_id in self._answers:  # asked again after a break
            self._start(self._say(answer=self._answers[about.question_id]))
        elif kind == "notice" and _detail(about, "question_id") in self._answers:
            self._start(self._refused(about))
        elif kind == "question_withdrawn" or kind == "started":
            self._answers.pop(getattr(about, "question_id", ""), None)
        elif kind == "client_tool_use":
            run = self._running.get((event.turn_id, id))
            if run is None:
                self._running[event.turn_id, id] = self._start(self._run(event.turn_id, about))
            elif run.done():  # it is asked for again after a break
                self._start(self._say(client_tool_result=run.result()))
        elif kind in ("client_tool_cancel", "tool_result") and (event.turn_id, id) in self._running:
            self._running.pop((event.turn_id, id)).cancel()
        elif kind == "buffer_edit":
            self._start(self._edit(event.turn_id, about))
        elif kind == "save_buffers":
            self._start(self._save(event.turn_id, about))
        if kind == "turn_ended":
            self._turns.pop(event.turn_id, None)

    def _start(self, coroutine):
        task = asyncio.create_task(coroutine)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    async def _answer(self, question):
        """Asks the program, and answers in any case: the call waits for it."""
        if self._on_question is None:
            return
        answer = wire.Answer(question_id=question.question_id, input_digest=question.input_digest)
        try:
            answer.MergeFrom(answer_of(await given_by(self._on_question, question)))
        except BaseException as e:  # also if it exits
            if isinstance(e, asyncio.CancelledError) and self._reader.done():
                raise  # the session was closed
            logging.getLogger("toold").error("on_question failed, so its call is denied", exc_info=e)
            answer.decision, answer.message = wire.DECISION_DENY, f"The client could not ask: {text_of(e)}"
        self._answers[question.question_id] = answer
        await self._say(answer=answer)

    async def _refused(self, notice):
        """Denies what an answer would have allowed that the daemon does not take, such as one with a rule that is none."""
        answer = self._answers[_detail(notice, "question_id")]
        if answer.decision == wire.DECISION_DENY and not answer.remember:
            return
        logging.getLogger("toold").error("the answer was refused, so its call is denied: %s", notice.message)
        denial = wire.Answer(question_id=answer.question_id, input_digest=answer.input_digest, decision=wire.DECISION_DENY)
        denial.message = f"The client's answer was refused: {notice.message}"
        self._answers[answer.question_id] = denial
        await self._say(answer=denial)

    async def _run(self, turn, use):
        result = wire.ClientToolResult(tool_use_id=use.tool_use_id, turn_id=turn)
        try:
            given = await given_by(self._tools[use.name].run, json.loads(use.input_json or "{}"))
            result.content.extend(content_of(given))
        except (Exception, SystemExit) as e:  # whatever it is, the model is told
            result.is_error = True
            result.content.append(event_pb2.Content(text=text_of(e)))
        await self._send(wire.ExecuteRequest(client_tool_result=result))
        return result

    async def _edit(self, turn, edit):
        """Makes a call's edits in a buffer, and confirms them."""
        done = wire.BufferEdited(tool_use_id=edit.tool_use_id, turn_id=turn)
        buffer = self._ledger.buffers.get(edit.path)
        if getattr(buffer, "version", None) != edit.version:
            done.error = "the text has changed meanwhile"
            return await self._say(buffer_edited=done)
        text = buffer.content.encode()
        for e in edit.edits:
            text = text[: e.offset] + e.text.encode() + text[e.offset + e.length :]
        done.version = self._ledger.buffer(edit.path, text.decode()).version
        await self._say(buffer_edited=done)
        await given_by(self._on_edit, edit.path, text.decode())

    async def _save(self, turn, save):
        """Has the program save buffers, and withdraws those that it has saved."""
        done = wire.BuffersSaved(tool_use_id=save.tool_use_id, turn_id=turn)
        for path in save.paths:
            buffer = self._ledger.buffers.get(path)
            if not isinstance(buffer, wire.BufferChanged):
                continue
            if self._on_save is None:
                done.unsaved.append(path)
                continue
            try:
                await given_by(self._on_save, path, buffer.content)
            except Exception as e:
                logging.getLogger("toold").error("on_save failed, so a call sees %s as it is on the disk", path, exc_info=e)
                done.unsaved.append(path)
                continue
            if self._ledger.buffers[path] is buffer:  # not changed since
                await self.buffer(path, None)
        await self._say(buffers_saved=done)


def closed():
    return TooldError("CANCELLED", "session_closed", "this client has closed the session")


def _detail(notice, name):
    """What a notice says beside its message, such as the turn that it is about; empty: nothing."""
    return notice.details[name] if name in notice.details else ""
