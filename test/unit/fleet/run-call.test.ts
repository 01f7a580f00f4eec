import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type GenerateCall, type Report, reportSchema } from "../../../src/fleet/call-schemas.ts";
import { beginRemote, encodeGenerate } from "../../../src/fleet/remote-answers.ts";
import { RemoteCalls, WINDOW_BYTES } from "../../../src/fleet/remote-calls.ts";
import { ReportSender } from "../../../src/fleet/run-call.ts";
import { ServedCalls } from "../../../src/fleet/served-calls.ts";
import { decodeValue, type Frame } from "../../../src/fleet/wire-format.ts";
import type { Inference, InferenceEvent } from "../../../src/inference/inference.ts";
import { FleetWire, idOf } from "../../support/fleet-wire.ts";

const TOKEN = { id: 7, token: "a", logprob: -1, bytes: [97], top: [] };
const DONE: InferenceEvent = {
  type: "done",
  reason: "stop",
  usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 0, reasoningTokens: 0 },
  timings: { promptMs: 1, completionMs: 1 },
  totalMs: 2,
  tokensPerSecond: 1,
};

async function* answerEvents(): AsyncGenerator<InferenceEvent, undefined> {
  yield { type: "text-delta", text: "a", soFar: undefined };
  yield DONE;
}

/** Generates the first token before the answer has begun, like the real inference. */
const generate: Inference["generate"] = async ({ onLogprobs: onTokens, origin }) => {
  // The caller queues the request and enforces its time limit.
  expect(origin).toBe("remote");
  onTokens?.([TOKEN]);
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  return { model: "tiny", loadMs: 0, sampling: {}, warnings: [], events: answerEvents() };
};

test("sends tokens that were generated before the answer began after its beginning", async () => {
  const wire = new FleetWire();
  // The other methods are not called.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const inference = { generate } as unknown as Inference;
  const served = new ServedCalls({
    connection: wire.connect(),
    selfId: idOf("attic"),
    inference: () => inference,
    followRequest: async (_head, work) => {
      await work();
      return () => ({});
    },
    refusal: () => undefined,
  });
  const calls = new RemoteCalls(wire.connect(), idOf("desk"));
  const request: Omit<GenerateCall, "wantsTokens"> = {
    endpoint: "chat",
    input: { kind: "prompt", prompt: "a" },
    sampling: {},
    format: { type: "text" },
    logprobs: 0,
    defaults: { sampling: {} },
  };
  const seen: unknown[] = [];
  const onTokens = (tokens: readonly unknown[]): void => void seen.push(...tokens);
  const offer = { files: "", settings: "", name: "tiny", needsSlot: true };
  const { signal } = new AbortController();
  const call = calls.open(idOf("attic"), offer, encodeGenerate({ ...request, onLogprobs: onTokens }), signal);
  const stream = await beginRemote(call, "tiny", { onLogprobs: onTokens });
  const types = [];
  for await (const { type } of stream.events) types.push(type);
  expect(types).toEqual(["text-delta", "done"]);
  expect(seen).toEqual([TOKEN]);
  calls.close();
  served.close();
});

const BEGUN: Extract<Report, { type: "begun" }> = { type: "begun", loadMs: 0, sampling: {}, warnings: [] };

function text(piece: string): InferenceEvent {
  return { type: "text-delta", text: piece };
}

