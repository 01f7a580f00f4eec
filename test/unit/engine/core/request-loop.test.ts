import { describe, expect, test } from "vitest";
import type { RequestResult } from "../../../../src/engine/core/loop-request.ts";
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

/** What a poll brings; a function is what happens while the step is computed. */
type Answer = ActionResult | Error | (() => Promise<ActionResult>);

/** A worker that plays: each request answers what `results` holds for its turn, then ends. */
class FakeSession {
  readonly log: string[] = [];
  /** Requests at whose poll the engine also computed. */
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
    isHeld = false,
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
    if (!isHeld) this.steps.push(id);
    if (name === "cancel") {
      this.#left.delete(id);
      return { success: true };
    }
    const next = this.#left.get(id)?.shift() ?? { success: true, has_more: false, data_json: "" };
    if (next instanceof Error) throw next;
    return typeof next === "function" ? await next() : next;
  }
}

const piece = (data: unknown): ActionResult => ({
  success: true,
  has_more: true,
  data_json: JSON.stringify(data),
});
const last = (data: unknown): ActionResult => ({ ...piece(data), has_more: false });
const nothing: ActionResult = { success: true, has_more: true, data_json: "" };

async function drain(results: AsyncGenerator<RequestResult>): Promise<RequestResult[]> {
  const all: RequestResult[] = [];
  for await (const result of results) all.push(result);
  return all;
}

const reading = (processed: number): ActionResult =>
  piece({ prompt_progress: { processed, total: 100, cache: 10 } });

/** A loop whose requests answer so, and what it has said of its steps. */
function loopWith(results: (id: number) => Answer[], guessed = () => 0) {
  const said: string[] = [];
  const measured: number[] = [];
  const session = new FakeSession(results);
  const loop = new RequestLoop(session, {
    get guessed() {
      return guessed();
    },
    next: (isAlone, isWhole) => void said.push(`${isAlone ? "alone" : "shared"}${isWhole ? ", whole" : ""}`),
    leave: () => void said.push("leave"),
    measured: (tokens) => void measured.push(tokens),
  });
  return { loop, session, said, measured };
}

