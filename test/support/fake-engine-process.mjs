import fs from "node:fs";
import { CHILD_OUTPUT_FD, onParentGone, ParentChannel } from "../../src/engine/channel/parent-channel.ts";
import { encodeFrame } from "../../src/engine/channel/frame.ts";
import { DAEMON_MESSAGE_KINDS, ENGINE_MESSAGE_KINDS } from "../../src/engine/channel/message-limits.ts";
import { TINY_ENGINE_INFO as info } from "./tiny-engine-info.ts";

// Stands in for an engine process: plays the part that its first argument names.
const [, , part] = process.argv;

/** Number of a kind of message. */
const kindOf = (type) => Object.keys(ENGINE_MESSAGE_KINDS).indexOf(type);

/** Writes bytes to the daemon as they are, until it has ended this process. */
const writeRaw = async (...pieces) => {
  for (const piece of pieces) {
    let rest = piece;
    while (rest.length > 0) {
      try {
        rest = rest.subarray(fs.writeSync(CHILD_OUTPUT_FD, rest));
      } catch (error) {
        if (error.code !== "EAGAIN") throw error;
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
  }
};

const flood = { isCancelled: false };

/** A fake that loads, and answers the first request with bytes of its own. */
const raw = (...pieces) => ({
  load: () => [{ type: "loaded", info }],
  generate: (message) => {
    void writeRaw(...pieces.map((piece) => (typeof piece === "function" ? piece(message) : piece)));
    return [];
  },
});

const textEvent = (call, text) =>
  encodeFrame(
    kindOf("events"),
    JSON.stringify({ type: "events", call, events: [{ type: "text-delta", text }] }),
    [],
  );

/** A header that announces these lengths. */
const header = (type, jsonBytes, binaryBytes = 0, attachments = 0) => {
  const frame = encodeFrame(kindOf(type), "", []);
  frame.writeUInt16LE(attachments, 2);
  frame.writeUInt32LE(jsonBytes, 4);
  frame.writeUInt32LE(binaryBytes, 8);
  return frame;
};

const answers = {
  /** Never says that it has loaded. */
  "silent while loading": {},
  /** Says something that no schema knows. */
  "forged while loading": { load: () => [{ type: "load-progress", progress: "much" }] },
  "premature while loading": { load: () => [{ type: "cancelled", call: 1 }] },
  "exits while loading": {
    load: () => {
      process.stderr.write("Error: the disk is on fire\n", () => process.exit(7));
      return [];
    },
  },
  silent: { load: () => [{ type: "loaded", info }] },
  /** Its answer has ended when the cancel arrives, and crosses it on the way. */
  "ends before the cancel": {
    load: () => [{ type: "loaded", info }],
    generate: ({ call }) => [{ type: "events", call, events: [{ type: "start" }] }],
    embed: ({ call }) => [{ type: "embedded", call, result: { vector: [1, 0], tokens: 2 } }],
    cancel: ({ call }) => [
      {
        type: "events",
        call,
        events: [
          {
            type: "done",
            reason: "stop",
            usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 0, reasoningTokens: 0 },
            timings: { promptMs: 1, completionMs: 1 },
          },
        ],
      },
    ],
  },
  forged: {
    load: () => [{ type: "loaded", info }],
    generate: ({ call }) => [
      { type: "events", call, events: [{ type: "text-delta", text: { toString: 1 } }] },
    ],
  },
  "answers another call": {
    load: () => [{ type: "loaded", info }],
    generate: ({ call }) => [{ type: "events", call: call + 1, events: [{ type: "start" }] }],
  },
  "answers with the wrong kind": {
    load: () => [{ type: "loaded", info }],
    generate: ({ call }) => [{ type: "embedded", call, result: { vector: [1], tokens: 1 } }],
  },
  fatal: {
    load: () => [{ type: "loaded", info }],
    generate: () => {
      setTimeout(() => process.exit(1), 10);
      return [{ type: "fatal", reason: "(ABORT) GGML_ASSERT(1 == 2) failed" }];
    },
  },
  "writes garbage": raw(Buffer.from("HTTP/1.1 200 OK\r\n\r\n")),
  "announces an endless message": raw(header("events", 0xffffffff), Buffer.alloc(1024 * 1024, " ")),
  "announces endless bytes beside it": raw(header("pieces", 2, 0xffffffff, 2)),
  "announces more attachments than there are": raw(header("pieces", 2, 0, 3)),
  "writes what is not JSON": raw(encodeFrame(kindOf("memory"), '{"type":', [])),
  "writes one kind in the frame of another": raw(({ call }) =>
    encodeFrame(kindOf("memory"), JSON.stringify({ type: "cancelled", call }), []),
  ),
  "nests an object 3,000 deep": raw(({ call }) =>
    encodeFrame(
      kindOf("events"),
      `{"type":"events","call":${call},"events":${"[".repeat(3000)}${"]".repeat(3000)}}`,
      [],
    ),
  ),
  "writes a hundred thousand values": raw(({ call }) =>
    encodeFrame(kindOf("events"), `{"type":"events","call":${call},"events":[${"0,".repeat(100_000)}0]}`, []),
  ),
  /** As Node's own channel would take it for an order of its own. */
  "writes what Node's own channel obeys": raw(Buffer.from('{"cmd":"NODE_HANDLE_ACK"}\n')),
  "leaves half a message": {
    load: () => [{ type: "loaded", info }],
    generate: ({ call }) => {
      void writeRaw(textEvent(call, "cut").subarray(0, 20)).then(() => process.exit(3));
      return [];
    },
  },
  /** Text without end, as fast as it is read, until it is stopped. */
  floods: {
    load: () => [{ type: "loaded", info }],
    generate: ({ call }) => {
      const piece = Buffer.concat(Array.from({ length: 100 }, () => textEvent(call, "x".repeat(200))));
      const write = async () => {
        while (!flood.isCancelled) await writeRaw(piece);
        channel.post({ type: "cancelled", call });
      };
      void write();
      return [];
    },
    cancel: () => {
      flood.isCancelled = true;
      return [];
    },
  },
  /** One message a byte at a time. */
  dribbles: {
    load: () => [{ type: "loaded", info }],
    generate: async ({ call }) => {
      const done = {
        type: "done",
        reason: "stop",
        usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 0, reasoningTokens: 0 },
        timings: { promptMs: 1, completionMs: 1 },
      };
      const frame = encodeFrame(
        kindOf("events"),
        JSON.stringify({ type: "events", call, events: [{ type: "text-delta", text: "slow" }, done] }),
        [],
      );
      await writeRaw(...Array.from(frame, (byte) => Buffer.of(byte)));
    },
  },
  /** Loads, and reads nothing more. */
  "does not read": {
    load: () => {
      // Sleeping keeps the only thread that reads.
      setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
      return [{ type: "loaded", info }];
    },
  },
  "fails one call": {
    load: () => [{ type: "loaded", info }],
    generate: ({ call }) => [
      { type: "events", call, events: [{ type: "start" }, { type: "text-delta", text: "half" }] },
      { type: "call-failed", call, error: { code: "inference_failed", message: "too hard" } },
    ],
    embed: ({ call }) => [{ type: "embedded", call, result: { vector: [1, 0], tokens: 2 } }],
  },
}[part];

onParentGone(() => process.exit());
const channel = new ParentChannel({
  incoming: DAEMON_MESSAGE_KINDS,
  outgoing: ENGINE_MESSAGE_KINDS,
  onMessage: (message) => {
    const replies = answers[message.type]?.(message);
    if (Array.isArray(replies)) for (const answer of replies) channel.post(answer);
  },
  onProblem: () => process.exit(1),
});
