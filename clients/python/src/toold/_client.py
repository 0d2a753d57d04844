"""The asyncio client: a connection, sessions that survive the loss of their stream, turns and calls."""

from __future__ import annotations

import asyncio
import inspect
import ipaddress
import json
import logging
import os
import uuid
from contextlib import suppress

import grpc
import grpc.aio

from ._errors import ModelError, TooldError, error_of
from ._ledger import Ledger
from ._version import __version__
from .v1 import daemon_pb2, daemon_pb2_grpc, event_pb2, options_pb2, session_pb2, session_pb2_grpc
from .v1 import tool_pb2 as wire
from .v1 import tool_pb2_grpc

#: The forms in which definitions of tools are given.
FORMATS = {
    "native": wire.TOOL_FORMAT_NATIVE,
    "anthropic": wire.TOOL_FORMAT_ANTHROPIC,
    "openai": wire.TOOL_FORMAT_OPENAI,
    "responses": wire.TOOL_FORMAT_OPENAI_RESPONSES,
    "anthropic_native": wire.TOOL_FORMAT_ANTHROPIC_NATIVE,
    "agent_toolset": wire.TOOL_FORMAT_AGENT_TOOLSET,
    "mcp": wire.TOOL_FORMAT_MCP,
}

#: The names of the modes of permission, as settings have them.
MODES = {
    "default": options_pb2.PERMISSION_MODE_DEFAULT,
    "plan": options_pb2.PERMISSION_MODE_PLAN,
    "acceptEdits": options_pb2.PERMISSION_MODE_ACCEPT_EDITS,
    "dontAsk": options_pb2.PERMISSION_MODE_DONT_ASK,
    "bypassPermissions": options_pb2.PERMISSION_MODE_BYPASS_PERMISSIONS,
}

_DECISIONS = {True: wire.DECISION_ALLOW, "allow": wire.DECISION_ALLOW, False: wire.DECISION_DENY, "deny": wire.DECISION_DENY}

#: How many events of a call are kept for who iterates over them, before progress is dropped.
_UNREAD = 1000

#: How long closing a session waits for the end of what runs in it, in seconds. Ours.
_PATIENCE = 10

_WINDOWS = [("grpc.http2.bdp_probe", 0), ("grpc.max_receive_message_length", 16 << 20)]


async def connect(address=None):
    """Connects to the daemon of this user, and starts it with "toold start" if none answers.

    address, or else TOOLD_ADDRESS, is that of another one, which is not started: "unix:/path", or "tcp://host:port" with the token in
    the file that TOOLD_TOKEN_FILE names. Raises TooldError. The caller closes the client, or uses it with "async with".
    """
    client = Client(address)
    await client._dial()
    return client


