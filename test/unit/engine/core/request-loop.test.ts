import { describe, expect, test } from "vitest";
import type { RequestResult } from "../../../../src/engine/core/loop-request.ts";
import { StepControl } from "../../../../src/engine/core/kernel-controls.ts";
import { RequestLoop } from "../../../../src/engine/core/request-loop.ts";
import type { ActionResult, WorkerActions } from "../../../../src/engine/core/wllama-api.ts";
import { EngineCallError, EngineFatalError } from "../../../../src/engine/core/wllama-session.ts";
import { NEVER } from "../../../support/engine-fixture.ts";
import { pulled } from "../../../support/generated.ts";

const call = {
  _name: "cmpl_req",
  is_chat: false,
  data_json: "{}",
  files: [],
} satisfies WorkerActions["completion"];

/** Result of a poll. A function runs while the step is computed. */
type Answer = ActionResult | Error | (() => Promise<ActionResult>);

/** A fake worker: each poll of a request returns the next of its `results`, then the request ends. */
class FakeSession {
  readonly log: string[] = [];
  /** Requests whose polls computed a step. */
  readonly steps: number[] = [];
  readonly #left = new Map<number, Answer[]>();
  readonly #results: (id: number) => Answer[];
  #lastId = 0;
  refuse: Error | undefined;

  constructor(results: (id: number) => Answer[]) {
    this.#results = results;
  }

  async act<Name extends keyof WorkerActions>(
    name: Name,
    body: WorkerActions[Name],
    withoutStep = false,
  ): Promise<ActionResult> {
    await Promise.resolve();
    if (name === "completion") {
      if (this.refuse) throw this.refuse;
      const id = ++this.#lastId;
      this.#left.set(id, this.#results(id));
      this.log.push(`start ${id}`);
      return { success: true, req_id: id };
    }
    const id = "req_id" in body ? body.req_id : 0;
    this.log.push(`${name === "cancel" ? "cancel" : "poll"} ${id}`);
    if (!withoutStep) this.steps.push(id);
    if (name === "cancel") {
      this.#left.delete(id);
      return { success: true };
    }
    const next = this.#left.get(id)?.shift() ?? { success: true, has_more: false, data_json: "" };
    if (next instanceof Error) throw next;
    return typeof next === "function" ? await next() : next;
  }

  async call(verb: string, ...args: readonly unknown[]): Promise<unknown> {
    if (verb === "fail") throw new Error("no");
    this.log.push(`call ${String(args[0])}`);
    return args[0];
  }
}

const partial = (data: unknown): ActionResult => ({
  success: true,
  has_more: true,
  data_json: JSON.stringify(data),
});
const last = (data: unknown): ActionResult => ({ ...partial(data), has_more: false });
const nothing: ActionResult = { success: true, has_more: true, data_json: "" };

async function drain(results: AsyncGenerator<RequestResult>): Promise<RequestResult[]> {
  const all: RequestResult[] = [];
  for await (const result of results) all.push(result);
  return all;
}

const reading = (processed: number): ActionResult =>
  partial({ prompt_progress: { processed, total: 100, cache: 10 } });

/** A loop whose requests have these results, and the calls that it made to control steps. */
function loopWith(results: (id: number) => Answer[], draftTokens = () => 0) {
  const stepCalls: string[] = [];
  const measured: number[] = [];
  const session = new FakeSession(results);
  class RecordedSteps extends StepControl {
    override get draftTokens() {
      return draftTokens();
    }
    override prepareStep(isOnlyRequest: boolean, isUnsplittable: boolean) {
      stepCalls.push(`${isOnlyRequest ? "single" : "shared"}${isUnsplittable ? ", one step" : ""}`);
    }
    override abortStep() {
      stepCalls.push("abort");
    }
    override recordStep(tokens: number) {
      measured.push(tokens);
    }
  }
  const loop = new RequestLoop(session, new RecordedSteps(1, 1, undefined));
  return { loop, session, stepCalls, measured };
}

/** Step calls of a loop whose request is cancelled during the step after these results. */
async function stepsOfCancelled(results: Answer[], others = 0, files: Uint8Array[] = []): Promise<string[]> {
  const controller = new AbortController();
  const cancel = async (): Promise<ActionResult> => {
    controller.abort(new Error("enough"));
    await new Promise((resolve) => setImmediate(resolve));
    return nothing;
  };
  const { loop, stepCalls } = loopWith((id) => (id === 1 ? [...results, cancel] : [partial("a"), last("b")]));
  const running = drain(run(loop, "completion", { ...call, files }, controller.signal));
  const otherRuns = Array.from({ length: others }, () => drain(run(loop, "completion", call, NEVER)));
  await expect(running).rejects.toThrow("enough");
  await Promise.all(otherRuns);
  return stepCalls;
}

