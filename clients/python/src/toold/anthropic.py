"""The daemon's tools for the tool runner of Anthropic's SDK, with asyncio.

>>> runner = anthropic.AsyncAnthropic().beta.messages.tool_runner(tools=await tools(client, session), ...)
"""

import uuid

from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, ToolError


async def tools(client, session):
    """The tools of a session. Results have the form that the daemon makes for the API, images and documents included."""
    return [_Tool(session, definition) for definition in await client.tools("anthropic", session)]


class _Tool(BetaAsyncBuiltinFunctionTool):
    def __init__(self, session, definition):
        self._session, self._definition = session, definition

    def to_dict(self):
        return self._definition

    async def call(self, input):
        block = {"type": "tool_use", "id": uuid.uuid4().hex, "name": self.name, "input": input}
        (user,) = await self._session.run({"type": "message", "role": "assistant", "content": [block]})
        (result,) = user["content"]
        if result["is_error"]:
            raise ToolError(result["content"])
        return result["content"]