class Client:
    """A connection to a daemon. Made by connect."""

    def __init__(self, address=None):
        self._address = address
        self._channel = None
        self._dialling = asyncio.Lock()
        self._sessions = set()  # those that were not closed

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def close(self):
        """Closes the sessions, as Session.close does, and the connection."""
        for session in list(self._sessions):
            await session.close()
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def _dial(self):
        async with self._dialling:
            if self._channel is None:
                address, metadata = await _address_of(self._address)
                interceptors = [_Token(metadata)] if metadata else None
                if metadata and not _is_loopback(address):
                    self._channel = grpc.aio.secure_channel(
                        address, grpc.ssl_channel_credentials(), options=_WINDOWS, interceptors=interceptors
                    )
                else:
                    self._channel = grpc.aio.insecure_channel(address, options=_WINDOWS, interceptors=interceptors)
            return self._channel

    async def _redial(self, channel):
        """Drops a connection whose daemon has gone, so that the next one starts it."""
        if channel is self._channel and channel is not None:
            self._channel = None
            await channel.close()
        return await self._dial()

    @property
    def tools_service(self):
        """The stub of ToolService, for what this class has no method for."""
        return tool_pb2_grpc.ToolServiceStub(self._channel)

    @property
    def session_service(self):
        """The stub of SessionService."""
        return session_pb2_grpc.SessionServiceStub(self._channel)

    @property
    def daemon_service(self):
        """The stub of DaemonService."""
        return daemon_pb2_grpc.DaemonServiceStub(self._channel)

    async def session(
        self, name="", roots=None, mode=None, env=None, on_question=None, tools=(), options=None, on_event=None, on_edit=None
    ):
        """Attaches to the session of that name, or to a new one without a name, which ends when it is closed.

        roots are its directories, or one, when it is new; without, a new one without a name has the current directory. mode is one
        of MODES; options an Options message in which mode is set. on_question is called with each Question and returns True, False, or
        a dict with "decision": "allow" or "deny", "message" for the model, "updated_input" as a dict, and other fields of an Answer; it
        may be a coroutine function. Anything else, and an exception, is logged and denies the call. Without it a call that would have
        to ask is denied. tools are Tools that run in this program. on_event is
        called with each event of the stream. on_edit(path, text) is called when a call has edited a buffer; without it there are none.
        """
        options = options or options_pb2.Options()
        if mode is not None:
            options.permission_mode = _meant(mode, MODES, "mode")
        if isinstance(roots, (str, os.PathLike)):
            roots = [roots]
        for tool in tools:
            if not isinstance(tool, Tool):
                raise TypeError(f"tools are toold.Tool(name, description, schema, run), not {type(tool).__name__}")
        attach = wire.Attach(
            session_id=name,
            roots=[os.path.abspath(root) for root in (roots if roots is not None else [] if name else ["."])],
            env=env if env is not None else {},
            client=wire.ClientInfo(name="toold-python", version=__version__),
            capabilities=wire.Capabilities(answers=on_question is not None, buffers=on_edit is not None, native_results=True),
            client_tools=[t._wire() for t in tools],
            options=options,
        )
        session = Session(self, attach, on_question, {t.name: t for t in tools}, on_event, on_edit)
        await session._open()
        self._sessions.add(session)
        return session

    async def tools(self, format="native", session=""):
        """Returns the definitions of a session's tools, or of a new one's, as the API of that format takes them."""
        request = wire.ListToolsRequest(session_id=_id(session), format=_meant(format, FORMATS, "format"))
        answer = await self._call(tool_pb2_grpc.ToolServiceStub, "ListTools", request)
        return list(answer.tools) if format == "native" else json.loads(answer.definitions_json)

    async def output(self, session, call, offset=0, follow=False):
        """Yields the raw output of a call, or of one of that id, as bytes, from an offset on; with follow until the call has ended."""
        request = wire.ReadOutputRequest(session_id=_id(session), tool_use_id=_id(call), offset=offset, follow=follow)
        async for part in self._stream(tool_pb2_grpc.ToolServiceStub, "ReadOutput", request):
            yield part.data

    async def watch(self, session, after=None):
        """Yields the events of a session, from the record after on, or live ones."""
        request = session_pb2.WatchRequest(session_id=_id(session), after_seq=after)
        async for answer in self._stream(session_pb2_grpc.SessionServiceStub, "Watch", request):
            yield answer.event

    async def diff(self, session, **which):
        """Returns the checkpoints of a session, newest first; which are fields of ListCheckpointsRequest."""
        request = session_pb2.ListCheckpointsRequest(session_id=_id(session), **which)
        return list((await self._call(session_pb2_grpc.SessionServiceStub, "ListCheckpoints", request)).checkpoints)

    async def undo(self, session, call=None, **what):
        """Puts back what was changed from a call on, or from what["turn"] on, by default from the newest turn whose changes are in place.

        what are fields of RestoreRequest, such as dry_run. Raises TooldError, such as NOT_FOUND if there is no such turn.
        """
        if call is not None:
            what["tool_use_id"] = _id(call)
        elif not what.keys() & {"turn", "tool_use_id"}:
            what["turn"] = await self._newest_change(session)
        request = session_pb2.RestoreRequest(session_id=_id(session), **what)
        return await self._call(session_pb2_grpc.SessionServiceStub, "Restore", request)

    async def _newest_change(self, session):
        page = session_pb2.ListCheckpointsResponse(next_page_token="")
        while True:
            request = session_pb2.ListCheckpointsRequest(session_id=_id(session), no_diffs=True, page_token=page.next_page_token)
            page = await self._call(session_pb2_grpc.SessionServiceStub, "ListCheckpoints", request)
            for change in page.checkpoints:
                if not (change.undone or change.restore or change.running):
                    return change.turn
            if not page.next_page_token:
                raise TooldError("NOT_FOUND", "", "the session has changed nothing that is not undone")

    async def info(self):
        """Returns what the daemon is, as GetInfoResponse."""
        return await self._call(daemon_pb2_grpc.DaemonServiceStub, "GetInfo", daemon_pb2.GetInfoRequest())

    async def _call(self, service, method, request, again=True):
        channel = await self._dial()
        try:
            return await getattr(service(channel), method)(request)
        except grpc.aio.AioRpcError as e:
            error = error_of(e)
        if error.code != "UNAVAILABLE" or not again:
            raise error
        await self._redial(channel)
        return await self._call(service, method, request, again=False)

    async def _stream(self, service, method, request, again=True):
        channel = await self._dial()
        try:
            async for message in getattr(service(channel), method)(request):
                again = False
                yield message
            return
        except grpc.aio.AioRpcError as e:
            error = error_of(e)
        if error.code != "UNAVAILABLE" or not again:
            raise error
        await self._redial(channel)
        async for message in self._stream(service, method, request, again=False):
            yield message


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


