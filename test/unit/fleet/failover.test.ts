import { pino } from "pino";
import { expect, test } from "vitest";
import { type GenerationEvent, MAX_PREFIX_TOKENS } from "../../../src/engine/protocol/generation.ts";
import { AnswerTokens, type RunningAnswer, FailoverAnswer } from "../../../src/fleet/failover.ts";
import { MachineLost } from "../../../src/fleet/remote-calls.ts";
import { Transcript } from "../../../src/fleet/transcript.ts";
import { Deadline } from "../../../src/inference/deadline.ts";
import type { InferenceEvent } from "../../../src/inference/inference.ts";
import { RequestAccounting, type WorkObserver } from "../../../src/inference/request-accounting.ts";
import { FakeMetrics } from "../../support/fake-metrics.ts";

type Piece = Extract<GenerationEvent, { type: "text-delta" }>;

const FOLLOWER: WorkObserver = {
  request: "req",
  report: () => undefined,
  end: () => undefined,
  fork: () => FOLLOWER,
};

/** Reads of an ended stream; more of them mean an endless loop. */
const MAX_READS = 20;

/** Sends some texts, then waits until it is stopped: then it ends, or fails. */
function runningAnswer(texts: readonly string[], failure?: Error, machine = "one") {
  const pieces = texts.map((text): Piece => ({ type: "text-delta", text, soFar: undefined }));
  const left = Promise.withResolvers<void>();
  let isLeft = false;
  let reads = 0;
  const stop = (): void => {
    isLeft = true;
    left.resolve();
  };
  const events: AsyncIterableIterator<InferenceEvent, undefined> = {
    async next() {
      reads += 1;
      if (reads > MAX_READS) throw new Error("the stream is read again and again after its end");
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
    stop,
    isLeft: () => isLeft,
    reads: () => reads,
  };
}

function failoverAnswer(
  first: RunningAnswer,
  restart: () => Promise<RunningAnswer>,
  client = new AbortController(),
  logger = pino({ level: "silent" }),
) {
  const resources = new DisposableStack();
  const accounting = new RequestAccounting(
    new FakeMetrics(),
    () => 0,
    () => FOLLOWER,
  );
  const account = resources.use(accounting.begin("chat"));
  const deadline = resources.use(new Deadline(client.signal, Number.POSITIVE_INFINITY));
  const answer = new FailoverAnswer({
    first,
    restart: restart,
    transcript: new Transcript(),
    tokens: new AnswerTokens(),
    account,
    metrics: new FakeMetrics(),
    deadline,
    signal: client.signal,
    resources: resources,
    logger,
  });
  return { answer, deadline, accounting };
}

test("a moved answer ends at its deadline although it is not being read", async () => {
  const second = runningAnswer(["One", " two"]);
  const { answer, deadline, accounting } = failoverAnswer(
    runningAnswer(["One"], new MachineLost("it is silent")),
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

test("return() ends an answer while next() waits for output", async () => {
  const { answer, accounting } = failoverAnswer(runningAnswer(["One"]), () =>
    Promise.reject(new Error("begun for nobody")),
  );
  await answer.next();
  const pending = answer.next();
  await answer.return();
  expect(await pending).toEqual({ done: true, value: undefined });
  expect(accounting.active).toBe(0);
});

test("an answer that finds its new machine after return() is stopped there", async () => {
  const second = runningAnswer(["One"]);
  const found = Promise.withResolvers<RunningAnswer>();
  const { answer } = failoverAnswer(
    runningAnswer(["One"], new MachineLost("it is silent")),
    () => found.promise,
  );
  await answer.next();
  const pending = answer.next();
  // Lets the move begin.
  await new Promise((resolve) => setImmediate(resolve));
  const left = answer.return();
  found.resolve(second);
  await left;
  expect(await pending).toEqual({ done: true, value: undefined });
  expect(second.isLeft()).toBe(true);
});

test("an answer that ends without a done event continues on another machine", async () => {
  const first = runningAnswer(["One"]);
  const { answer } = failoverAnswer(first, async () => runningAnswer(["One", " two"]));
  await answer.next();
  first.stop();
  expect(await answer.next()).toMatchObject({ value: { text: " two" } });
  await answer.return();
});

test("an answer whose client disconnected before it began releases its resources without being read", async () => {
  const client = new AbortController();
  client.abort(new Error("the client has left"));
  const first = runningAnswer(["One"]);
  const { answer, accounting } = failoverAnswer(
    first,
    () => Promise.reject(new Error("begun for nobody")),
    client,
  );
  expect(accounting.active).toBe(0);
  expect(first.isLeft()).toBe(true);
  await answer.return();
});

test("the log names the lost machine, the reason, the next machine and the number of known tokens", async () => {
  const lines: unknown[] = [];
  const logger = pino(
    { base: null, timestamp: false },
    { write: (line) => void lines.push(JSON.parse(line)) },
  );
  const first = runningAnswer(["One"], new MachineLost("it is silent"), "desk");
  const next = runningAnswer(["One", " two"], undefined, "tower");
  const { answer } = failoverAnswer(first, async () => next, undefined, logger);
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
      msg: "fleet: the machine of an answer is lost; looking for another one",
    },
    { ...of, level: 30, machine: "tower", tokens: 0, msg: "fleet: another machine continues an answer" },
  ]);
});

const tokenIds = (...ids: number[]) => ({ ids, replaced: 0 });

test("an answer without known tokens begins anew", () => {
  expect(new AnswerTokens().continuation.given).toBeUndefined();
});

test("the next machine continues from all known tokens, even those that the last machine had not repeated yet", () => {
  const tokens = new AnswerTokens();
  tokens.add(tokenIds(1, 2));
  tokens.add(tokenIds(3));
  tokens.rewind();
  tokens.add(tokenIds(1, 2));
  expect(tokens.continuation.given).toEqual([1, 2, 3]);
  tokens.add(tokenIds(3, 4));
  expect(tokens.continuation.given).toEqual([1, 2, 3, 4]);
});

test("tokens of a machine that began anew replace the differing ones", () => {
  const tokens = new AnswerTokens();
  tokens.add(tokenIds(1, 2, 3));
  tokens.rewind();
  tokens.add(tokenIds(1, 7));
  expect(tokens.continuation.given).toEqual([1, 7]);
});

test("counts tokens that the continuing machine would have chosen differently", () => {
  const tokens = new AnswerTokens();
  tokens.add(tokenIds(1, 2));
  tokens.rewind();
  tokens.add({ ids: [1, 2], replaced: 2 });
  expect(tokens.replaced).toBe(2);
});

test("stops recording tokens over the limit, and then has no resume point", () => {
  const tokens = new AnswerTokens();
  const many = tokenIds(...Array.from({ length: 65_536 }, () => 1));
  for (let count = 0; count < MAX_PREFIX_TOKENS; count += 65_536) tokens.add(many);
  expect(tokens.continuation.given).toHaveLength(MAX_PREFIX_TOKENS);
  tokens.add(many);
  expect(tokens.continuation.given).toBeUndefined();
});

test("drops the tokens of a failed try when the next one begins", () => {
  const tokens = new AnswerTokens();
  tokens.add({ ids: [1, 2], replaced: 1, failedTries: 0 });
  expect(tokens.continuation).toMatchObject({ given: [1, 2], failedTries: 0 });
  tokens.add({ ids: [7], replaced: 0, failedTries: 1 });
  expect(tokens.continuation).toMatchObject({ given: [7], failedTries: 1 });
  expect(tokens.replaced).toBe(0);
  tokens.rewind();
  tokens.add({ ids: [7, 8], replaced: 0, failedTries: 1 });
  expect(tokens.continuation).toMatchObject({ given: [7, 8], failedTries: 1 });
});
