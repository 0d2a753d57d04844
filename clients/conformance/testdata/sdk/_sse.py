"""What the imitations of both SDKs share: events of a stream over HTTP, as objects that become dicts again."""

import json
import types
import urllib.request


class Object(types.SimpleNamespace):
    """A JSON object with attributes, as the SDKs' models are."""

    def model_dump(self):
        return {name: _dump(value) for name, value in vars(self).items()}


def _dump(value):
    if isinstance(value, list):
        return [_dump(v) for v in value]
    return value.model_dump() if isinstance(value, Object) else value


def events(url, key, request):
    """Yields the events that the model's API streams."""
    body = json.dumps({**request, "stream": True}, default=lambda o: o.model_dump()).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer " + key, "x-api-key": key}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        for line in answer:
            if line.startswith(b"data: {"):
                yield json.loads(line[len("data: ") :], object_hook=lambda o: Object(**o))
