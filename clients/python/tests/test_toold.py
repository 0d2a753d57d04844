"""The library against a real daemon. toold is on PATH; each test has a home of its own."""

import asyncio
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import toold
import toold.sync
from toold.v1 import event_pb2
from toold.v1 import tool_pb2 as wire

ANTHROPIC = [
    {"type": "message_start", "message": {"id": "msg_1"}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "one", "name": "Bash", "input": {}}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"command":'}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '"echo 1"}'}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "two", "name": "Bash", "input": {"command": "echo 2"}}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
]


def text_of(result):
    return "".join(c.text for c in result.content)


class Home(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="toold-py-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.root = os.path.join(self.dir, "root")
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        for name in ("run", "state", "config", "root"):
            os.mkdir(os.path.join(self.dir, name), 0o700)
        os.environ.update(
            XDG_RUNTIME_DIR=self.dir + "/run", XDG_STATE_HOME=self.dir + "/state", XDG_CONFIG_HOME=self.dir + "/config", PWD=self.root
        )
        os.environ.pop("TOOLD_ADDRESS", None)
        program = shutil.which("toold")
        self.addCleanup(lambda: subprocess.run([program, "stop", "--now"], check=False, capture_output=True))
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.root)

    async def join(self, **more):
        client = await toold.connect()
        self.addAsyncCleanup(client.close)
        session = await client.session(**{"mode": "bypassPermissions", **more})
        self.addAsyncCleanup(session.close)
        return client, session