describe("report sender", () => {
  let sent: Omit<Frame, "call">[];
  let sender: ReportSender;
  /** Kinds of the sent frames, and the texts or types of the events in reports. */
  const sentText = (): string[] =>
    sent.map(({ kind, payload }) => {
      if (kind !== "last") return kind;
      const report = reportSchema.parse(decodeValue(payload, 100_000));
      if (report.type !== "events") return report.type;
      return report.events.map((event) => ("text" in event ? event.text : event.type)).join("");
    });

  beforeEach(() => {
    vi.useFakeTimers();
    sent = [];
    sender = new ReportSender((frame) => sent.push(frame), 1024 * 1024);
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("sends an acceptance only if no report shows it", async () => {
    sender.accept();
    sender.begin(BEGUN);
    await vi.advanceTimersByTimeAsync(200);
    expect(sentText()).toEqual(["begun"]);
    const slow = new ReportSender((frame) => sent.push(frame), 1024 * 1024);
    slow.accept();
    await vi.advanceTimersByTimeAsync(200);
    expect(sentText()).toEqual(["begun", "accepted"]);
  });

  test("sends token ids of the current try with a sign of life if the window is open", async () => {
    const chosen = (): unknown[] =>
      sent.map(({ kind, payload }): unknown => {
        if (kind !== "last") return kind;
        const report = reportSchema.parse(decodeValue(payload, 100_000));
        return report.type === "events" ? report.chosen : report.type;
      });
    sender.begin(BEGUN);
    await vi.advanceTimersByTimeAsync(1);
    sender.keepAlive();
    sender.addChosen({ ids: [1, 2], replaced: 1, failedTries: 0 });
    sender.addChosen({ ids: [3], replaced: 0, failedTries: 1 });
    sender.keepAlive();
    sender.keepAlive();
    expect(chosen()).toEqual(["begun", { ids: [3], replaced: 0, failedTries: 1 }, "alive"]);
    sender.event(text("a".repeat(WINDOW_BYTES / 2)));
    sender.event(text("a".repeat(WINDOW_BYTES / 2)));
    await vi.advanceTimersByTimeAsync(10);
    sender.keepAlive();
    sent = [];
    sender.addChosen({ ids: [4], replaced: 0, failedTries: 1 });
    sender.keepAlive();
    expect(chosen()).toEqual(["alive"]);
    sender.acknowledge(2 * WINDOW_BYTES);
    sender.keepAlive();
    sender.keepAlive();
    expect(chosen()).toEqual(["alive", { ids: [4], replaced: 0, failedTries: 1 }, "alive"]);
  });

  test("sends the beginning together with the first events", async () => {
    sender.begin(BEGUN);
    expect(sentText()).toEqual([]);
    sender.event({ type: "start" });
    await vi.advanceTimersByTimeAsync(1);
    expect(sentText()).toEqual(["begun", "start"]);
  });

  test("sends the first text at once, and combines text of the following ten milliseconds", async () => {
    sender.begin(BEGUN);
    sender.event(text("a"));
    await vi.advanceTimersByTimeAsync(0);
    expect(sentText()).toEqual(["begun", "a"]);
    for (const piece of ["b", "c", "d"]) {
      sender.event(text(piece));
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(sentText()).toEqual(["begun", "a"]);
    await vi.advanceTimersByTimeAsync(8);
    expect(sentText()).toEqual(["begun", "a", "bcd"]);
    await vi.advanceTimersByTimeAsync(20);
    sender.event(text("e"));
    await vi.advanceTimersByTimeAsync(0);
    expect(sentText()).toEqual(["begun", "a", "bcd", "e"]);
  });

  test("joins deltas of the same kind", async () => {
    sender.event(text("a"));
    await vi.advanceTimersByTimeAsync(0);
    for (const piece of ["b", "c"]) sender.event(text(piece));
    for (const piece of ["d", "e"]) sender.event({ type: "reasoning-delta", text: piece });
    for (const piece of ["{", "}"]) sender.event({ type: "tool-call-delta", index: 0, arguments: piece });
    sender.event({ type: "tool-call-delta", index: 1, arguments: "{}" });
    await vi.advanceTimersByTimeAsync(20);
    const report = reportSchema.parse(decodeValue(sent.at(-1)?.payload ?? new Uint8Array(), 1000));
    expect(report).toEqual({
      type: "events",
      events: [
        text("bc"),
        { type: "reasoning-delta", text: "de" },
        { type: "tool-call-delta", index: 0, arguments: "{}" },
        { type: "tool-call-delta", index: 1, arguments: "{}" },
      ],
    });
  });

  test("sends the end at once, together with buffered text", async () => {
    sender.event(text("a"));
    await vi.advanceTimersByTimeAsync(0);
    sender.event(text("b"));
    sender.event(DONE);
    await vi.advanceTimersByTimeAsync(0);
    expect(sentText()).toEqual(["a", "bdone"]);
  });

  test("sends tokens with the next event, and none while the window is full", async () => {
    const stop = new AbortController();
    sender.event(text("x".repeat(WINDOW_BYTES)));
    await vi.advanceTimersByTimeAsync(10);
    const before = sent.length;
    const next = sender.waitForWindow(stop.signal).then(() => sender.event(text("b")));
    for (let id = 0; id < 10_000; id += 1) {
      sender.addChosen({ ids: [id], replaced: 0 });
      sender.addTokens([{ id, token: "a", logprob: -1, bytes: [97], top: [] }]);
    }
    await vi.advanceTimersByTimeAsync(1000);
    expect(sent).toHaveLength(before);
    sender.acknowledge(WINDOW_BYTES);
    await vi.advanceTimersByTimeAsync(10);
    await next;
    const bytes = Buffer.concat(sent.slice(before).map(({ payload }) => payload));
    const report = reportSchema.parse(decodeValue(bytes, 1_000_000));
    const { chosen, tokens, ...rest } = report.type === "events" ? report : { type: report.type };
    expect(rest).toEqual({ type: "events", events: [text("b")] });
    expect([chosen?.ids.length, tokens?.length]).toEqual([10_000, 10_000]);
  });

  test("does not exceed the window", async () => {
    const stop = new AbortController();
    let events = 0;
    const all = (async () => {
      for (; events < 1000; events += 1) {
        await sender.waitForWindow(stop.signal);
        sender.event(text("x".repeat(4096)));
      }
    })().catch(() => undefined);
    await vi.advanceTimersByTimeAsync(100);
    const bytes = sent.reduce((sum, { payload }) => sum + payload.length, 0);
    expect(bytes).toBeGreaterThanOrEqual(WINDOW_BYTES);
    expect(bytes).toBeLessThan(2.5 * WINDOW_BYTES);
    const before = events;
    await vi.advanceTimersByTimeAsync(1000);
    expect(events).toBe(before);
    sender.acknowledge(bytes);
    await vi.advanceTimersByTimeAsync(100);
    expect(events).toBeGreaterThan(before);
    stop.abort();
    await all;
  });

  test("leaves no abort listener behind after a wait", async () => {
    const { signal } = new AbortController();
    const listeners = (): number => getEventListeners(signal, "abort").length;
    for (let wait = 0; wait < 3; wait += 1) {
      sender.report({ type: "answer", answer: "x".repeat(WINDOW_BYTES) });
      const windowWait = sender.waitForWindow(signal);
      expect(listeners()).toBe(1);
      sender.acknowledge(sent.reduce((sum, { payload }) => sum + payload.length, 0));
      await windowWait;
      expect(listeners()).toBe(0);
    }
  });
});
