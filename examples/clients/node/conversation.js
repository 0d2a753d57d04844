// One conversation with toold, as an agent would hold it: several calls at once, progress, a question, a connection
// that breaks in the middle of a call, and the rest of the records after it.
//
//	node conversation.js SOCKET SESSION ROOT
//
// Prints every event as a line of JSON.
"use strict";

const path = require("node:path");
const { Session, grpc } = require("./client.js");

const [socket, name, root] = process.argv.slice(2);
const notes = path.join(root, "notes.txt");
const session = new Session(socket, {
  session_id: name,
  roots: [root],
  client: { name: "node-example", version: "1" },
  capabilities: { answers: true },
});

// Prints events, saying yes to every question, until one of this kind has come or the stream has ended.
async function until(events, kind) {
  for (let next = await events.next(); !next.done; next = await events.next()) {
    const event = next.value;
    console.log(JSON.stringify({ seq: event.seq, kind: event.event, [event.event]: event[event.event] }));
    if (event.event === "question") session.allow(event.question);
    if (event.event === kind) return;
  }
}

async function converse() {
  let events = session.attach();

  // Everything is sent at once; the daemon finds out what may run together.
  session.use("t1", "read", "Read", { file_path: notes });
  session.use("t1", "glob", "Glob", { pattern: "**/*.txt" });
  session.use("t1", "count", "Bash", { command: "for n in 1 2 3; do echo line $n; sleep 0.2; done" });
  session.use("t1", "edit", "Edit", { file_path: notes, old_string: "old", new_string: "new" });
  session.send({ end_turn: { turn_id: "t1" } });
  await until(events, "turn_ended");

  // The stream breaks while a call runs. Nothing is stopped by that.
  session.use("t2", "slow", "Bash", { command: "sleep 1; echo awake" });
  await until(events, "started");
  session.drop();
  await until(events).catch((status) => {
    if (status.code !== grpc.status.CANCELLED) throw status;
  });

  // The first events of the new stream are the records that the broken one did not get.
  events = session.attach();
  session.finish(); // also ends the turn
  await until(events);
}

converse()
  .finally(() => session.close())
  .catch((error) => {
    console.error(error);
    process.exitCode = 1;
  });
