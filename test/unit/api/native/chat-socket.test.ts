import { describe, expect, test } from "vitest";
import { configSchema } from "../../../../src/config/schema.ts";
import { BodyMemory } from "../../../../src/http/app-env.ts";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { createInference } from "../../../../src/inference/create-inference.ts";
import { type ServerFrame, serverFrameSchema } from "../../../../src/api/native/chat-frames.ts";
import { ChatSocket, MAX_CHATS_PER_SOCKET } from "../../../../src/api/native/chat-socket.ts";
import { aborted, DONE, FakeEngine } from "../../../support/fake-engine.ts";
import { FakeModels } from "../../../support/fake-models.ts";
import { FakeMetrics } from "../../../support/fake-metrics.ts";
import { failing, PLAIN_TEXT, PROGRESS, THINKING_AND_TOOLS } from "../recorded-events.ts";
import { ABLE } from "../../../support/test-app.ts";

const BODY_LIMIT = 1024 * 1024;
const messages = [{ role: "user", content: "hi" }];

interface Peer {
  readonly socket: ChatSocket;
  readonly engine: FakeEngine;
  readonly frames: ServerFrame[];
  readonly metrics: FakeMetrics;
  /** Called before the peer receives a frame. */
  onFrame: (frame: ServerFrame) => Promise<void>;
  /** Called when the peer sends a frame. */
  countMessage: () => void;
  /** Calls of pause and resume. */
  readonly flow: ("pause" | "resume")[];
  say(frame: unknown): void;
  /** Waits for this frame. */
  seen(expected: object): Promise<void>;
}

function connect(assertServing: () => void = () => undefined): Peer {
  const engine = new FakeEngine({ slots: 4 });
  engine.script = async function* () {
    yield* PLAIN_TEXT;
  };
  const metrics = new FakeMetrics();
  const frames: ServerFrame[] = [];
  const socket = new ChatSocket({
    inference: createInference({
      models: new FakeModels([ABLE], engine),
      metrics,
      config: configSchema.parse({}),
    }),
    send: async (frame) => {
      frames.push(serverFrameSchema.parse(frame));
      await peer.onFrame(frame);
    },
    assertServing,
    onError: () => undefined,
    countMessage: () => peer.countMessage(),
    heldBodies: new BodyMemory(BODY_LIMIT),
    pause: () => peer.flow.push("pause"),
    resume: () => peer.flow.push("resume"),
  });
  const peer: Peer = {
    socket,
    engine,
    frames,
    metrics,
    onFrame: () => Promise.resolve(),
    countMessage: () => undefined,
    flow: [],
    say: (frame) => socket.receive(JSON.stringify(frame)),
    seen: (expected) => expect.poll(() => frames).toContainEqual(expect.objectContaining(expected)),
  };
  return peer;
}

/** Events of a chat that runs until it is cancelled. */
async function* endless(_request: unknown, signal: AbortSignal): AsyncGenerator<{ type: "start" }> {
  yield { type: "start" };
  await aborted(signal);
}

