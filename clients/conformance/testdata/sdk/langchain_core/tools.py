"""As much of langchain-core as the adapter uses: tools/structured.py, commit 0044519, of 1.5."""


class ToolException(Exception):
    pass


class StructuredTool:
    def __init__(self, *, name, description, args_schema, coroutine, handle_tool_error=False):
        self.name, self.description, self.args_schema = name, description, args_schema
        self.coroutine, self.handle_tool_error = coroutine, handle_tool_error

    async def ainvoke(self, call):
        """Runs a tool call, and returns the ToolMessage about it."""
        message = {"role": "tool", "tool_call_id": call["id"], "name": self.name, "status": "success"}
        try:
            return {**message, "content": await self.coroutine(**call["args"])}
        except ToolException as error:
            if not self.handle_tool_error:
                raise
            return {**message, "content": str(error), "status": "error"}
