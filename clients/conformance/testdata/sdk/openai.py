"""As much of OpenAI's SDK as an agent's loop uses, with the same names."""

import os

from _sse import Object, events


class OpenAI:
    def __init__(self):
        self.chat = self
        self.completions = _Completions()
        self.responses = _Responses()


def _events(path, request):
    return events(os.environ["OPENAI_BASE_URL"] + path, os.environ["OPENAI_API_KEY"], request)


class _Responses:
    def create(self, stream, **request):
        for event in _events("/responses", request):
            if event.type == "response.completed":
                parts = [part for item in event.response.output if item.type == "message" for part in item.content]
                event.response.output_text = "".join(part.text for part in parts)
            yield event


class _Completions:
    def stream(self, **request):
        return _Stream(_events("/chat/completions", request))


class _Stream:
    def __init__(self, coming):
        self._coming, self._text, self._calls = coming, "", []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __iter__(self):
        for chunk in self._coming:
            delta = chunk.choices[0].delta
            self._text += getattr(delta, "content", None) or ""
            for call in getattr(delta, "tool_calls", []):
                if call.index == len(self._calls):
                    self._calls.append(Object(id=call.id, type="function", function=Object(name=call.function.name, arguments="")))
                self._calls[call.index].function.arguments += call.function.arguments
            yield Object(type="chunk", chunk=chunk)

    def get_final_completion(self):
        message = Object(role="assistant", content=self._text or None)
        if self._calls:
            message.tool_calls = self._calls
        return Object(choices=[Object(message=message)])