describe("a WebSocket chat", () => {
  test("is answered with start, deltas and done frames, all with its ID", async () => {
    const peer = connect();
    peer.say({ type: "chat", id: "a", messages });
    await peer.seen({ type: "done" });
    expect(peer.frames).toEqual([
      { type: "start", id: "a", model: "fake" },
      { type: "delta", id: "a", content: "Hello" },
      { type: "delta", id: "a", content: " world" },
      {
        type: "done",
        id: "a",
        model: "fake",
        done_reason: "stop",
        total_duration_ms: expect.any(Number),
        prompt_tokens: 5,
        cached_tokens: 0,
        completion_tokens: 2,
        tokens_per_second: 100,
      },
    ]);
    expect(peer.metrics.finished).toEqual(["chat"]);
  });

  test("reports the progress of the prompt if requested", async () => {
    const peer = connect();
    peer.say({ type: "chat", id: "a", messages, return_progress: true });
    await peer.seen({ type: "done" });
    expect(peer.frames).toContainEqual({ type: "progress", id: "a", ...PROGRESS });
  });

  test("reports token counts and times with each delta if requested", async () => {
    const peer = connect();
    const usage = { promptTokens: 5, completionTokens: 2, cachedTokens: 1, reasoningTokens: 1 };
    const soFar = { usage, timings: { promptMs: 10, completionMs: 40 } };
    peer.engine.script = async function* ({ timings }) {
      const more = timings ? { soFar } : {};
      yield { type: "start" };
      yield { type: "reasoning-delta", text: "Hm", ...more };
      yield { type: "text-delta", text: "Hi", ...more };
      yield DONE;
    };
    const figures = { prompt_tokens: 5, cached_tokens: 1, completion_tokens: 2, tokens_per_second: 50 };
    peer.say({ type: "chat", id: "a", messages, timings_per_token: true });
    await peer.seen({ type: "done" });
    expect(peer.frames).toContainEqual({ type: "reasoning", id: "a", content: "Hm", ...figures });
    expect(peer.frames).toContainEqual({ type: "delta", id: "a", content: "Hi", ...figures });
    peer.say({ type: "chat", id: "b", messages });
    await peer.seen({ type: "done", id: "b" });
    expect(peer.frames).toContainEqual({ type: "delta", id: "b", content: "Hi" });
  });

  test("sends reasoning and complete tool calls", async () => {
    const peer = connect();
    peer.engine.script = async function* () {
      yield* THINKING_AND_TOOLS;
    };
    peer.say({ type: "chat", id: "a", messages });
    await peer.seen({ type: "done", done_reason: "tool_calls" });
    expect(peer.frames.map(({ type }) => type)).toEqual([
      "start",
      "reasoning",
      "reasoning",
      "delta",
      "delta",
      "tool_call",
      "tool_call",
      "done",
    ]);
    expect(peer.frames[5]).toEqual({
      type: "tool_call",
      id: "a",
      tool_call: {
        id: "call_a",
        type: "function",
        function: { name: "get_weather", arguments: '{"city":"Köln"}' },
      },
    });
  });

  test("runs concurrently with others on the same socket", async () => {
    const peer = connect();
    const texts = ["one", "two", "three"];
    for (const id of texts) peer.say({ type: "chat", id, messages });
    expect(peer.socket.chats).toBe(3);
    for (const id of texts) await peer.seen({ type: "done", id });
    for (const id of texts) {
      const frames = peer.frames.filter((frame) => "id" in frame && frame.id === id);
      expect(frames.map(({ type }) => type)).toEqual(["start", "delta", "delta", "done"]);
    }
  });

  test("frees its ID with its last frame", async () => {
    const peer = connect();
    let again = 0;
    peer.onFrame = async ({ type }) => {
      if (type !== "done" || again > 0) return;
      again += 1;
      peer.say({ type: "chat", id: "a", messages });
    };
    peer.say({ type: "chat", id: "a", messages });
    await expect.poll(() => peer.frames.filter(({ type }) => type === "done")).toHaveLength(2);
    expect(peer.frames.some(({ type }) => type === "error")).toBe(false);
  });

  test("waits for a slow reader", async () => {
    const peer = connect();
    const { promise, resolve } = Promise.withResolvers<void>();
    peer.onFrame = ({ type }) => (type === "delta" ? promise : Promise.resolve());
    peer.say({ type: "chat", id: "a", messages });
    await peer.seen({ type: "delta", content: "Hello" });
    peer.say({ type: "ping" });
    await peer.seen({ type: "pong" });
    expect(peer.frames.filter(({ type }) => type === "delta")).toHaveLength(1);
    resolve();
    await peer.seen({ type: "done" });
  });
});

describe("cancelling", () => {
  test("ends one chat without affecting the others", async () => {
    const peer = connect();
    peer.engine.script = endless;
    peer.say({ type: "chat", id: "a", messages });
    peer.say({ type: "chat", id: "b", messages });
    await peer.seen({ type: "start", id: "b" });
    peer.say({ type: "cancel", id: "a" });
    await peer.seen({ type: "done", id: "a", done_reason: "cancelled" });
    expect(peer.socket.chats).toBe(1);
    expect(peer.engine.inFlight).toBe(1);
    peer.socket.close();
    await expect.poll(() => peer.engine.inFlight).toBe(0);
  });

  test("ignores an unknown ID, whose chat may just have ended", () => {
    const peer = connect();
    peer.say({ type: "cancel", id: "gone" });
    expect(peer.frames).toEqual([]);
  });
});

describe("closing the socket", () => {
  test("cancels all chats and stops sending", async () => {
    const peer = connect();
    peer.engine.script = endless;
    peer.say({ type: "chat", id: "a", messages });
    await peer.seen({ type: "start" });
    peer.socket.close();
    await expect.poll(() => peer.metrics.totals.activeRequests).toBe(0);
    expect(peer.frames).toHaveLength(1);
  });

  test("can wait until no chat is running", async () => {
    const peer = connect();
    let idle = 0;
    peer.say({ type: "chat", id: "a", messages });
    peer.socket.whenIdle(() => (idle += 1));
    expect(idle).toBe(0);
    await expect.poll(() => idle).toBe(1);
    expect(peer.frames.at(-1)).toMatchObject({ type: "done" });
  });
});

