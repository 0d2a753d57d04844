"""The tools of Anthropic's tool runner: lib/tools of anthropic-sdk-python, commits 1316de7
(_beta_functions.py) and 0264c11 (_beta_runner.py)."""

from abc import ABC, abstractmethod


class ToolError(Exception):
    def __init__(self, content):
        super().__init__(content if isinstance(content, str) else " ".join(block.get("text", "") for block in content))
        self.content = content


class BetaAsyncBuiltinFunctionTool(ABC):
    @abstractmethod
    def to_dict(self): ...

    @abstractmethod
    async def call(self, input): ...

    @property
    def name(self):
        return self.to_dict()["name"]


class BetaAsyncToolRunner:
    """Asks the model until it asks for no tool; the calls of a message run one after the other."""

    def __init__(self, stream, tools, messages, request):
        self._stream, self._tools, self._messages = stream, {tool.name: tool for tool in tools}, list(messages)
        self._request = {**request, "tools": [tool.to_dict() for tool in tools]}

    async def until_done(self):
        while True:
            async with self._stream(**self._request, messages=self._messages) as stream:
                async for _ in stream:
                    pass
                message = await stream.get_final_message()
            results = [await self._result(block) for block in message.content if block.type == "tool_use"]
            if not results:
                return message
            self._messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]

    async def _result(self, block):
        try:
            content, failed = await self._tools[block.name].call(block.input.model_dump()), {}
        except ToolError as error:
            content, failed = error.content, {"is_error": True}
        return {"type": "tool_result", "tool_use_id": block.id, "content": content, **failed}