function run<Action extends "completion" | "embedding">(
  loop: RequestLoop,
  action: Action,
  body: WorkerActions[Action],
  signal: AbortSignal,
): AsyncGenerator<RequestResult> {
  return pulled((onResult, abort) => loop.run(action, body, onResult, abort), signal);
}

describe("the loop that drives llama.cpp", () => {
  test("polls until the last result and skips empty results", async () => {
    const session = new FakeSession(() => [partial(null), nothing, partial("a"), last("b")]);
    expect(await drain(run(new RequestLoop(session), "completion", call, NEVER))).toEqual([
      { kind: "accepted" },
      { kind: "data", data: "a" },
      { kind: "data", data: "b" },
    ]);
  });

  test("runs at most one call without a slot between two polls", async () => {
    const session = new FakeSession((id) => [...Array.from({ length: 5 }, () => partial(id)), last(id)]);
    const loop = new RequestLoop(session);
    const running = drain(run(loop, "completion", call, NEVER));
    const calls = [1, 2, 3].map((number) => loop.call("verb", [number]));
    expect(await Promise.all(calls)).toEqual([1, 2, 3]);
    await running;
    const first = session.log.indexOf("call 1");
    expect(session.log.slice(first, first + 5)).toEqual(["call 1", "poll 1", "call 2", "poll 1", "call 3"]);
  });

  test("runs calls without a slot while there are no requests, and rejects when they fail", async () => {
    const loop = new RequestLoop(new FakeSession(() => []));
    const failing = loop.call("fail", []);
    const next = loop.call("verb", ["yes"]);
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe("yes");
  });

  test("continues after a call that was aborted before it began", async () => {
    const session = new FakeSession((id) => [...Array.from({ length: 5 }, () => partial(id)), last(id)]);
    const loop = new RequestLoop(session);
    const running = drain(run(loop, "completion", call, NEVER));
    const failing = loop.call("verb", [], AbortSignal.abort(new Error("the client has left")));
    await expect(failing).rejects.toThrow("the client has left");
    await running;
    expect(await loop.call("verb", ["yes"])).toBe("yes");
  });

  test("polls requests round robin", async () => {
    const session = new FakeSession((id) => [...Array.from({ length: 5 }, () => partial(id)), last(id)]);
    const loop = new RequestLoop(session);
    await Promise.all([1, 2].map(() => drain(run(loop, "completion", call, NEVER))));
    const polls = session.log.filter((line) => line.startsWith("poll"));
    const both = polls.slice(polls.indexOf("poll 2"), polls.lastIndexOf("poll 1") + 1);
    expect(both).toEqual(both.map((_, index) => (index % 2 === 0 ? "poll 2" : "poll 1")));
    expect(both.length).toBeGreaterThan(2);
  });

  test("computes one step per round", async () => {
    const session = new FakeSession((id) => [...Array.from({ length: 9 }, () => partial(id)), last(id)]);
    const loop = new RequestLoop(session);
    await Promise.all([1, 2, 3].map(() => drain(run(loop, "completion", call, NEVER))));
    const polls = session.log.filter((line) => line.startsWith("poll")).length;
    expect(polls).toBe(30);
    expect(session.steps.length).toBeLessThan(15);
  });

  test("computes no further step before the first token has been collected", async () => {
    const progress = { prompt_progress: { processed: 1, total: 1 } };
    const session = new FakeSession(() => [partial(null), partial(progress), partial("token"), last("end")]);
    await drain(run(new RequestLoop(session), "completion", call, NEVER));
    expect(session.log.filter((line) => line === "poll 1")).toHaveLength(4);
    expect(session.steps).toHaveLength(2);
  });

  test.each([
    "[json.exception.type_error.316] invalid UTF-8 byte at index 0: 0xF5",
    "[json.exception.type_error.316] incomplete UTF-8 string; last byte: 0xE3",
    "an error of another request, logged in the same step\n" +
      "[json.exception.type_error.316] invalid UTF-8 byte at index 12: 0x80",
  ])("keeps polling after text that is not valid UTF-8: %s", async (message) => {
    const session = new FakeSession(() => [partial("a"), new EngineCallError(message), last("b")]);
    expect(
      (await drain(run(new RequestLoop(session), "completion", call, NEVER))).map(({ kind }) => kind),
    ).toEqual(["data", "unreadable", "data"]);
  });

  test.each([
    "The model produced output that does not match the expected peg-native format",
    "Invalid diff: '[json.exception.type_error.316] invalid UTF-8 byte at index 0: 0xF5' not found at start of ''",
  ])("fails a request and frees its slot when llama.cpp cannot parse the answer: %s", async (message) => {
    // After such an exception llama.cpp reports "has_more" forever.
    const forever = Array.from({ length: 50 }, () => nothing);
    const session = new FakeSession((id) =>
      id === 1
        ? [partial("a"), new EngineCallError(message), ...forever]
        : [partial("x"), partial("y"), last("z")],
    );
    const loop = new RequestLoop(session);
    const [lost, other] = await Promise.allSettled(
      [1, 2].map(() => drain(run(loop, "completion", call, NEVER))),
    );
    expect(lost).toMatchObject({ status: "rejected", reason: { message } });
    expect(other).toMatchObject({
      status: "fulfilled",
      value: [{ data: "x" }, { data: "y" }, { data: "z" }],
    });
    expect(session.log.filter((line) => line.startsWith("cancel"))).toEqual(["cancel 1"]);
    expect(session.log.filter((line) => line === "poll 1")).toHaveLength(2);
  });

  test("fails a request when the engine is lost, without further calls", async () => {
    const session = new FakeSession(() => [partial("a"), new EngineFatalError("gone")]);
    await expect(drain(run(new RequestLoop(session), "completion", call, NEVER))).rejects.toThrow(
      EngineFatalError,
    );
    expect(session.log).toEqual(["start 1", "poll 1", "poll 1"]);
  });

  test("does not poll for a request that llama.cpp rejects", async () => {
    const session = new FakeSession(() => []);
    session.refuse = new EngineCallError("bad grammar");
    await expect(drain(run(new RequestLoop(session), "completion", call, NEVER))).rejects.toThrow(
      "bad grammar",
    );
    expect(session.log).toEqual([]);
  });

  test("cancels a request before the next polls of others", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const session = new FakeSession(() => Array.from({ length: 20 }, () => partial("x")));
    const loop = new RequestLoop(session);
    const other = drain(run(loop, "completion", call, NEVER));
    const cancelled = (async () => {
      for await (const { kind } of run(loop, "completion", call, controller.signal)) {
        if (kind === "data") controller.abort(reason);
      }
    })();
    await expect(cancelled).rejects.toBe(reason);
    const at = session.log.indexOf("cancel 2");
    const firstPoll = session.log.indexOf("poll 2");
    // Only the poll that was in progress, not one for each remaining result of the other request.
    expect(
      session.log.slice(firstPoll, at).filter((line) => line.startsWith("poll")).length,
    ).toBeLessThanOrEqual(3);
    await other;
    expect(session.log.slice(at)).not.toContain("poll 2");
  });

  test("cancels a request whose reader stops early, but not one that has ended", async () => {
    const session = new FakeSession((id) =>
      id === 1 ? Array.from({ length: 50 }, () => partial("x")) : [last("y")],
    );
    const loop = new RequestLoop(session);
    for await (const result of run(loop, "completion", call, NEVER)) if (result) break;
    await drain(run(loop, "completion", call, NEVER));
    expect(session.log.filter((line) => line.startsWith("cancel"))).toEqual(["cancel 1"]);
  });

  describe("with control of steps", () => {
    test("records the prompt tokens of each step, excluding cached tokens", async () => {
      const { loop, measured } = loopWith(() => [
        partial(null),
        reading(10),
        reading(42),
        reading(100),
        last("b"),
      ]);
      await drain(run(loop, "completion", call, NEVER));
      expect(measured.filter((tokens) => tokens > 0)).toEqual([32, 58]);
    });

    test("prepares steps for a single request, for a text in one step, and for several requests", async () => {
      const { loop, stepCalls } = loopWith(() => [partial(null), partial("a"), last("b")]);
      await drain(run(loop, "embedding", { ...call, _name: "embd_req" }, NEVER));
      expect(new Set(stepCalls)).toEqual(new Set(["single, one step"]));
      stepCalls.length = 0;
      await Promise.all([1, 2].map(() => drain(run(loop, "completion", call, NEVER))));
      expect(stepCalls).toContain("shared");
    });

    test("aborts the step of a request that is cancelled during its prompt", async () => {
      expect(await stepsOfCancelled([partial(null), reading(20), nothing])).toEqual([
        "single",
        "single",
        "abort",
      ]);
    });

    test("does not abort a step of a request with an image", async () => {
      const image = new Uint8Array(1);
      expect(await stepsOfCancelled([partial(null), reading(20), nothing], 0, [image])).not.toContain(
        "abort",
      );
    });

    test("does not abort a step of several requests", async () => {
      expect(await stepsOfCancelled([], 1)).not.toContain("abort");
    });

    test("collects all results of a step with drafts before the next step", async () => {
      const answer = [partial("a"), partial("b"), partial("c"), nothing, partial("d"), last("e")];
      let draftTokens = 0;
      const { loop, session } = loopWith(
        () => [...answer],
        () => draftTokens,
      );
      await drain(run(loop, "completion", call, NEVER));
      const plain = session.steps.length;
      draftTokens = 3;
      await Promise.all([1, 2].map(() => drain(run(loop, "completion", call, NEVER))));
      expect(plain).toBe(answer.length);
      expect(session.steps.length - plain).toBe(2);
    });

    test("does not abort a step after the answer has begun", async () => {
      expect(await stepsOfCancelled([partial(null), reading(100), partial("a")])).not.toContain("abort");
    });
  });
});
