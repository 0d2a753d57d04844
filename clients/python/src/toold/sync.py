"""The client without asyncio: the same names, whose methods wait. It is safe for use by several threads.

>>> with toold.sync.connect() as client, client.session() as session:
...     items = session.run(message)
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading

from . import _client
from ._errors import TooldError
from ._given import Tool
from ._session import Session
from ._turn import Call, Turn

__all__ = ["Tool", "connect"]


def connect(address=None):
    """As toold.connect. The client has a thread of its own until it is closed."""
    thread = _Thread()
    try:
        return _Face(thread.wait(_client.connect(address)), thread)
    except BaseException:
        thread.stop()
        raise


class _Thread(threading.Thread):
    """Runs coroutines for other threads, until it is stopped."""

    def __init__(self):
        super().__init__(name="toold", daemon=True)
        self.loop = asyncio.new_event_loop()
        self.start()

    def run(self):
        self.loop.run_forever()

    def wait(self, coroutine):
        if not self.is_alive():
            coroutine.close()
            raise TooldError("CANCELLED", "session_closed", "this client was closed")
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.join()


class _Face:
    """An object of the asyncio client, whose coroutines are waited for and whose iterators are plain ones."""

    def __init__(self, of, thread):
        self._of, self._thread = of, thread

    def __getattr__(self, name):
        value = getattr(self._of, name)
        return functools.partial(self._ask, value) if inspect.ismethod(value) else value

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __iter__(self):
        return self._each(self._of.__aiter__())

    def close(self):
        if self._thread.is_alive():
            self._thread.wait(self._of.close())
            if isinstance(self._of, _client.Client):
                self._thread.stop()

    def _ask(self, method, *args, **kwargs):
        async def asked():
            given = method(*args, **kwargs)
            return await given if inspect.isawaitable(given) else given

        given = self._thread.wait(asked())
        if inspect.isasyncgen(given):
            return self._each(given)
        return _Face(given, self._thread) if isinstance(given, (Session, Turn, Call)) else given

    def _each(self, events):
        while True:
            try:
                yield self._thread.wait(events.__anext__())
            except StopAsyncIteration:
                return
