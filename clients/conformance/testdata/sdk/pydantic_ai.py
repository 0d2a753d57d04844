"""As much of pydantic-ai 1.x as the adapter and an agent use: toolsets/function.py, commit 00279b6, and Tool.from_schema of 1.x.
It asks Anthropic's API."""

import asyncio
from dataclasses import dataclass

from _sse import Object
from anthropic import AsyncAnthropic


@dataclass
class BinaryContent:
    data: bytes
    media_type: str


class Tool:
    @classmethod
    def from_schema(cls, function, name, description, json_schema, takes_ctx=False, sequential=False):
        tool = cls()
        tool.function, tool.name, tool.description, tool.json_schema = function, name, description, json_schema
        return tool


class FunctionToolset:
    def __init__(self, tools=(), *, max_retries=1):
        self.tools = {tool.name: tool for tool in tools}


class Agent:
    def __init__(self, model, *, instructions, toolsets):
        self._model, self._instructions = model.split(":")[1], instructions
        self._tools = {name: tool for toolset in toolsets for name, tool in toolset.tools.items()}

    async def run(self, user_prompt):
        messages = [{"role": "user", "content": user_prompt}]
        defined = [{"name": t.name, "description": t.description, "input_schema": t.json_schema} for t in self._tools.values()]
        while True:
            request = {"model": self._model, "system": self._instructions, "tools": defined, "messages": messages}
            async with AsyncAnthropic().stream(**request) as stream:
                async for _ in stream:
                    pass
                message = await stream.get_final_message()
            uses = [block for block in message.content if block.type == "tool_use"]
            if not uses:
                return Object(output="".join(block.text for block in message.content))
            results = await asyncio.gather(*(self._returned(use) for use in uses))  # they run beside each other
            messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]

    async def _returned(self, use):
        returned = await self._tools[use.name].function(**use.input.model_dump())
        text = [{"type": "text", "text": part} for part in returned if isinstance(part, str)]
        return {"type": "tool_result", "tool_use_id": use.id, "content": text}
