import { pino } from "pino";
import { expect, test } from "vitest";
import { type GenerationEvent, MAX_GIVEN_TOKENS } from "../../../src/engine/protocol/generation.ts";
import { AnswerTokens, type Giving, MovingAnswer } from "../../../src/fleet/failover.ts";
import { MachineLost } from "../../../src/fleet/remote-calls.ts";
import { Transcript } from "../../../src/fleet/transcript.ts";
import { Deadline } from "../../../src/inference/deadline.ts";
import type { InferenceEvent } from "../../../src/inference/inference.ts";
import { RequestAccounting, type WorkFollower } from "../../../src/inference/request-accounting.ts";
import { FakeMetrics } from "../../support/fake-metrics.ts";

type Piece = Extract<GenerationEvent, { type: "text-delta" }>;

const FOLLOWER: WorkFollower = {
  request: "req",
  note: () => undefined,
  end: () => undefined,
  further: () => FOLLOWER,
};

/** More often nobody asks a stream that has ended, unless without an end. */
const MAX_READS = 20;

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
      if (reads > MAX_READS) throw new Error("it is asked again and again");
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

const told = (...ids: number[]) => ({ ids, replaced: 0 });

test("an answer of which no token is known is begun again", () => {
  expect(new AnswerTokens().begun.given).toBeUndefined();
});

test("the next machine goes on from all that any has told, also when the one before has not told them all again", () => {
  const tokens = new AnswerTokens();
  tokens.take(told(1, 2));
  tokens.take(told(3));
  tokens.rewind();
  tokens.take(told(1, 2));
  expect(tokens.begun.given).toEqual([1, 2, 3]);
  tokens.take(told(3, 4));
  expect(tokens.begun.given).toEqual([1, 2, 3, 4]);
});

test("a machine that has begun again and says something else is gone on with", () => {
  const tokens = new AnswerTokens();
  tokens.take(told(1, 2, 3));
  tokens.rewind();
  tokens.take(told(1, 7));
  expect(tokens.begun.given).toEqual([1, 7]);
});

test("tokens are counted that others would have been in place of", () => {
  const tokens = new AnswerTokens();
  tokens.take(told(1, 2));
  tokens.rewind();
  tokens.take({ ids: [1, 2], replaced: 2 });
  expect(tokens.replaced).toBe(2);
});

test("a machine that tells tokens without end takes no memory for them, and nobody goes on from them", () => {
  const tokens = new AnswerTokens();
  const many = told(...Array.from({ length: 65_536 }, () => 1));
  for (let count = 0; count < MAX_GIVEN_TOKENS; count += 65_536) tokens.take(many);
  expect(tokens.begun.given).toHaveLength(MAX_GIVEN_TOKENS);
  tokens.take(many);
  expect(tokens.begun.given).toBeUndefined();
});

test("the tokens of an answer that did not fit are forgotten when the next one begins", () => {
  const tokens = new AnswerTokens();
  tokens.take({ ids: [1, 2], replaced: 1, failedTries: 0 });
  expect(tokens.begun).toMatchObject({ given: [1, 2], failedTries: 0 });
  tokens.take({ ids: [7], replaced: 0, failedTries: 1 });
  expect(tokens.begun).toMatchObject({ given: [7], failedTries: 1 });
  expect(tokens.replaced).toBe(0);
  tokens.rewind();
  tokens.take({ ids: [7, 8], replaced: 0, failedTries: 1 });
  expect(tokens.begun).toMatchObject({ given: [7, 8], failedTries: 1 });
});
