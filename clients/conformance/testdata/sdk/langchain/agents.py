"""As much of langchain 1.0 as an agent uses: create_agent, whose ToolNode is LangGraph's. It asks Anthropic's API."""

import asyncio

from _sse import Object
from anthropic import AsyncAnthropic


def create_agent(model, tools, *, system_prompt):
    return _Agent(model.split(":")[1], tools, system_prompt)


class _Agent:
    def __init__(self, model, tools, system):
        self._tools = {tool.name: tool for tool in tools}
        defined = [{"name": t.name, "description": t.description, "input_schema": t.args_schema} for t in tools]
        self._request = {"model": model, "system": system, "tools": defined}

    async def ainvoke(self, input):
        messages = list(input["messages"])
        while True:
            async with AsyncAnthropic().stream(**self._request, messages=messages) as stream:
                async for _ in stream:
                    pass
                message = await stream.get_final_message()
            messages.append({"role": "assistant", "content": message.content})
            uses = [block for block in message.content if block.type == "tool_use"]
            if not uses:
                return {"messages": [Object(content=message.content, text="".join(block.text for block in message.content))]}
            calls = [{"id": use.id, "name": use.name, "args": use.input.model_dump(), "type": "tool_call"} for use in uses]
            results = await asyncio.gather(*(self._tools[call["name"]].ainvoke(call) for call in calls))
            messages.append({"role": "user", "content": [_block(result) for result in results]})


def _block(message):
    failed = {"is_error": True} if message["status"] == "error" else {}
    return {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"], **failed}
