import { beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { type ServerFrame, serverFrameSchema } from "../../src/api/native/chat-frames.ts";
import { activeRequests } from "../support/active-requests.ts";
import {
  AMPLE_TOKENS,
  ENDLESS_LIST,
  GREEDY,
  QUESTION_FOR_WEATHER,
  QUESTION_TO_THINK_ABOUT,
} from "../support/certain-requests.ts";
import { ALLOWED_ORIGIN, sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";

const ENDLESS = { max_tokens: 1500, format: ENDLESS_LIST };
const messages = [{ role: "user", content: "Hello" }];
const CITY = {
  type: "object",
  properties: { city: { enum: ["Rome", "Oslo"] } },
  required: ["city"],
  additionalProperties: false,
};

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
});

interface Peer {
  readonly frames: ServerFrame[];
  readonly socket: WebSocket;
  say(frame: object): void;
  /** Waits for this frame. */
  seen(expected: object): Promise<void>;
  /** Closes the socket and waits for its end. */
  leave(): Promise<void>;
}

function ask(content: string): object {
  return { messages: [{ role: "user", content }], ...GREEDY };
}

function connect(headers: Record<string, string> = {}): Promise<Peer> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${daemon.url.replace("http", "ws")}/ws/chat`, { headers });
    const frames: ServerFrame[] = [];
    socket.on("message", (data: Buffer) => {
      frames.push(serverFrameSchema.parse(JSON.parse(data.toString("utf8"))));
    });
    socket.once("error", reject);
    socket.once("unexpected-response", (_request, response) => {
      reject(new Error(`status ${response.statusCode}`));
    });
    socket.once("open", () =>
      resolve({
        frames,
        socket,
        say: (frame) => socket.send(JSON.stringify(frame)),
        seen: (expected) => expect.poll(() => frames).toContainEqual(expect.objectContaining(expected)),
        leave: () =>
          new Promise((left) => {
            socket.once("close", () => left());
            socket.close();
          }),
      }),
    );
  });
}

describe("WS /ws/chat", () => {
  test("answers a chat with start, deltas and done", async () => {
    const peer = await connect();
    peer.say({ type: "chat", id: "a", messages, max_tokens: 8 });
    await peer.seen({ type: "done", id: "a", completion_tokens: expect.any(Number) });
    expect(peer.frames[0]).toEqual({ type: "start", id: "a", model: "daybreak-mini" });
    expect(peer.frames.slice(1, -1).every(({ type }) => type === "delta")).toBe(true);
    await peer.leave();
  });

  test("runs several chats concurrently", async () => {
    const peer = await connect();
    const ids = ["a", "b", "c", "d", "e", "f"];
    // Long enough that the first chat still runs when the last one starts.
    for (const id of ids) peer.say({ type: "chat", id, messages, ...ENDLESS, max_tokens: 100 });
    for (const id of ids) await peer.seen({ type: "done", id });
    const firstEnd = peer.frames.findIndex(({ type }) => type === "done");
    const begun = new Set(peer.frames.slice(0, firstEnd).map((frame) => "id" in frame && frame.id));
    expect(begun.size).toBeGreaterThan(1);
    await peer.leave();
  });

  test("cancels one chat while the other continues", async () => {
    const peer = await connect();
    peer.say({ type: "chat", id: "long", messages, ...ENDLESS });
    await peer.seen({ type: "delta", id: "long" });
    peer.say({ type: "chat", id: "short", messages, max_tokens: 4 });
    peer.say({ type: "cancel", id: "long" });
    await peer.seen({ type: "done", id: "long", done_reason: "cancelled" });
    await peer.seen({ type: "done", id: "short" });
    await expect.poll(() => activeRequests(daemon)).toBe(0);
    await peer.leave();
  });

  test("calls tools and thinks", async () => {
    const peer = await connect();
    const tools = [{ type: "function", function: { name: "get_weather", parameters: CITY } }];
    const must = { tools, tool_choice: "required", max_tokens: AMPLE_TOKENS };
    peer.say({ type: "chat", id: "t", ...ask(QUESTION_FOR_WEATHER), ...must });
    peer.say({ type: "chat", id: "r", ...ask(QUESTION_TO_THINK_ABOUT), think: true, max_tokens: 4 });
    await peer.seen({ type: "tool_call", id: "t" });
    await peer.seen({ type: "done", id: "t", done_reason: "tool_calls" });
    await peer.seen({ type: "reasoning", id: "r" });
    await peer.seen({ type: "done", id: "r" });
    expect(peer.frames.some(({ type }) => type === "error")).toBe(false);
    await peer.leave();
  });

  test("answers pings and errors without closing", async () => {
    const peer = await connect();
    peer.socket.send("{");
    await peer.seen({ type: "error" });
    peer.socket.send(Buffer.from([1, 2]), { binary: true });
    peer.say({ type: "chat", id: "x", model: "no-such-model", messages });
    await peer.seen({ type: "error", id: "x" });
    peer.say({ type: "ping", id: "p" });
    await peer.seen({ type: "pong", id: "p" });
    expect(peer.frames.filter(({ type }) => type === "error")).toHaveLength(3);
    await peer.leave();
  });

  test("ends the chats of a client that disconnects", async () => {
    const peer = await connect();
    peer.say({ type: "chat", id: "a", messages, ...ENDLESS });
    await peer.seen({ type: "delta", id: "a" });
    peer.socket.terminate();
    await expect.poll(() => activeRequests(daemon)).toBe(0);
  });

  test("accepts only allowed origins", async () => {
    await (await connect({ origin: ALLOWED_ORIGIN })).leave();
    await expect(connect({ origin: "https://evil.example" })).rejects.toThrow("status 403");
  });

  test("answers a request without an upgrade with an explanation", async () => {
    const response = await fetch(`${daemon.url}/ws/chat`);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { type: "invalid_request" } });
  });
});
