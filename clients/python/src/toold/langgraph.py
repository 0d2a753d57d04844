"""The daemon's tools for LangChain and the ToolNode of LangGraph, with asyncio.

>>> agent = create_agent(model, await tools(client, session))
"""

from langchain_core.tools import StructuredTool, ToolException

from ._adapter import parts_of, result_of, text_of


async def tools(client, session):
    """The tools of a session. Images go to the model as images; a call that fails is a ToolMessage of the status "error"."""

    def tool(definition):
        async def run(**input):
            result = await result_of(session, definition["name"], input)
            if result.is_error:
                raise ToolException(text_of(result))
            return parts_of(result, _text, _file)

        return StructuredTool(
            name=definition["name"],
            description=definition["description"],
            args_schema=definition["inputSchema"],
            coroutine=run,
            handle_tool_error=True,
        )

    return [tool(definition) for definition in await client.tools("mcp", session)]


def _text(text):
    return {"type": "text", "text": text}


def _file(kind, media_type, data):
    return {"type": "image" if kind == "image" else "file", "base64": data, "mime_type": media_type}