class Session:
    """A session of the daemon. While calls are under way or a turn is open, a lost stream is resumed, and nothing runs twice."""

    def __init__(self, client, attach, on_question, tools, on_event, on_edit):
        self.id = ""  #: its name
        self.epoch = ""  #: changes when numbers of records may have been given twice
        self.attached = None  #: the newest Attached message
        self._client, self._attach, self._on_question, self._tools = client, attach, on_question, tools
        self._on_event, self._on_edit = on_event, on_edit
        self._ledger = Ledger()
        self._outgoing = None  # of the stream; None: there is none
        self._ready = asyncio.Event()  # the stream is attached, or cannot be
        self._reader = None
        self._turns, self._running = {}, {}  # turns and single calls that have not ended, by their turn; calls of own tools
        self._asked, self._answers = set(), {}
        self._feeding = None  # the turn whose message is coming
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

        message is what the API has answered with, as a dict or JSON. See Turn.end.
        """
        turn = self.turn()
        await turn.feed(message)
        return await turn.end()

    def turn(self, id=None):
        """Begins a turn, which is fed with the events of a model's stream. id is its name; each needs its own."""
        return Turn(self, id or uuid.uuid4().hex)

    async def call(self, name, input=None, id=None, timeout=None):
        """Asks for one call, a turn of its own, and returns it. input is a dict, or JSON text; timeout is in seconds."""
        turn = uuid.uuid4().hex
        call = self._turns[turn] = Call(self, id or "call-" + turn)
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
            raise _closed()
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
            self._fail(_closed())
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
        elif kind == "save_buffers":  # the program saves its files when it will
            saved = wire.BuffersSaved(tool_use_id=id, turn_id=event.turn_id, unsaved=about.paths)
            self._start(self._say(buffers_saved=saved))
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
            answer.MergeFrom(_answer_of(await _given_by(self._on_question, question)))
        except BaseException as e:  # also if it exits
            if isinstance(e, asyncio.CancelledError) and self._reader.done():
                raise  # the session was closed
            logging.getLogger("toold").error("on_question failed, so its call is denied", exc_info=e)
            answer.decision, answer.message = wire.DECISION_DENY, f"The client could not ask: {_text(e)}"
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
            given = await _given_by(self._tools[use.name].run, json.loads(use.input_json or "{}"))
            result.content.extend(_content_of(given))
        except (Exception, SystemExit) as e:  # whatever it is, the model is told
            result.is_error = True
            result.content.append(event_pb2.Content(text=_text(e)))
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
        await _given_by(self._on_edit, edit.path, text.decode())


class _Waiting:
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


class Turn(_Waiting):
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
        text = event if isinstance(event, str) else json.dumps(_plain(event))
        request = wire.ExecuteRequest(model_event=wire.ModelEvent(turn_id=self.id, index=self._index, json=text))
        self._index += 1
        await self._session._send(request)

    async def end(self):
        """Waits for the turn's calls, and returns the items to append to the conversation, in the order of the calls.

        They are those of the model's API: for Anthropic one message of the user, which holds the results, for OpenAI messages of the
        role tool or output items. Without a call the list is empty. A message that has not ended is ended: calls that are not whole
        never run. Raises ModelError if the model's API has reported an error, or the message cannot be read.
        """
        if self._index and not self._over.is_set():
            await self._session._send(wire.ExecuteRequest(end_turn=wire.EndTurn(turn_id=self.id)))
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


class Call(_Waiting):
    """One call. Its events can be iterated over once, and end with its result."""

    def __init__(self, session, id):
        super().__init__(session, id)
        self._events = asyncio.Queue()
        self._result = None

    async def result(self):
        """Waits for the ToolResult and returns it, whatever the outcome."""
        await self._wait()
        return self._result

    async def cancel(self, reason=""):
        """Stops the call; its result follows. A background task that it has left is stopped too."""
        await self._session._send(wire.ExecuteRequest(cancel=wire.Cancel(tool_use_id=self.id, reason=reason)))

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


