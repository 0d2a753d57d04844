"""What the adapters for other agents' libraries share: one call, its text, its parts."""

import asyncio
import base64
import uuid
from contextlib import suppress

from ._errors import TooldError


async def result_of(session, name, input):
    """Runs one call and returns its ToolResult. When it is cancelled, so is the call."""
    call = await session.call(name, input)
    try:
        return await call.result()
    except asyncio.CancelledError:
        with suppress(TooldError):
            await call.cancel()
        raise


async def item_of(session, item):
    """Runs one item of OpenAI's Responses, and returns the one that answers it."""
    id = uuid.uuid4().hex
    message = {"object": "response", "status": "completed", "output": [{**item, "id": id, "call_id": id, "status": "completed"}]}
    (answer,) = await session.run(message)
    return answer


def text_of(result):
    return "".join(content.text for content in result.content)


def parts_of(result, text, file):
    """The contents of a result, in the form of a library: text(str) and file(kind, media type, bytes in base64) make one part."""
    parts = []
    for content in result.content:
        kind = content.WhichOneof("block")
        if kind == "text":
            parts.append(text(content.text))
        elif kind in ("image", "document"):
            block = getattr(content, kind)
            parts.append(file(kind, block.media_type, base64.b64encode(block.data).decode()))
    return parts