/** What is said of steps when a request is cancelled while a step behind these results is computed. */
async function cancelledBehind(results: Answer[], others = 0, files: Uint8Array[] = []): Promise<string[]> {
  const controller = new AbortController();
  const cancel = async (): Promise<ActionResult> => {
    controller.abort(new Error("enough"));
    await new Promise((resolve) => setImmediate(resolve));
    return nothing;
  };
  const { loop, said } = loopWith((id) => (id === 1 ? [...results, cancel] : [piece("a"), last("b")]));
  const running = drain(run(loop, "completion", { ...call, files }, controller.signal));
  const beside = Array.from({ length: others }, () => drain(run(loop, "completion", call, NEVER)));
  await expect(running).rejects.toThrow("enough");
  await Promise.all(beside);
  return said;
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
  test("polls until the last result, through empty ones", async () => {
    const session = new FakeSession(() => [piece(null), nothing, piece("a"), last("b")]);
    expect(await drain(run(new RequestLoop(session), "completion", call, NEVER))).toEqual([
      { kind: "accepted" },
      { kind: "data", data: "a" },
      { kind: "data", data: "b" },
    ]);
  });

  test("runs one call beside the requests between two polls, however many wait", async () => {
    const session = new FakeSession((id) => [...Array.from({ length: 5 }, () => piece(id)), last(id)]);
    const loop = new RequestLoop(session);
    const running = drain(run(loop, "completion", call, NEVER));
    const asides = [1, 2, 3].map((number) =>
      loop.runBetweenPolls(async () => {
        session.log.push(`aside ${number}`);
        return number;
      }),
    );
    expect(await Promise.all(asides)).toEqual([1, 2, 3]);
    await running;
    const first = session.log.indexOf("aside 1");
    expect(session.log.slice(first, first + 5)).toEqual([
      "aside 1",
      "poll 1",
      "aside 2",
      "poll 1",
      "aside 3",
    ]);
  });

  test("runs such calls while nothing else is asked, and passes on their failure", async () => {
    const loop = new RequestLoop(new FakeSession(() => []));
    const failing = loop.runBetweenPolls(() => Promise.reject(new Error("no")));
    const next = loop.runBetweenPolls(() => Promise.resolve("yes"));
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe("yes");
  });

  test("goes on after a call that fails before it has begun", async () => {
    const session = new FakeSession((id) => [...Array.from({ length: 5 }, () => piece(id)), last(id)]);
    const loop = new RequestLoop(session);
    const running = drain(run(loop, "completion", call, NEVER));
    const failing = loop.runBetweenPolls(() => {
      throw new Error("the client has left");
    });
    await expect(failing).rejects.toThrow("the client has left");
    await running;
    expect(await loop.runBetweenPolls(() => Promise.resolve("yes"))).toBe("yes");
  });

  test("polls requests in turn", async () => {
    const session = new FakeSession((id) => [...Array.from({ length: 5 }, () => piece(id)), last(id)]);
    const loop = new RequestLoop(session);
    await Promise.all([1, 2].map(() => drain(run(loop, "completion", call, NEVER))));
    const polls = session.log.filter((line) => line.startsWith("poll"));
    const both = polls.slice(polls.indexOf("poll 2"), polls.lastIndexOf("poll 1") + 1);
    expect(both).toEqual(both.map((_, index) => (index % 2 === 0 ? "poll 2" : "poll 1")));
    expect(both.length).toBeGreaterThan(2);
  });

  test("computes once for each round, and lets the others collect", async () => {
    const session = new FakeSession((id) => [...Array.from({ length: 9 }, () => piece(id)), last(id)]);
    const loop = new RequestLoop(session);
    await Promise.all([1, 2, 3].map(() => drain(run(loop, "completion", call, NEVER))));
    const polls = session.log.filter((line) => line.startsWith("poll")).length;
    expect(polls).toBe(30);
    expect(session.steps.length).toBeLessThan(15);
  });

  test("computes nothing more before the first token has been collected", async () => {
    const progress = { prompt_progress: { processed: 1, total: 1 } };
    const session = new FakeSession(() => [piece(null), piece(progress), piece("token"), last("end")]);
    await drain(run(new RequestLoop(session), "completion", call, NEVER));
    expect(session.log.filter((line) => line === "poll 1")).toHaveLength(4);
    expect(session.steps).toHaveLength(2);
  });

  test.each([
    "[json.exception.type_error.316] invalid UTF-8 byte at index 0: 0xF5",
    "[json.exception.type_error.316] incomplete UTF-8 string; last byte: 0xE3",
    "an error of another request, logged in the same step\n" +
      "[json.exception.type_error.316] invalid UTF-8 byte at index 12: 0x80",
  ])("keeps polling after a piece that is not text: %s", async (message) => {
    const session = new FakeSession(() => [piece("a"), new EngineCallError(message), last("b")]);
    expect(
      (await drain(run(new RequestLoop(session), "completion", call, NEVER))).map(({ kind }) => kind),
    ).toEqual(["data", "unreadable", "data"]);
  });

  test.each([
    "The model produced output that does not match the expected peg-native format",
    "Invalid diff: '[json.exception.type_error.316] invalid UTF-8 byte at index 0: 0xF5' not found at start of ''",
  ])(
    "ends a request at once, and frees its slot, when llama.cpp cannot read the answer: %s",
    async (message) => {
      // After such an exception llama.cpp promises a further result forever.
      const forever = Array.from({ length: 50 }, () => nothing);
      const session = new FakeSession((id) =>
        id === 1
          ? [piece("a"), new EngineCallError(message), ...forever]
          : [piece("x"), piece("y"), last("z")],
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
    },
  );

  test("passes the end of the engine on, without polling or cancelling any more", async () => {
    const session = new FakeSession(() => [piece("a"), new EngineFatalError("gone")]);
    await expect(drain(run(new RequestLoop(session), "completion", call, NEVER))).rejects.toThrow(
      EngineFatalError,
    );
    expect(session.log).toEqual(["start 1", "poll 1", "poll 1"]);
  });

  test("starts nothing for a request that is refused", async () => {
    const session = new FakeSession(() => []);
    session.refuse = new EngineCallError("bad grammar");
    await expect(drain(run(new RequestLoop(session), "completion", call, NEVER))).rejects.toThrow(
      "bad grammar",
    );
    expect(session.log).toEqual([]);
  });

  test("lets a cancel go before the next poll of others", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const session = new FakeSession(() => Array.from({ length: 20 }, () => piece("x")));
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
    // The poll that was under way, and none for each result that the other still has to come.
    expect(
      session.log.slice(firstPoll, at).filter((line) => line.startsWith("poll")).length,
    ).toBeLessThanOrEqual(3);
    await other;
    expect(session.log.slice(at)).not.toContain("poll 2");
  });

  test("cancels a request whose reader leaves early, and not one that has ended", async () => {
    const session = new FakeSession((id) =>
      id === 1 ? Array.from({ length: 50 }, () => piece("x")) : [last("y")],
    );
    const loop = new RequestLoop(session);
    for await (const result of run(loop, "completion", call, NEVER)) if (result) break;
    await drain(run(loop, "completion", call, NEVER));
    expect(session.log.filter((line) => line.startsWith("cancel"))).toEqual(["cancel 1"]);
  });

  describe("with steps of a length of its choice", () => {
    test("tells what each has read of the prompt, without what was in the cache", async () => {
      const { loop, measured } = loopWith(() => [
        piece(null),
        reading(10),
        reading(42),
        reading(100),
        last("b"),
      ]);
      await drain(run(loop, "completion", call, NEVER));
      expect(measured.filter((tokens) => tokens > 0)).toEqual([32, 58]);
    });

    test("tells whether a request is alone, and whether its text is needed whole", async () => {
      const { loop, said } = loopWith(() => [piece(null), piece("a"), last("b")]);
      await drain(run(loop, "embedding", { ...call, _name: "embd_req" }, NEVER));
      expect(new Set(said)).toEqual(new Set(["alone, whole"]));
      said.length = 0;
      await Promise.all([1, 2].map(() => drain(run(loop, "completion", call, NEVER))));
      expect(said).toContain("shared");
    });

    test("leaves the step of a request that is cancelled while its prompt is read", async () => {
      expect(await cancelledBehind([piece(null), reading(20), nothing])).toEqual(["alone", "alone", "leave"]);
    });

    test("leaves none in which an image may be computed", async () => {
      const image = new Uint8Array(1);
      expect(await cancelledBehind([piece(null), reading(20), nothing], 0, [image])).not.toContain("leave");
    });

    test("leaves none that others share", async () => {
      expect(await cancelledBehind([], 1)).not.toContain("leave");
    });

    test("collects all results of a step with guesses before the next one", async () => {
      const answer = [piece("a"), piece("b"), piece("c"), nothing, piece("d"), last("e")];
      let guessed = 0;
      const { loop, session } = loopWith(
        () => [...answer],
        () => guessed,
      );
      await drain(run(loop, "completion", call, NEVER));
      const plain = session.steps.length;
      guessed = 3;
      await Promise.all([1, 2].map(() => drain(run(loop, "completion", call, NEVER))));
      expect(plain).toBe(answer.length);
      expect(session.steps.length - plain).toBe(2);
    });

    test("leaves none of an answer that has begun", async () => {
      expect(await cancelledBehind([piece(null), reading(100), piece("a")])).not.toContain("leave");
    });
  });
});
