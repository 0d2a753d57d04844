"""As much of OpenAI Agents as the adapter and an agent use: src/agents of openai-agents-python 0.17, commits 036ea35 (tool.py)
and 57578f0 (editor.py)."""

import os
from dataclasses import dataclass, field
from typing import Any

from _sse import Object, events


@dataclass
class FunctionTool:
    name: str
    description: str
    params_json_schema: dict
    on_invoke_tool: Any
    strict_json_schema: bool = True


@dataclass
class ShellCallOutcome:
    type: str
    exit_code: "int | None" = None


@dataclass
class ShellCommandOutput:
    stdout: str = ""
    stderr: str = ""
    outcome: ShellCallOutcome = field(default_factory=lambda: ShellCallOutcome(type="exit"))
    command: "str | None" = None
    provider_data: "dict | None" = None


@dataclass
class ShellResult:
    output: list
    max_output_length: "int | None" = None
    provider_data: "dict | None" = None


@dataclass
class ShellActionRequest:
    commands: list
    timeout_ms: "int | None" = None
    max_output_length: "int | None" = None


@dataclass
class ShellCallData:
    call_id: str
    action: ShellActionRequest
    status: "str | None" = None
    raw: Any = None


@dataclass
class ShellCommandRequest:
    ctx_wrapper: Any
    data: ShellCallData


@dataclass
class ShellTool:
    executor: Any = None
    name: str = "shell"


@dataclass
class ApplyPatchOperation:
    type: str
    path: str
    diff: "str | None" = None
    ctx_wrapper: Any = None


@dataclass
class ApplyPatchResult:
    status: "str | None" = None
    output: "str | None" = None


@dataclass
class ApplyPatchTool:
    editor: Any
    name: str = "apply_patch"


@dataclass
class Agent:
    name: str
    instructions: str = ""
    model: str = ""
    tools: list = field(default_factory=list)


class Runner:
    @classmethod
    async def run(cls, starting_agent, input, *, max_turns=10):
        tools = {tool.name: tool for tool in starting_agent.tools}
        request = {"model": starting_agent.model, "instructions": starting_agent.instructions, "tools": [_defined(t) for t in tools.values()]}
        conversation = [{"role": "user", "content": input}]
        for _ in range(max_turns):
            for event in events(os.environ["OPENAI_BASE_URL"] + "/responses", os.environ["OPENAI_API_KEY"], {**request, "input": conversation}):
                if event.type == "response.completed":
                    output = event.response.output
            answers = [await _answer(tools, item) for item in output if item.type.endswith("_call")]
            conversation += output + answers
            if not answers:
                return Object(final_output="".join(part.text for part in output[-1].content))
        raise RuntimeError("max turns exceeded")


def _defined(tool):
    if isinstance(tool, ShellTool):
        return {"type": "shell", "environment": {"type": "local"}}
    if isinstance(tool, ApplyPatchTool):
        return {"type": "apply_patch"}
    return {"type": "function", "name": tool.name, "parameters": tool.params_json_schema, "strict": tool.strict_json_schema}


async def _answer(tools, item):
    answer = {"type": item.type + "_output", "call_id": item.call_id}
    if item.type == "function_call":
        return {**answer, "output": await tools[item.name].on_invoke_tool(None, item.arguments)}
    if item.type == "shell_call":
        action = ShellActionRequest(**item.action.model_dump())
        result = await tools["shell"].executor(ShellCommandRequest(None, ShellCallData(item.call_id, action)))
        output = [{"stdout": o.stdout, "stderr": o.stderr, "outcome": vars(o.outcome)} for o in result.output]
        return {**answer, "output": output, "max_output_length": result.max_output_length}
    operation = ApplyPatchOperation(**item.operation.model_dump())
    result = await getattr(tools["apply_patch"].editor, operation.type)(operation)
    return {**answer, "status": result.status, "output": result.output}
