// What holds when connections and daemons break: one result for each call, and nothing runs twice.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import * as grpc from "@grpc/grpc-js";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { connect as dial, v1 } from "toold";

let direct, daemon;
const opened = []; // closed at the end, also of a test that has failed
async function connect(options) {
  opened.push(await dial(options));
  return opened.at(-1);
}

before(async () => {
  direct = await connect();
  daemon = (await direct.info()).listeners.find(({ address }) => address.startsWith("unix:")).address.slice("unix:".length);
});
after(() => opened.forEach((each) => each.close()));

const folder = () => mkdtempSync(join(tmpdir(), "breaks-"));

/** Passes connections on to the daemon. `watch(direction)` makes a function of each chunk that returns how much of it passes before the cut. */
async function proxy(watch) {
  const sockets = new Set();
  const server = net.createServer((client) => {
    const upstream = net.connect(daemon);
    const cut = () => [client, upstream].forEach((socket) => socket.destroy());
    for (const [from, to, direction] of [[client, upstream, "up"], [upstream, client, "down"]]) {
      sockets.add(from);
      const passes = watch(direction);
      from.on("error", cut).on("close", cut).on("data", (chunk) => {
        const length = passes(chunk);
        if (length === undefined) to.write(chunk);
        else if (length === 0) cut();
        else to.write(chunk.subarray(0, length), cut);
      });
    }
  });
  const path = join(folder(), "proxy.sock");
  await new Promise((resolve) => server.listen(path, resolve));
  const made = { address: `unix:${path}`, cut: () => sockets.forEach((socket) => socket.destroy()), close: () => (sockets.forEach((socket) => socket.destroy()), server.close()) };
  opened.push(made);
  return made;
}

/** Cuts once, behind the n-th DATA frame that the daemon sends, which is the end of a message. */
function afterMessage(n) {
  let rest = n;
  return (direction) => {
    let skip = 0;
    let head = Buffer.alloc(0); // of a frame, incomplete
    let data = false;
    return (chunk) => {
      if (direction === "up" || rest === 0) return undefined;
      for (let at = 0; at < chunk.length; ) {
        if (skip === 0) {
          const more = chunk.subarray(at, at + 9 - head.length);
          head = Buffer.concat([head, more]);
          at += more.length;
          if (head.length < 9) return undefined;
          [skip, data, head] = [head.readUIntBE(0, 3), head[3] === 0, Buffer.alloc(0)];
        }
        const step = Math.min(skip, chunk.length - at);
        [skip, at] = [skip - step, at + step];
        if (skip === 0 && data && --rest === 0) return at;
      }
      return undefined;
    };
  };
}

/** Cuts once, behind n bytes in one direction, all connections counted together. */
function afterBytes(n, way) {
  let rest = n;
  return (direction) => (chunk) => {
    if (direction !== way || rest < 0) return undefined;
    rest -= chunk.length;
    return rest < 0 ? chunk.length + rest : undefined;
  };
}

/** Runs a turn of four calls through a proxy that cuts, as one message or as a stream, and counts what has happened. */
async function survives(watch, streamed) {
  const dir = folder();
  const cutting = await proxy(watch);
  const client = await connect({ address: cutting.address });
  let asked = 0;
  const session = await client.session({
    roots: [dir],
    mode: "bypassPermissions",
    tools: [{ name: "count", description: "Counts.", run: async () => (await new Promise(setImmediate), `count ${++asked}`) }],
  });
  const results = {};
  session.on("event", ({ event }) => event.case === "toolResult" && (results[event.value.toolUseId] = (results[event.value.toolUseId] ?? 0) + 1));
  const content = [
    ...[1, 2].map((n) => ({ type: "tool_use", id: `w${n}`, name: "Bash", input: { command: `echo ${n} >>log` } })),
    { type: "tool_use", id: "tool", name: "count", input: {} },
    { type: "tool_use", id: "read", name: "Bash", input: { command: "cat log" } },
  ];
  const [user] = streamed ? await feed(session.turn(), content) : await session.run({ id: "m", type: "message", role: "assistant", content });
  assert.deepEqual(user.content.map((block) => [block.tool_use_id, block.is_error]), ["w1", "w2", "tool", "read"].map((id) => [id, false]));
  assert.deepEqual(results, { w1: 1, w2: 1, tool: 1, read: 1 });
  assert.equal(readFileSync(join(dir, "log"), "utf8"), "1\n2\n");
  assert.equal(asked, 1);
  assert.match(JSON.stringify(user.content[2]), /count 1/);
  const single = await session.call("Bash", { command: "echo again" }).result();
  assert.equal(single.outcome, v1.Outcome.OK);
  client.close();
  cutting.close();
}

async function feed(turn, content) {
  turn.feed({ type: "message_start", message: { id: "m", type: "message", role: "assistant", content: [] } });
  for (const [index, block] of content.entries()) {
    turn.feed({ type: "content_block_start", index, content_block: { ...block, input: {} } });
    turn.feed({ type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json: JSON.stringify(block.input) } });
    turn.feed({ type: "content_block_stop", index });
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  turn.feed({ type: "message_stop" });
  return turn.end();
}

