export * from "./gen/toold/v1/daemon_pb.js";
export * from "./gen/toold/v1/event_pb.js";
export * from "./gen/toold/v1/options_pb.js";
export * from "./gen/toold/v1/session_pb.js";
export * from "./gen/toold/v1/tool_pb.js";
