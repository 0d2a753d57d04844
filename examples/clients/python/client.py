"""A thin client of toold for Python: one session, one stream at a time, resumed where the last one broke off.

It knows nothing of models, and does not start the daemon. It needs grpcio and the generated stubs (see README.md).
"""

import json
import queue

import grpc
from toold.v1 import tool_pb2 as wire
from toold.v1 import tool_pb2_grpc as services


class Session:
    """A session of the daemon behind a Unix socket. `attach` is what every Attach says beside after_seq."""

    def __init__(self, socket, **attach):
        self.channel = grpc.insecure_channel("unix:" + socket)
        self.stub = services.ToolServiceStub(self.channel)
        self.settings = attach
        self.seen = 0  # the last sequence number that came in

    def attach(self):
        """Opens a stream that goes on after the last record seen, and yields its events until it ends."""
        self.outgoing = queue.SimpleQueue()
        self.stream = self.stub.Execute(iter(self.outgoing.get, None))
        self.send(attach=wire.Attach(after_seq=self.seen, **self.settings))
        return self.events(self.stream)

    def events(self, stream):
        for event in stream:
            if event.seq:
                self.seen = event.seq
            yield event

    def send(self, **message):
        """Sends one message, such as end_turn=wire.EndTurn()."""
        self.outgoing.put(wire.ExecuteRequest(**message))

    def use(self, turn, id, name, **arguments):
        """Asks for one call of a turn. Inputs travel as JSON text: integers stay what the model wrote."""
        self.send(tool_use=wire.ToolUse(turn_id=turn, id=id, name=name, input_json=json.dumps(arguments)))

    def allow(self, question):
        """Says yes to a question. The digest binds the answer to the input that the question showed."""
        self.send(
            answer=wire.Answer(
                question_id=question.question_id,
                input_digest=question.input_digest,
                decision=wire.DECISION_ALLOW,
            )
        )

    def drop(self):
        """Drops the stream in the middle, as a broken connection would."""
        self.stream.cancel()

    def finish(self):
        """Says that nothing more comes. The stream ends when everything has been sent."""
        self.outgoing.put(None)

    def close(self):
        self.outgoing.put(None)
        self.channel.close()
