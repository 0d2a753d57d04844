"""The daemon's tools for OpenAI Agents, with asyncio.

>>> agent = Agent(tools=[*await tools(client, session), shell(session), apply_patch(session)], ...)
"""

from dataclasses import asdict

from agents import ApplyPatchResult, ApplyPatchTool, FunctionTool, ShellCallOutcome, ShellCommandOutput, ShellResult, ShellTool

from ._adapter import item_of, result_of, text_of


async def tools(client, session):
    """The tools of a session, as functions. A call that fails has the text of its result, for the model."""

    def function(definition):
        async def invoke(_, arguments):
            return text_of(await result_of(session, definition["name"], arguments))

        schema = {"required": [], **definition["inputSchema"]}
        return FunctionTool(definition["name"], definition["description"], schema, invoke, strict_json_schema=False)

    return [function(definition) for definition in await client.tools("mcp", session)]


def shell(session):
    """The model's own shell: each command is judged and confined as a call of Bash."""

    async def run(request):
        action = {name: value for name, value in asdict(request.data.action).items() if value is not None}
        answer = await item_of(session, {"type": "shell_call", "action": action})
        outputs = [ShellCommandOutput(o["stdout"], o["stderr"], ShellCallOutcome(**o["outcome"])) for o in answer["output"]]
        return ShellResult(outputs, request.data.action.max_output_length)

    return ShellTool(run)


def apply_patch(session):
    """The model's own patches, each of one file."""
    return ApplyPatchTool(_Editor(session))


class _Editor:
    def __init__(self, session):
        self._session = session

    async def update_file(self, operation):
        change = {name: getattr(operation, name) for name in ("type", "path", "diff") if getattr(operation, name) is not None}
        answer = await item_of(self._session, {"type": "apply_patch_call", "operation": change})
        return ApplyPatchResult(answer["status"], answer["output"])

    create_file = delete_file = update_file