class Turns(Home):
    async def test_whole_messages(self):
        _, session = await self.join()
        block = {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "echo hi"}}
        function = {"id": "b", "type": "function", "function": {"name": "Bash", "arguments": '{"command":"echo hi"}'}}
        item = {"type": "function_call", "call_id": "c", "name": "Bash", "arguments": '{"command":"exit 3"}'}
        [said] = await session.run({"id": "m", "role": "assistant", "content": [block]})
        self.assertEqual(said["role"], "user")
        self.assertEqual(
            said["content"], [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "hi\n"}], "is_error": False}]
        )
        chat = json.dumps({"choices": [{"message": {"tool_calls": [function]}}]})
        self.assertEqual(await session.run(chat), [{"role": "tool", "tool_call_id": "b", "content": "hi\n"}])
        [output] = await session.run({"id": "r", "output": [item]})
        self.assertEqual((output["type"], output["call_id"]), ("function_call_output", "c"))
        self.assertIn("3", output["output"])
        self.assertEqual(await session.run({"role": "assistant", "content": [{"type": "text", "text": "Done."}]}), [])

    async def test_stream(self):
        _, session = await self.join()
        turn = session.turn()
        for event in ANTHROPIC:
            await turn.feed(event)
        [said] = await turn.end()
        self.assertEqual([c["content"][0]["text"] for c in said["content"]], ["1\n", "2\n"])

    async def test_call_runs_before_the_message_has_ended(self):
        _, session = await self.join()
        turn = session.turn()
        for event in ANTHROPIC[:5]:
            await turn.feed(event)
        while not turn.results:
            await asyncio.sleep(0.01)
        self.assertEqual([r.tool_use_id for r in turn.results], ["one"])
        [said] = await turn.end()  # the model's stream broke off
        self.assertEqual(len(said["content"]), 1)

    async def test_cut_off(self):
        _, session = await self.join()
        turn = session.turn()
        for event in ANTHROPIC[:3] + [{"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}, {"type": "message_stop"}]:
            await turn.feed(event)
        self.assertEqual(await turn.end(), [])
        self.assertEqual([n.code for n in turn.notices], ["model_cut_off"])

    async def test_failure_of_the_model(self):
        _, session = await self.join()
        turn = session.turn()
        await turn.feed(ANTHROPIC[0])
        await turn.feed({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
        with self.assertRaisesRegex(toold.ModelError, "Overloaded"):
            await turn.end()
        [said] = await session.run({"content": [{"type": "tool_use", "id": "x", "name": "LS", "input": {}}]})
        self.assertEqual(len(said["content"]), 1)

    async def test_discard(self):
        _, session = await self.join()
        turn = session.turn()
        for event in ANTHROPIC[:5]:
            await turn.feed(event)
        await turn.discard()
        again = session.turn()
        for event in ANTHROPIC:  # with the same ids
            await again.feed(event)
        [said] = await again.end()
        self.assertEqual(len(said["content"]), 2)


class Calls(Home):
    async def test_events_and_result(self):
        _, session = await self.join()
        call = await session.call("Bash", {"command": "echo one; sleep 0.3; echo two"})
        kinds = [e.WhichOneof("event") async for e in call]
        self.assertEqual((kinds[0], kinds[-1]), ("accepted", "tool_result"))
        self.assertIn("progress", kinds)
        self.assertEqual(text_of(await call.result()), "one\ntwo\n")

    async def test_failures_are_results(self):
        _, session = await self.join()
        self.assertEqual((await (await session.call("Bash", {"command": "exit 3"})).result()).outcome, event_pb2.OUTCOME_ERROR)
        self.assertEqual((await (await session.call("Nope")).result()).error.code, "unknown_tool")
        slow = await session.call("Bash", {"command": "sleep 60"}, timeout=0.2)
        self.assertEqual((await slow.result()).outcome, event_pb2.OUTCOME_TIMED_OUT)

    async def test_cancel_and_interrupt(self):
        _, session = await self.join()
        call = await session.call("Bash", {"command": "sleep 60"})
        async for event in call:
            if event.HasField("started"):
                await call.cancel("enough")
        self.assertEqual((await call.result()).outcome, event_pb2.OUTCOME_CANCELLED)
        first, second = await session.call("Bash", {"command": "sleep 1"}), await session.call("Write", {"file_path": "x", "content": ""})
        async for event in first:
            if event.HasField("started"):
                break
        await session.interrupt("enough")  # a command finishes, what waits never starts
        self.assertEqual((await first.result()).outcome, event_pb2.OUTCOME_OK)
        self.assertEqual((await second.result()).outcome, event_pb2.OUTCOME_CANCELLED)

    async def test_repeated_id(self):
        _, session = await self.join()
        await (await session.call("Bash", {"command": "echo 1"}, id="x")).result()
        with self.assertRaises(toold.TooldError) as raised:
            await (await session.call("Bash", {"command": "echo 2"}, id="x")).result()
        self.assertEqual(raised.exception.reason, "duplicate_id")

    async def test_output_diff_undo_watch(self):
        client, session = await self.join()
        path = os.path.join(self.root, "file")
        call = await session.call("Write", {"file_path": path, "content": "new"})
        self.assertFalse((await call.result()).is_error)
        self.assertEqual([c.tool_use_id for c in await client.diff(session)], [call.id])
        self.assertEqual(list((await client.undo(session, tool_use_id=call.id)).restored), [path])
        self.assertFalse(os.path.exists(path))
        said = await session.call("Bash", {"command": "echo out"})
        await said.result()
        self.assertEqual(b"".join([part async for part in client.output(session, said.id)]), b"out\n")
        seen = []
        async for event in client.watch(session, after=0):
            seen.append(event.seq)
            if event.tool_result.tool_use_id == said.id:
                break
        self.assertEqual(seen, sorted(set(seen)))


class Asking(Home):
    async def test_answers(self):
        asked = []

        async def ask(question):
            asked.append(question.title)
            return answers.pop(0)

        answers = [True, False, {"decision": wire.DECISION_DENY, "message": "Use another name."}]
        _, session = await self.join(mode="default", on_question=ask)
        outcomes = []
        for name in ("a", "b", "c"):
            result = await (await session.call("Write", {"file_path": os.path.join(self.root, name), "content": "x"})).result()
            outcomes.append(result.outcome)
        self.assertEqual(outcomes, [event_pb2.OUTCOME_OK, event_pb2.OUTCOME_DENIED, event_pb2.OUTCOME_DENIED])
        self.assertIn("Use another name.", text_of(result))
        self.assertEqual(len(asked), 3)

    async def test_nobody_answers(self):
        _, session = await self.join(mode="default")
        result = await (await session.call("Write", {"file_path": os.path.join(self.root, "a"), "content": "x"})).result()
        self.assertEqual((result.outcome, result.error.code), (event_pb2.OUTCOME_DENIED, "cannot_ask"))

    async def test_own_tools(self):
        stopped = asyncio.Event()

        async def wait(_):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                stopped.set()
                raise

        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        tools = [
            toold.Tool("double", "Doubles.", schema, lambda i: str(2 * i["n"]), read_only=True),
            toold.Tool("wait", "Waits.", schema, wait, read_only=True),
        ]
        client, session = await self.join(tools=tools)
        self.assertIn("double", [t["name"] for t in await client.tools("anthropic", session)])
        self.assertEqual(text_of(await (await session.call("double", {"n": 21})).result()), "42")
        wrong = await (await session.call("double", {})).result()
        self.assertEqual((wrong.outcome, text_of(wrong)), (event_pb2.OUTCOME_ERROR, "'n'"))
        call = await session.call("wait", {})
        async for event in call:
            if event.HasField("started"):
                await call.cancel()
        await asyncio.wait_for(stopped.wait(), 30)


class Breaks(Home):
    async def test_killed_daemon(self):
        client, session = await self.join()
        call = await session.call("Bash", {"command": "echo begun; sleep 60"})
        async for event in call:
            if event.HasField("progress"):
                os.kill((await client.info()).pid, signal.SIGKILL)
                break
        self.assertEqual((await call.result()).outcome, event_pb2.OUTCOME_INTERRUPTED)
        self.assertEqual(text_of(await (await session.call("Bash", {"command": "echo alive"})).result()), "alive\n")

    async def test_killed_while_idle(self):
        client, session = await self.join(name="stays")
        await (await session.call("Bash", {"command": "echo 1"})).result()
        os.kill((await client.info()).pid, signal.SIGKILL)
        self.assertEqual(text_of(await (await session.call("Bash", {"command": "echo alive"})).result()), "alive\n")

    async def test_cut_connections(self):
        """Streams are cut after so many bytes of the daemon's: every call has one result, and every record comes once."""
        direct, _ = await self.join()
        address = (await direct.info()).listeners[0].address
        random.seed(1)
        for cut in [1, 9, 24, 60, 150, 400, 700, 1000, 1300, 1600, 2000, 2500] + random.sample(range(3000), 12):
            proxy = Proxy(address[len("unix:") :], os.path.join(self.dir, "proxy"), cut)
            await proxy.start()
            client = await toold.connect("unix:" + proxy.path)
            try:
                session = await client.session(name=f"cut{cut}", mode="bypassPermissions")
                proxy.cut(2)
                turn = session.turn()
                for event in ANTHROPIC:
                    await turn.feed(event)
                [said] = await turn.end()
                self.assertEqual([c["content"][0]["text"] for c in said["content"]], ["1\n", "2\n"], cut)
                self.assertEqual(sorted(r.tool_use_id for r in turn.results), ["one", "two"], cut)
                await session.close()
            finally:
                await client.close()
                await proxy.stop()


class Proxy:
    """Passes connections on, and cuts each after so many bytes of the daemon's while there are cuts left."""

    def __init__(self, to, path, after):
        self.to, self.path, self.after, self.cuts = to, path, after, 0

    def cut(self, cuts):
        self.cuts = cuts

    async def start(self):
        self.server = await asyncio.start_unix_server(self.serve, self.path)

    async def stop(self):
        self.server.close()
        os.remove(self.path)

    async def serve(self, reader, writer):
        out, into = await asyncio.open_unix_connection(self.to)
        left = self.after

        async def pump(source, sink, counted):
            nonlocal left
            try:
                while data := await source.read(65536):
                    if counted and self.cuts > 0:
                        if left <= len(data):
                            self.cuts -= 1
                            sink.write(data[:left])
                            break
                        left -= len(data)
                    sink.write(data)
                    await sink.drain()
            except ConnectionError:
                pass
            finally:
                writer.close()
                into.close()

        await asyncio.gather(pump(reader, into, False), pump(out, writer, True))


class Errors(Home):
    async def test_typed(self):
        client, _ = await self.join()
        with self.assertRaises(toold.TooldError) as raised:
            await client.diff("nope")
        self.assertEqual((raised.exception.code, raised.exception.reason), ("NOT_FOUND", "unknown_session"))

    async def test_no_daemon(self):
        with self.assertRaises(toold.TooldError) as raised:
            await (await toold.connect("unix:" + self.dir + "/nothing")).info()
        self.assertEqual(raised.exception.code, "UNAVAILABLE")
        os.environ["PATH"] = self.dir
        with self.assertRaisesRegex(toold.TooldError, "not installed"):
            await toold.connect()


class Sync(Home):
    def test_readme(self):
        readme = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "README.md")
        with open(readme, encoding="utf-8") as f:
            code = re.search(r"## A first result\n\n```python\n(.*?)```", f.read(), re.S).group(1)
        self.assertLessEqual(len(code.splitlines()), 10)
        with open("a file", "w", encoding="utf-8"):
            pass
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=os.environ)
        self.assertEqual((done.stdout.strip(), done.stderr), ("a file", ""))

    def test_sync(self):
        with toold.sync.connect() as client, client.session(mode="bypassPermissions") as session:
            call = session.call("Bash", {"command": "echo sync"})
            self.assertEqual([e.WhichOneof("event") for e in call][-1], "tool_result")
            self.assertEqual(text_of(call.result()), "sync\n")
            self.assertEqual(b"".join(client.output(session.id, call.id)), b"sync\n")
            turn = session.turn()
            for event in ANTHROPIC:
                turn.feed(event)
            self.assertEqual(len(turn.end()[0]["content"]), 2)
            with self.assertRaises(toold.TooldError):
                client.diff("nope")


if __name__ == "__main__":
    unittest.main()