describe("errors", () => {
  test.for<[string, string, object]>([
    ["no JSON", "{", { error: { code: "invalid_json" } }],
    ["no object", "1", { error: { code: "invalid_parameter" } }],
    ["an unknown type", '{"type":"sing","id":"a"}', { id: "a", error: { code: "invalid_parameter" } }],
    ["no id", '{"type":"chat","messages":[]}', { error: { code: "invalid_parameter" } }],
    [
      "a wrong field",
      '{"type":"chat","id":"a","messages":[{"role":"user","content":1}]}',
      { id: "a", error: { message: expect.stringMatching(/^messages\.0\.content:/) } },
    ],
    [
      "an unknown model",
      '{"type":"chat","id":"a","model":"x","messages":[{"role":"user","content":""}]}',
      { id: "a", error: { type: "not_found", code: "model_not_found" } },
    ],
  ])("%s is answered with an error frame", async ([, text, expected]) => {
    const peer = connect();
    peer.socket.receive(text);
    await peer.seen({ type: "error" });
    expect(peer.frames).toMatchObject([{ type: "error", ...expected }]);
  });

  test("rejects binary frames", () => {
    const peer = connect();
    peer.socket.receiveBinary();
    expect(peer.frames).toMatchObject([{ type: "error", error: { code: "invalid_json" } }]);
  });

  test("a failed answer ends with an error frame", async () => {
    const peer = connect();
    peer.engine.script = () => failing(new ServiceError("engine_crashed", "It is gone."));
    peer.say({ type: "chat", id: "a", messages });
    await peer.seen({ type: "error", id: "a" });
    expect(peer.frames.map(({ type }) => type)).toEqual(["start", "delta", "error"]);
    expect(peer.socket.chats).toBe(0);
  });

  test("rejects an ID in use without affecting its chat", async () => {
    const peer = connect();
    peer.say({ type: "chat", id: "a", messages });
    peer.say({ type: "chat", id: "a", messages });
    expect(peer.frames).toMatchObject([{ type: "error", id: "a", error: { code: "invalid_parameter" } }]);
    await peer.seen({ type: "done", id: "a" });
  });

  test("limits the number of chats per socket", async () => {
    const peer = connect();
    peer.engine.script = endless;
    for (let chat = 0; chat <= MAX_CHATS_PER_SOCKET; chat += 1) {
      peer.say({ type: "chat", id: String(chat), messages });
    }
    expect(peer.frames).toMatchObject([{ id: String(MAX_CHATS_PER_SOCKET), error: { code: "overloaded" } }]);
    peer.socket.close();
    await expect.poll(() => peer.metrics.totals.activeRequests).toBe(0);
  });

  test("rejects new chats while the daemon drains", () => {
    const peer = connect(() => {
      throw new ServiceError("shutting_down", "Later.");
    });
    peer.say({ type: "chat", id: "a", messages });
    expect(peer.frames).toMatchObject([{ id: "a", error: { code: "shutting_down" } }]);
  });
});

test("answers ping with pong and the same ID, if any", () => {
  const peer = connect();
  peer.say({ type: "ping" });
  peer.say({ type: "ping", id: "p" });
  expect(peer.frames).toEqual([{ type: "pong" }, { type: "pong", id: "p" }]);
});

describe("a long frame", () => {
  const long = [{ role: "user", content: "x".repeat(600_000) }];

  test("is parsed in time slices, pausing the socket and keeping the order of frames", async () => {
    const peer = connect();
    peer.engine.script = endless;
    peer.say({ type: "chat", id: "long", messages: long });
    peer.say({ type: "cancel", id: "long" });
    expect(peer.flow).toEqual(["pause"]);
    await peer.seen({ type: "done", id: "long", done_reason: "cancelled" });
    await expect.poll(() => peer.flow).toEqual(["pause", "resume"]);
  });

  test("with invalid JSON, too deep nesting or too many values is rejected, and the next frame is answered", async () => {
    const peer = connect();
    peer.socket.receive(`{"type":"chat","id":"${"x".repeat(400_000)}`);
    peer.socket.receive("[".repeat(400_000));
    peer.socket.receive(`[${"{},".repeat(200_000)}1]`);
    peer.say({ type: "ping", id: "after" });
    await peer.seen({ type: "pong", id: "after" });
    expect(peer.frames.map((frame) => (frame.type === "error" ? frame.error.message : frame.type))).toEqual([
      "The frame is not valid JSON in UTF-8.",
      "The frame may be nested 100 levels deep at most.",
      "The frame may hold 131072 values other than numbers, names of fields included at most.",
      "pong",
    ]);
  });

  test("is rejected if the frames of all chats exceed the memory limit", async () => {
    const peer = connect();
    peer.engine.script = endless;
    for (const id of ["a", "b", "c", "d", "e", "f", "g", "h"]) peer.say({ type: "chat", id, messages: long });
    await peer.seen({ type: "error", id: "h", error: expect.objectContaining({ code: "overloaded" }) });
    peer.socket.close();
  });
});

test("frames count against the rate limit, whose error names the frame's ID", async () => {
  const peer = connect();
  let left = 2;
  peer.countMessage = () => {
    left -= 1;
    if (left < 0) throw new ServiceError("rate_limited", "Too many.");
  };
  for (const id of ["a", "b", "c"]) peer.say({ type: "ping", id });
  expect(peer.frames).toMatchObject([
    { type: "pong", id: "a" },
    { type: "pong", id: "b" },
    { type: "error", id: "c", error: { code: "rate_limited" } },
  ]);
});
