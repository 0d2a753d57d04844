"""The asyncio client: a connection to the daemon."""

from __future__ import annotations

import asyncio
import json
import os

import grpc
import grpc.aio

from ._address import open_channel
from ._errors import TooldError, error_of
from ._given import Tool
from ._session import Session
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

#: The forms of a model's messages, which the daemon finds out, but for those with tools of the model's own.
MODEL_FORMATS = {
    "anthropic": event_pb2.MODEL_FORMAT_ANTHROPIC,
    "openai": event_pb2.MODEL_FORMAT_OPENAI_CHAT,
    "responses": event_pb2.MODEL_FORMAT_OPENAI_RESPONSES,
    "anthropic_native": event_pb2.MODEL_FORMAT_ANTHROPIC_NATIVE,
    "agent_toolset": event_pb2.MODEL_FORMAT_AGENT_TOOLSET,
}

#: The names of the modes of permission, as settings have them.
MODES = {
    "default": options_pb2.PERMISSION_MODE_DEFAULT,
    "plan": options_pb2.PERMISSION_MODE_PLAN,
    "acceptEdits": options_pb2.PERMISSION_MODE_ACCEPT_EDITS,
    "dontAsk": options_pb2.PERMISSION_MODE_DONT_ASK,
    "bypassPermissions": options_pb2.PERMISSION_MODE_BYPASS_PERMISSIONS,
}


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
                self._channel = await open_channel(self._address)
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
        self, name="", roots=None, mode=None, env=None, on_question=None, tools=(), options=None, on_event=None, on_edit=None, on_save=None, format=None
    ):
        """Attaches to the session of that name, or to a new one without a name, which ends when it is closed.

        roots are its directories, or one, when it is new: the current one, unless they are set; [] joins one that exists. mode is one
        of MODES; options an Options message in which mode is set. on_question is called with each Question and returns True, False, or
        a dict with "decision": "allow" or "deny", "message" for the model, "updated_input" as a dict, and other fields of an Answer; it
        may be a coroutine function. Anything else, and an exception, is logged and denies the call. Without it a call that would have
        to ask is denied. tools are Tools that run in this program. on_event is
        called with each event of the stream. on_edit(path, text) is called when a call has edited a buffer; without it there are none.
        on_save(path, text) writes a buffer's text to its file, because a program of a call is about to read the disk: the call waits 2 s.
        When it has returned, the text is withdrawn. Without it, or when it raises, the call's result says what was not saved.
        format is one of MODEL_FORMATS: the form of what a model's API returns; None: it is found out.
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
            roots=[os.path.abspath(root) for root in (roots if roots is not None else ["."])],
            env=env if env is not None else {},
            client=wire.ClientInfo(name="toold-python", version=__version__),
            capabilities=wire.Capabilities(answers=on_question is not None, buffers=on_edit is not None, native_results=True),
            client_tools=[t._wire() for t in tools],
            options=options,
        )
        form = event_pb2.MODEL_FORMAT_UNSPECIFIED if format is None else _meant(format, MODEL_FORMATS, "format")
        session = Session(self, attach, on_question, {t.name: t for t in tools}, on_event, on_edit, on_save, form)
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


def _meant(word, table, what):
    """What a word stands for."""
    if word not in table:
        raise ValueError(f"{what} is one of {', '.join(table)}, not {word!r}")
    return table[word]


def _id(of):
    """The id of a session or a call, or what is one."""
    return getattr(of, "id", of)
