"""One conversation with toold, as an agent would hold it: several calls at once, progress, a question, a connection
that breaks in the middle of a call, and the rest of the records after it.

    python3 conversation.py SOCKET SESSION ROOT

Prints every event as a line of JSON.
"""

import json
import os
import sys

import grpc
from google.protobuf import json_format
from toold.v1 import tool_pb2 as wire

from client import Session


def until(session, events, last=None):
    """Prints events, saying yes to every question, until one of this kind has come or the stream has ended."""
    for event in events:
        kind = event.WhichOneof("event")
        body = json_format.MessageToDict(getattr(event, kind), preserving_proto_field_name=True)
        print(json.dumps({"seq": event.seq, "kind": kind, kind: body}), flush=True)
        if kind == "question":
            session.allow(event.question)
        if kind == last:
            return


def converse(session, notes):
    events = session.attach()

    # Everything is sent at once; the daemon finds out what may run together.
    session.use("t1", "read", "Read", file_path=notes)
    session.use("t1", "glob", "Glob", pattern="**/*.txt")
    session.use("t1", "count", "Bash", command="for n in 1 2 3; do echo line $n; sleep 0.2; done")
    session.use("t1", "edit", "Edit", file_path=notes, old_string="old", new_string="new")
    session.send(end_turn=wire.EndTurn(turn_id="t1"))
    until(session, events, "turn_ended")

    # The stream breaks while a call runs. Nothing is stopped by that.
    session.use("t2", "slow", "Bash", command="sleep 1; echo awake")
    until(session, events, "started")
    session.drop()
    try:
        until(session, events)
    except grpc.RpcError as status:
        if status.code() is not grpc.StatusCode.CANCELLED:
            raise

    # The first events of the new stream are the records that the broken one did not get.
    events = session.attach()
    session.finish()  # also ends the turn
    until(session, events)


def main(socket, name, root):
    session = Session(
        socket,
        session_id=name,
        roots=[root],
        client=wire.ClientInfo(name="python-example", version="1"),
        capabilities=wire.Capabilities(answers=True),
    )
    try:
        converse(session, os.path.join(root, "notes.txt"))
    finally:
        session.close()


main(*sys.argv[1:])
