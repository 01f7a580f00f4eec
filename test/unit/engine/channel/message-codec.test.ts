import { describe, expect, test } from "vitest";
import { MessageCodec, MessageTooLargeError } from "../../../../src/engine/channel/message-codec.ts";
import { DAEMON_MESSAGE_KINDS, ENGINE_MESSAGE_KINDS } from "../../../../src/engine/channel/message-limits.ts";
import { encodeFrame, FrameReader } from "../../../../src/engine/channel/frame.ts";
import {
  type DaemonMessage,
  daemonMessageSchema,
  type EngineMessage,
  engineMessageSchema,
} from "../../../../src/engine/protocol/messages.ts";
import { chatRequest, promptRequest } from "../../../support/engine-fixture.ts";

const engineCodec = new MessageCodec<EngineMessage>(ENGINE_MESSAGE_KINDS);
const daemonCodec = new MessageCodec<DaemonMessage>(DAEMON_MESSAGE_KINDS);

/** Messages that are decoded from these bytes when they arrive in chunks of `size`. */
function receive(codec: typeof engineCodec | typeof daemonCodec, bytes: Buffer, size: number): unknown[] {
  const reader = new FrameReader(codec.limitsOf);
  const messages: unknown[] = [];
  for (let start = 0; start < bytes.length; start += size) {
    reader.push(Buffer.from(bytes.subarray(start, start + size)));
    for (let frame = reader.next(); frame; frame = reader.next()) messages.push(codec.decode(frame));
  }
  return messages;
}

const fromEngine: EngineMessage[] = [
  { type: "load-progress", progress: 0.5 },
  {
    type: "events",
    call: 3,
    events: [{ type: "start" }, { type: "text-delta", text: 'Grüße, \u{1F600} \u0000 "\\' }],
  },
  { type: "embedded", call: 4, result: { vector: [0.1, -1e-30, 1 / 3], tokens: 3 } },
  { type: "tokenized", call: 5, result: Int32Array.of(1, 2, 1_000_000) },
  { type: "tokenized", call: 5, result: new Int32Array() },
  { type: "pieces", call: 6, result: { bytes: Uint8Array.of(1, 2, 3), ends: Int32Array.of(1, 3) } },
  { type: "slots", call: 8, result: { action: "read", data: Uint8Array.of(9) } },
  { type: "slots", call: 9, result: { action: "erase", tokens: 0 } },
  { type: "call-failed", call: 7, error: { code: "inference_failed", message: "no" } },
];

const fromDaemon: DaemonMessage[] = [
  { type: "generate", call: 1, request: promptRequest("Hi") },
  {
    type: "generate",
    call: 2,
    request: chatRequest([
      { type: "text", text: "a" },
      { type: "image", data: Uint8Array.of(1, 2, 3) },
      { type: "image", data: Uint8Array.of() },
      { type: "image", data: new Uint8Array(100_000).fill(7) },
    ]),
  },
  { type: "pieces", call: 3, tokens: Int32Array.of(4, 5) },
  {
    type: "slots",
    call: 4,
    request: { action: "restore", slot: 1, tokens: Int32Array.of(6), scales: [0.5] },
  },
  { type: "slots", call: 5, request: { action: "write", offset: 0, data: Uint8Array.of(8) } },
  { type: "cancel", call: 2 },
];

describe("MessageCodec", () => {
  test.each([1, 7, 4096, 1 << 20])(
    "decodes the messages that it has encoded, in chunks of %i bytes",
    (size) => {
      const engineBytes = Buffer.concat(fromEngine.flatMap((message) => engineCodec.encode(message)));
      const received = receive(engineCodec, engineBytes, size);
      expect(received.map((message) => engineMessageSchema.parse(message))).toEqual(fromEngine);
      const daemonBytes = Buffer.concat(fromDaemon.flatMap((message) => daemonCodec.encode(message)));
      const receivedByEngine = receive(daemonCodec, daemonBytes, size);
      expect(receivedByEngine.map((message) => daemonMessageSchema.parse(message))).toEqual(fromDaemon);
    },
  );

  test("does not encode messages that exceed the receiver's limits", () => {
    const text = "x".repeat(1024 * 1024);
    const tooLong: EngineMessage = { type: "events", call: 1, events: [{ type: "text-delta", text }] };
    expect(() => engineCodec.encode(tooLong)).toThrow(MessageTooLargeError);
    const events = Array.from({ length: 10_000 }, () => ({ type: "start" }) as const);
    expect(() => engineCodec.encode({ type: "events", call: 1, events })).toThrow(MessageTooLargeError);
    const result = new Int32Array(8 * 1024 * 1024);
    expect(() => engineCodec.encode({ type: "tokenized", call: 1, result })).toThrow(MessageTooLargeError);
  });

  test.each([
    ["without its attachment", "tokenized", '{"type":"tokenized","result":{"attachment":0}}', []],
    [
      "with half a number",
      "tokenized",
      '{"type":"tokenized","result":{"attachment":0}}',
      [Uint8Array.of(1, 2, 3)],
    ],
    [
      "with one attachment in two places",
      "pieces",
      '{"type":"pieces","result":{"bytes":{"attachment":0},"ends":{"attachment":0}}}',
      [new Uint8Array(8), new Uint8Array(8)],
    ],
    [
      "without the object that the attachment belongs to",
      "embedded",
      '{"type":"embedded","call":1}',
      [new Uint8Array(8)],
    ],
    ["that is a number", "memory", "1", []],
    ["that is null", "memory", "null", []],
    ["that is empty", "memory", "", []],
  ] as const)("rejects a message %s", (_, type, json, attachments) => {
    const kind = Object.keys(ENGINE_MESSAGE_KINDS).indexOf(type);
    const bytes = Buffer.concat([encodeFrame(kind, json, attachments), ...attachments]);
    expect(() => receive(engineCodec, bytes, bytes.length)).toThrow(
      expect.objectContaining({ name: "Error", message: expect.stringMatching(/^(is|has|lacks) /) }),
    );
  });

  test("rejects attachments whose lengths do not add up to the announced total", () => {
    const kind = Object.keys(ENGINE_MESSAGE_KINDS).indexOf("pieces");
    const frame = encodeFrame(kind, '{"type":"pieces","call":1}', [new Uint8Array(4), new Uint8Array(4)]);
    frame.writeUInt32LE(3, 12);
    expect(() => receive(engineCodec, Buffer.concat([frame, Buffer.alloc(8)]), 64)).toThrow(
      /not belong to an attachment/,
    );
    frame.writeUInt32LE(100, 12);
    expect(() => receive(engineCodec, Buffer.concat([frame, Buffer.alloc(8)]), 64)).toThrow(/longer/);
  });
});
