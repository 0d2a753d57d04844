"""As much of Anthropic's SDK as an agent's loop uses, with the same names."""

import json
import os

from _sse import Object, events
from anthropic.lib.tools import BetaAsyncToolRunner


class AsyncAnthropic:
    def __init__(self):
        self.messages = self
        self.beta = self

    def tool_runner(self, *, tools, messages, **request):
        return BetaAsyncToolRunner(self.stream, tools, messages, request)

    def stream(self, **request):
        return _Stream(events(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", os.environ["ANTHROPIC_API_KEY"], request))


class _Stream:
    def __init__(self, coming):
        self._coming, self._content, self._pieces = coming, [], []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    async def __aiter__(self):
        for event in self._coming:
            self._collect(event)
            yield event

    def _collect(self, event):
        if event.type == "content_block_start":
            self._content.append(Object(**vars(event.content_block)))
            self._pieces.append("")
        elif event.type == "content_block_delta":
            self._pieces[event.index] += getattr(event.delta, "text", "") + getattr(event.delta, "partial_json", "")
        elif event.type == "content_block_stop":
            block, all = self._content[event.index], self._pieces[event.index]
            if block.type == "text":
                block.text = all
            else:
                block.input = json.loads(all or "{}", object_hook=lambda o: Object(**o))

    async def get_final_message(self):
        return Object(role="assistant", content=self._content)
