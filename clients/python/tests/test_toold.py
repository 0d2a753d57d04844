"""What only the Python library has, against a real daemon; clients/conformance holds it against what all libraries do.

toold is on PATH; each test has a home of its own."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from contextlib import suppress

import toold
import toold.sync
from toold.v1 import event_pb2, session_pb2
from toold.v1 import tool_pb2 as wire


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

    async def test_readme(self):
        readme = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "README.md")
        with open(readme, encoding="utf-8") as f:
            text = f.read()
        with open("a file", "w", encoding="utf-8"):
            pass
        for heading, printed in ("A first result", "a file"), ("A tool of your own", "Oslo: 4 °C"):
            code = re.search(f"## {heading}\n\n```python\n(.*?)```", text, re.S).group(1)
            self.assertLessEqual(len(code.splitlines()), 12)
            done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=os.environ)
            self.assertEqual((done.stdout.strip(), done.stderr), (printed, ""))

    async def test_events_checkpoints_watch(self):
        async with await toold.connect() as client, await client.session(mode="bypassPermissions") as session:
            path = os.path.join(self.root, "file")
            call = await session.call("Write", {"file_path": path, "content": "new"}, timeout=60)
            kinds = [e.WhichOneof("event") async for e in call]
            self.assertEqual((kinds[0], kinds[-1]), ("accepted", "tool_result"))
            self.assertEqual([c.tool_use_id for c in await client.diff(session)], [call.id])
            self.assertIn("Bash", [t["name"] for t in await client.tools("anthropic", session)])
            seen = []
            async for event in client.watch(session, after=0):
                seen.append(event.seq)
                if event.tool_result.tool_use_id == call.id:
                    break
            self.assertEqual(seen, sorted(set(seen)))

    async def test_answers(self):
        """A question is answered whatever on_question does, and a yes only if it says so."""

        async def cancelled():
            raise asyncio.CancelledError

        def rule(name):
            return {"decision": "allow", "remember": [{"rule": "Bash(x *)", "list": name, "scope": "SCOPE_SESSION"}]}

        for answer, text, failed in [
            (lambda: True, "ran", False),
            (lambda: {"decision": "allow"}, "ran", False),
            (lambda: {"decision": wire.DECISION_ALLOW}, "ran", False),
            (lambda: {"decision": "allow", "updated_input": {"command": "echo >a; echo changed"}}, "changed", False),
            (lambda: rule("allow"), "ran", False),
            (lambda: rule("none"), 'the list "allow"', True),
            (lambda: False, "did not allow", False),
            (lambda: {"decision": "deny", "message": "Use another name."}, "Use another name.", False),
            (lambda: {"decision": wire.DECISION_DENY}, "did not allow", False),
            (lambda: None, "not None", True),
            (lambda: 1, "not 1", True),
            (lambda: "yes", "not 'yes'", True),
            (lambda: {}, "not {}", True),
            (lambda: {"decision": "allow", "remembers": []}, "remembers", True),
            (lambda: {"decision": []}, "could not ask", True),
            (lambda: sys.exit("no terminal"), "could not ask: no terminal", True),
            (cancelled, "could not ask", True),
        ]:
            logged = self.assertLogs("toold", "ERROR") if failed else suppress()
            async with await toold.connect() as client, await client.session(on_question=lambda _, answer=answer: answer()) as session:
                with logged:
                    result = await asyncio.wait_for((await session.call("Bash", {"command": "echo >a; echo ran"})).result(), 60)
                self.assertIn(text, result.content[0].text)

    async def test_results_of_own_tools(self):
        content = event_pb2.Content(text="a text")
        for given, text in [(lambda: "a text", "a text"), (lambda: [content], "a text"), (dict, "not dict"), (lambda: None, "not NoneType"), (sys.exit, "SystemExit")]:
            tool = toold.Tool("own", "A tool.", {"type": "object"}, lambda _, given=given: given(), read_only=True)
            async with await toold.connect() as client, await client.session(tools=[tool]) as session:
                result = await (await session.call("own")).result()
                self.assertIn(text, result.content[0].text)

    async def test_on_event_fails(self):
        async with await toold.connect() as client:
            async with await client.session(on_event=lambda event: event.HasField("accepted") and {}["accepted"]) as session:
                with self.assertRaises(KeyError):
                    await (await session.call("Bash", {"command": "echo"})).result()

    async def test_whole_messages(self):
        """They run beside each other, and one that nobody waits for any more is cancelled."""

        def message(id, command):
            block = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}
            return {"type": "message", "role": "assistant", "content": [block]}

        ended = asyncio.Queue()

        def see(event):
            if event.HasField("started") or event.HasField("tool_result"):
                ended.put_nowait((event.WhichOneof("event"), event.tool_result.error.code))

        async with await toold.connect() as client:
            async with await client.session(mode="bypassPermissions") as session:
                items = await asyncio.gather(*(session.run(message(id, "echo " + id)) for id in "abc"))
                self.assertEqual([item["content"][0]["content"][0]["text"] for (item,) in items], ["a\n", "b\n", "c\n"])
            async with await client.session(mode="bypassPermissions", on_event=see) as session:
                running = asyncio.create_task(session.run(message("d", "sleep 60")))
                self.assertEqual(await ended.get(), ("started", ""))
                running.cancel()
                self.assertEqual(await ended.get(), ("tool_result", "cancelled"))

    async def test_closed(self):
        """A session without a name ends with its close, also with that of its client; one with a name stays."""
        async with await toold.connect() as observer:
            async with await toold.connect() as client:
                async with await client.session() as left:
                    call = await left.call("Bash", {"command": "sleep 60"})
                with self.assertRaisesRegex(toold.TooldError, "closed"):
                    await call.result()
                with self.assertRaisesRegex(toold.TooldError, "closed"):
                    await left.call("Bash", {"command": "echo"})
                forgotten, named = await client.session(), await client.session(name="named", roots=["."])
            for session in (left, forgotten, named):
                state = await observer.session_service.GetSession(session_pb2.GetSessionRequest(session_id=session.id))
                self.assertEqual(state.session.closed, session is not named)

    async def test_daemon_stopped(self):
        """Whatever comes next starts it again."""
        async with await toold.connect() as client, await client.session(name="named", roots=["."], mode="bypassPermissions") as session:
            call = await session.call("Bash", {"command": "echo it"})
            await call.result()

            async def output():
                return b"".join([part async for part in client.output(session, call)])

            async def watch():
                async for event in client.watch(session, after=0):
                    return event.seq

            for use in (client.tools, client.session, client.info, output, watch, lambda: client.diff(session)):
                subprocess.run(["toold", "stop", "--now"], check=True, capture_output=True)
                self.assertIsNotNone(await use())

    async def test_undo(self):
        async with await toold.connect() as client, await client.session(mode="bypassPermissions") as session:
            calls = [await session.call("Write", {"file_path": os.path.join(self.root, name), "content": "x"}) for name in "abc"]
            for call in calls:
                await call.result()
            await client.undo(session)
            self.assertEqual(sorted(os.listdir(self.root)), ["a", "b"])
            await client.undo(session, calls[0])
            self.assertEqual(os.listdir(self.root), [])
            with self.assertRaisesRegex(toold.TooldError, "changed nothing"):
                await client.undo(session)

    async def test_wrong_arguments(self):
        """Errors say what is right."""
        async with await toold.connect() as client:
            for wrong, error in [
                (lambda: client.session(mode="yolo"), "mode is one of default, plan, acceptEdits"),
                (lambda: client.tools("claude"), "format is one of native, anthropic, openai"),
                (lambda: client.session(tools=[{"name": "own"}]), r"tools are toold\.Tool\(.*, not dict"),
                (lambda: toold.connect("/run/toold.sock"), r'"unix:/path" or "tcp://host:port", not \'/run/toold.sock\''),
            ]:
                with self.assertRaisesRegex((ValueError, TypeError, toold.TooldError), error):
                    await wrong()
            async with await client.session(roots=self.root) as session:
                self.assertEqual(list(session.attached.roots), [self.root])

    async def test_not_installed(self):
        os.environ["PATH"] = self.dir
        with self.assertRaisesRegex(toold.TooldError, "not installed"):
            await toold.connect()

    def test_sync(self):
        with toold.sync.connect() as client, client.session(mode="bypassPermissions") as session:
            call = session.call("Bash", {"command": "echo sync"})
            self.assertEqual([e.WhichOneof("event") for e in call][-1], "tool_result")
            self.assertEqual(b"".join(client.output(session, call)), b"sync\n")
            with self.assertRaises(toold.TooldError) as raised:
                client.diff("nope")
            self.assertEqual((raised.exception.code, raised.exception.reason), ("NOT_FOUND", "unknown_session"))
        for late in (client.tools, lambda: session.call("Bash", {"command": "echo"})):
            with self.assertRaisesRegex(toold.TooldError, "closed"):
                late()


if __name__ == "__main__":
    unittest.main()
