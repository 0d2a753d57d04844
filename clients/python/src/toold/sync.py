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
from ._client import Tool

__all__ = ["Tool", "connect"]


def connect(address=None):
    """As toold.connect. The client has a thread of its own until it is closed."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="toold", daemon=True).start()
    try:
        return _Face(asyncio.run_coroutine_threadsafe(_client.connect(address), loop).result(), loop)
    except BaseException:
        loop.call_soon_threadsafe(loop.stop)
        raise


class _Face:
    """An object of the asyncio client, whose coroutines are waited for and whose iterators are plain ones."""

    def __init__(self, of, loop):
        self._of, self._loop = of, loop

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
        self._wait(self._of.close())
        if isinstance(self._of, _client.Client):
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _ask(self, method, *args, **kwargs):
        async def asked():
            given = method(*args, **kwargs)
            return await given if inspect.isawaitable(given) else given

        given = self._wait(asked())
        if inspect.isasyncgen(given):
            return self._each(given)
        return _Face(given, self._loop) if isinstance(given, (_client.Session, _client.Turn, _client.Call)) else given

    def _each(self, events):
        while True:
            try:
                yield self._wait(events.__anext__())
            except StopAsyncIteration:
                return

    def _wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