class _Token(grpc.aio.UnaryUnaryClientInterceptor, grpc.aio.UnaryStreamClientInterceptor, grpc.aio.StreamStreamClientInterceptor):
    """Shows the token with each request."""

    def __init__(self, metadata):
        self._metadata = metadata

    def _with(self, details):
        return details._replace(metadata=grpc.aio.Metadata(*(tuple(details.metadata or ()) + self._metadata)))

    async def intercept_unary_unary(self, proceed, details, request):
        return await proceed(self._with(details), request)

    async def intercept_unary_stream(self, proceed, details, request):
        return await proceed(self._with(details), request)

    async def intercept_stream_stream(self, proceed, details, requests):
        return await proceed(self._with(details), requests)


async def _address_of(address):
    """Returns where the daemon is, and the metadata that each request shows; it is started if it is on this machine."""
    address = address or os.environ.get("TOOLD_ADDRESS", "")
    if address.startswith("tcp://"):
        metadata = ()
        if file := os.environ.get("TOOLD_TOKEN_FILE"):
            metadata = (("authorization", "Bearer " + _token_in(file)),)
        return address[len("tcp://") :], metadata
    if address.startswith("unix:"):
        return address, ()
    if address:
        raise TooldError("INVALID_ARGUMENT", "", f'the address of a daemon is "unix:/path" or "tcp://host:port", not {address!r}')
    try:
        process = await asyncio.create_subprocess_exec("toold", "start", "--json", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    except FileNotFoundError:
        raise TooldError("UNAVAILABLE", "", "toold is not installed, or not on PATH") from None
    out, err = await process.communicate()
    if process.returncode:
        raise TooldError("UNAVAILABLE", "", err.decode(errors="replace").strip())
    return next(x["address"] for x in json.loads(out)["listeners"] if x["address"].startswith("unix:")), ()


def _is_loopback(address):
    host = address.rsplit(":", 1)[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token_in(file):
    """The token of a file: its only word, or the last word of its first line that is not a comment. Nobody else may read the file."""
    if os.stat(file).st_mode & 0o077:
        raise TooldError("INVALID_ARGUMENT", "", f"the token file {file} is open to others: run chmod 600 {file}")
    with open(file, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                return line.split()[-1]
    raise TooldError("INVALID_ARGUMENT", "", f"the token file {file} has no token")


async def _given_by(function, *arguments):
    """What a function of the program gives, which may wait: a coroutine function here, another one on a thread of its own."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    given = await asyncio.to_thread(function, *arguments)
    return await given if inspect.isawaitable(given) else given


def _answer_of(said):
    """The Answer in what on_question has returned. Nothing but a clear yes is one."""
    fields = dict(said) if isinstance(said, dict) else {"decision": said if isinstance(said, bool) else None}
    decision = fields.pop("decision", None)
    if decision not in _DECISIONS.keys() | _DECISIONS.values():
        raise TypeError(f'on_question returns True, False, or a dict whose "decision" is "allow" or "deny", not {said!r}')
    if "updated_input" in fields:
        fields["updated_input_json"] = json.dumps(fields.pop("updated_input"))
    return wire.Answer(decision=_DECISIONS.get(decision, decision), **fields)


def _content_of(given):
    """The Contents in what a tool has returned."""
    contents = [event_pb2.Content(text=given)] if isinstance(given, str) else given
    if not isinstance(contents, (list, tuple)) or not all(isinstance(c, event_pb2.Content) for c in contents):
        raise TypeError(f"a tool returns a str or a list of toold.v1.event_pb2.Content, not {type(given).__name__}")
    return contents


def _meant(word, table, what):
    """What a word stands for."""
    if word not in table:
        raise ValueError(f"{what} is one of {', '.join(table)}, not {word!r}")
    return table[word]


def _closed():
    return TooldError("CANCELLED", "session_closed", "this client has closed the session")


def _id(of):
    """The id of a session or a call, or what is one."""
    return getattr(of, "id", of)


def _text(error):
    return str(error) or type(error).__name__


def _detail(notice, name):
    """What a notice says beside its message, such as the turn that it is about; empty: nothing."""
    return notice.details[name] if name in notice.details else ""


def _plain(event):
    """An event as a dict; SDKs have objects that become one."""
    for method in ("model_dump", "to_dict"):
        if hasattr(event, method):
            return getattr(event, method)()
    return event

