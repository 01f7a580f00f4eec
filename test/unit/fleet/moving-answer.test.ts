import { pino } from "pino";
import { expect, test } from "vitest";
import type { GenerationEvent } from "../../../src/engine/protocol/generation.ts";
import { AnswerTokens } from "../../../src/fleet/answer-tokens.ts";
import { MovingAnswer, type Giving } from "../../../src/fleet/moving-answer.ts";
import { MachineLost } from "../../../src/fleet/remote-calls.ts";
import { Transcript } from "../../../src/fleet/transcript.ts";
import { Deadline } from "../../../src/inference/deadline.ts";
import type { WorkFollower } from "../../../src/inference/follow-work.ts";
import { RequestAccounting } from "../../../src/inference/request-accounting.ts";
import type { InferenceEvent } from "../../../src/inference/inference.ts";
import { FakeMetrics } from "../../support/fake-metrics.ts";

type Piece = Extract<GenerationEvent, { type: "text-delta" }>;

const FOLLOWER: WorkFollower = {
  request: "req",
  note: () => undefined,
  end: () => undefined,
  further: () => FOLLOWER,
};

/** More often nobody asks a stream that has ended, unless without an end. */
const MOST_READS = 20;

/** Says some pieces, and then nothing until it is left: then it ends, or fails. */
function giving(texts: readonly string[], failure?: Error, machine = "one") {
  const pieces = texts.map((text): Piece => ({ type: "text-delta", text, soFar: undefined }));
  const left = Promise.withResolvers<void>();
  let isLeft = false;
  let reads = 0;
  const leave = (): void => {
    isLeft = true;
    left.resolve();
  };
  const events: AsyncIterableIterator<InferenceEvent, undefined> = {
    async next() {
      reads += 1;
      if (reads > MOST_READS) throw new Error("it is asked again and again");
      const value = pieces.shift();
      if (value) return { done: false, value };
      if (failure) throw failure;
      await left.promise;
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => events,
  };
  return {
    stream: { model: "m", loadMs: 0, sampling: {}, warnings: [], events },
    machine,
    leave,
    isLeft: () => isLeft,
    reads: () => reads,
  };
}

function moving(
  first: Giving,
  again: () => Promise<Giving>,
  client = new AbortController(),
  logger = pino({ level: "silent" }),
) {
  const held = new DisposableStack();
  const accounting = new RequestAccounting(
    new FakeMetrics(),
    () => 0,
    () => FOLLOWER,
  );
  const account = held.use(accounting.begin("chat"));
  const deadline = held.use(new Deadline(client.signal, Number.POSITIVE_INFINITY));
  const answer = new MovingAnswer({
    first,
    again,
    transcript: new Transcript(),
    tokens: new AnswerTokens(),
    account,
    metrics: new FakeMetrics(),
    deadline,
    signal: client.signal,
    held,
    logger,
  });
  return { answer, deadline, accounting };
}

test("an answer that has moved ends with its deadline, also when nobody reads then", async () => {
  const second = giving(["One", " two"]);
  const { answer, deadline, accounting } = moving(
    giving(["One"], new MachineLost("it is silent")),
    async () => second,
  );
  expect(await answer.next()).toMatchObject({ value: { text: "One" } });
  expect(await answer.next()).toMatchObject({ value: { text: " two" } });
  deadline.abort(new Error("the time is up"));
  await expect(answer.next()).rejects.toThrow("the time is up");
  expect(await answer.next()).toEqual({ done: true, value: undefined });
  expect(second.isLeft()).toBe(true);
  expect(second.reads()).toBe(3);
  expect(accounting.active).toBe(0);
});

test("a reader that leaves while it waits for a piece ends the answer", async () => {
  const { answer, accounting } = moving(giving(["One"]), () => Promise.reject(new Error("begun for nobody")));
  await answer.next();
  const pending = answer.next();
  await answer.return();
  expect(await pending).toEqual({ done: true, value: undefined });
  expect(accounting.active).toBe(0);
});

test("an answer that moves while its reader leaves is not given to nobody", async () => {
  const second = giving(["One"]);
  const found = Promise.withResolvers<Giving>();
  const { answer } = moving(giving(["One"], new MachineLost("it is silent")), () => found.promise);
  await answer.next();
  const pending = answer.next();
  // Until it has begun to move.
  await new Promise((resolve) => setImmediate(resolve));
  const left = answer.return();
  found.resolve(second);
  await left;
  expect(await pending).toEqual({ done: true, value: undefined });
  expect(second.isLeft()).toBe(true);
});

test("an answer that ends without its last event goes on elsewhere", async () => {
  const first = giving(["One"]);
  const { answer } = moving(first, async () => giving(["One", " two"]));
  await answer.next();
  first.leave();
  expect(await answer.next()).toMatchObject({ value: { text: " two" } });
  await answer.return();
});

test("an answer whose client has left while it began holds nothing, also when nobody reads it", async () => {
  const client = new AbortController();
  client.abort(new Error("the client has left"));
  const first = giving(["One"]);
  const { answer, accounting } = moving(first, () => Promise.reject(new Error("begun for nobody")), client);
  expect(accounting.active).toBe(0);
  expect(first.isLeft()).toBe(true);
  await answer.return();
});

test("the log names the machine that an answer has lost, why, the one that goes on, and from how many tokens", async () => {
  const lines: unknown[] = [];
  const logger = pino(
    { base: null, timestamp: false },
    { write: (line) => void lines.push(JSON.parse(line)) },
  );
  const first = giving(["One"], new MachineLost("it is silent"), "desk");
  const next = giving(["One", " two"], undefined, "tower");
  const { answer } = moving(first, async () => next, undefined, logger);
  await answer.next();
  await answer.next();
  await answer.return();
  const of = { request_id: "req", model: "m" };
  expect(lines).toEqual([
    {
      ...of,
      level: 40,
      machine: "desk",
      why: "it is silent",
      msg: "fleet: an answer has lost its machine, and looks for another one",
    },
    { ...of, level: 30, machine: "tower", tokens: 0, msg: "fleet: an answer goes on" },
  ]);
});
