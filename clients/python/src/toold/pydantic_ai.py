"""The daemon's tools for Pydantic AI, with asyncio.

>>> agent = Agent("anthropic:claude-opus-5-5", toolsets=[await toolset(client, session)])
"""

import base64

from pydantic_ai import BinaryContent, FunctionToolset, Tool

from ._adapter import parts_of, result_of


async def toolset(client, session):
    """The tools of a session. Images go to the model as images; a call that fails has the text of its result, for the model."""

    def tool(definition):
        async def run(**input):
            return parts_of(await result_of(session, definition["name"], input), str, _file)

        return Tool.from_schema(run, definition["name"], definition["description"], definition["inputSchema"])

    return FunctionToolset([tool(definition) for definition in await client.tools("mcp", session)])


def _file(kind, media_type, data):
    return BinaryContent(data=base64.b64decode(data), media_type=media_type)