test("a cut behind each message of the daemon", { concurrency: false }, async () => {
  for (let n = 1; n <= 24; n++) await survives(afterMessage(n), n % 2 === 0).catch((error) => assert.fail(`message ${n}: ${error.stack}`));
});

test("a cut at any byte", async () => {
  for (let i = 0; i < 24; i++) {
    const [way, most] = i % 2 === 0 ? ["down", 6000] : ["up", 3500];
    const n = Math.floor(Math.random() * most);
    await survives(afterBytes(n, way), i % 4 < 2).catch((error) => assert.fail(`byte ${n} ${way}: ${error.stack}`));
  }
});

test("a connection that is lost while nothing runs", async () => {
  const cutting = await proxy(() => () => undefined);
  const client = await connect({ address: cutting.address });
  const name = `idle-${process.pid}`;
  const session = await client.session({ name, roots: [folder()], mode: "bypassPermissions" });
  for (let i = 0; i < 3; i++) {
    assert.equal((await session.call("Bash", { command: "true" }).result()).outcome, v1.Outcome.OK);
    cutting.cut();
    await new Promise(setImmediate);
  }
  const running = session.call("Bash", { command: "sleep 60" });
  for await (const { event } of running) if (event.case === "started") break;
  cutting.close(); // and nobody listens any more
  await assert.rejects(running.result(), { name: "TooldError", code: "UNAVAILABLE" });
  client.close();
  await direct.unary(v1.SessionService.method.closeSession, { sessionId: name });
});

test("an answer is given again, and the user is not asked again", async () => {
  const cutting = await proxy(() => () => undefined);
  const client = await connect({ address: cutting.address });
  let asked = 0;
  const session = await client.session({
    roots: [folder()],
    onQuestion: async () => {
      asked++;
      const resumed = new Promise((resolve) => session.once("resumed", resolve));
      cutting.cut();
      await resumed;
      return { decision: "allow" };
    },
  });
  assert.equal((await session.call("Bash", { command: "touch x" }).result()).outcome, v1.Outcome.OK);
  assert.equal(asked, 1);
  client.close();
  cutting.close();
});

test("a daemon that is killed in the middle of a call", async () => {
  const client = await connect();
  const session = await client.session({ roots: [folder()], mode: "bypassPermissions" });
  const { pid } = await client.info();
  const call = session.call("Bash", { command: "touch begun; sleep 60" });
  const results = [];
  for await (const { event } of call) {
    if (event.case === "started") process.kill(pid, "SIGKILL");
    if (event.case === "toolResult") results.push(event.value.outcome);
  }
  assert.deepEqual(results, [v1.Outcome.INTERRUPTED]);
  assert.notEqual((await client.info()).pid, pid);
  assert.equal((await session.call("Bash", { command: "true" }).result()).outcome, v1.Outcome.OK);
  client.close();
});

test("another epoch, and a result that comes twice", async () => {
  const method = (m, responseStream) => ({
    path: `/${m.parent.typeName}/${m.name}`, requestStream: responseStream, responseStream,
    requestDeserialize: (b) => fromBinary(m.input, b), responseSerialize: (a) => Buffer.from(toBinary(m.output, a)),
    requestSerialize: () => {}, responseDeserialize: () => {},
  });
  const attaches = [];
  const server = new grpc.Server();
  server.addService({ getInfo: method(v1.DaemonService.method.getInfo, false) }, { getInfo: (_, reply) => reply(null, create(v1.GetInfoResponseSchema, {})) });
  server.addService({ execute: method(v1.ToolService.method.execute, true) }, {
    execute: (stream) => stream.on("error", () => {}).on("data", ({ message }) => {
      const say = (seq, turnId, kind, value) => stream.write(create(v1.ExecuteResponseSchema, { seq, turnId, event: { case: kind, value } }));
      if (message.case === "attach") {
        attaches.push(message.value.afterSeq);
        return say(0n, "", "attached", { sessionId: "s", lastSeq: 5n, epoch: attaches.length === 1 ? "old" : "new" });
      }
      if (message.case !== "toolUse") return;
      if (attaches.length === 1) return stream.emit("error", { code: grpc.status.UNAVAILABLE, details: "gone" });
      const { turnId, id: toolUseId } = message.value;
      say(1n, turnId, "accepted", { toolUseId });
      for (const seq of [2n, 3n]) say(seq, turnId, "toolResult", { toolUseId, outcome: v1.Outcome.OK });
      say(4n, turnId, "turnEnded", {});
    }),
  });
  const address = `unix:${join(folder(), "fake.sock")}`;
  await new Promise((resolve, reject) => server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())));
  const client = await connect({ address });
  const session = await client.session({ name: "s" });
  const epochs = [];
  session.on("epoch", (epoch) => epochs.push(epoch));
  const kinds = [];
  for await (const { event } of session.call("Bash", {})) kinds.push(event.case);
  assert.deepEqual(kinds, ["accepted", "toolResult"]);
  assert.deepEqual(epochs, ["new"]);
  assert.deepEqual(attaches, [undefined, 5n, 0n]);
  client.close();
  server.forceShutdown();
});
