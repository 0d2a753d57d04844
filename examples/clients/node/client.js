// A thin client of toold for Node: one session, one stream at a time, resumed where the last one broke off.
// It knows nothing of models, and does not start the daemon.
"use strict";

const path = require("node:path");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const protos = path.join(__dirname, "..", "..", "..", "proto");
const definition = loader.loadSync("toold/v1/tool.proto", {
  includeDirs: [protos],
  keepCase: true,
  enums: String,
  longs: Number, // sequence numbers and sizes stay far below 2^53
  oneofs: true, // event.event is the name of the arm that is set
});
const { toold } = grpc.loadPackageDefinition(definition);

class Session {
  // socket is the path of the daemon's Unix socket; attach is what every Attach says beside after_seq.
  constructor(socket, attach) {
    this.stub = new toold.v1.ToolService(`unix:${socket}`, grpc.credentials.createInsecure());
    this.settings = attach;
    this.seen = 0; // the last sequence number that came in
    this.stream = null;
  }

  // Opens a stream that goes on after the last record seen, and gives its events as an async iterable. The events end
  // with the stream; a status other than OK is thrown.
  attach() {
    this.stream = this.stub.Execute();
    this.send({ attach: { ...this.settings, after_seq: this.seen } });
    return this.events(this.stream);
  }

  async *events(stream) {
    for await (const event of stream) {
      if (event.seq > 0) this.seen = event.seq;
      yield event;
    }
  }

  // Sends one message, such as {end_turn: {}}.
  send(message) {
    this.stream.write(message);
  }

  // Asks for one call of a turn. Inputs travel as JSON text: integers stay what the model wrote.
  use(turn, id, name, input) {
    this.send({ tool_use: { turn_id: turn, id, name, input_json: JSON.stringify(input) } });
  }

  // Says yes to a question. The digest binds the answer to the input that the question showed.
  allow(question) {
    const { question_id, input_digest } = question;
    this.send({ answer: { question_id, input_digest, decision: "DECISION_ALLOW" } });
  }

  // Drops the stream in the middle, as a broken connection would.
  drop() {
    this.stream.cancel();
  }

  // Says that nothing more comes. The stream ends when everything has been sent.
  finish() {
    this.stream.end();
  }

  close() {
    this.stub.close();
  }
}

module.exports = { Session, grpc };
