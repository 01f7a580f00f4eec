import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { NATS } from "../support/nats-server.ts";
import { postJson } from "../support/post-json.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { ask, FLEET_MODEL, TestFleet } from "../support/test-fleet.ts";
import { untilKilled } from "../support/until-killed.ts";

const TOKENS = 160;
/** Tokens of an answer that is still running when its machine has been found and killed. */
const LONG = 1500;
/** Milliseconds after which a client that got Retry-After repeats its request. */
const RETRY_MS = 500;
/** In a row, which is a minute: the fleet has not found together again. */
const MAX_REFUSALS = 120;
const MINUTES = 60_000;
/** Answers during which a machine is killed, until one has to move. */
const TRIES = 5;
/** Different prompts, whose answers are known from one machine. */
const PROMPTS = Array.from({ length: 20 }, (_, index) => `once upon a time there was ${index * 7919}`);

/** Times that another machine has continued an answer of this one. */
async function answersMoved({ url }: TestDaemon): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return Number(/^service_fleet_answers_moved_total (\d+)$/m.exec(metrics)?.[1]);
}

/** The text of a streamed answer. */
async function stream(
  { url }: TestDaemon,
  content: string,
  onPiece: (count: number) => void = () => undefined,
  further: object = {},
): Promise<{ text: string; failure: string | undefined }> {
  const response = await postJson(`${url}/v1/chat/completions`, {
    model: FLEET_MODEL,
    messages: [{ role: "user", content }],
    max_tokens: TOKENS,
    temperature: 0,
    ignore_eos: true,
    stream: true,
    // A prompt that is in one machine's cache and read by the other would be summed up in another order.
    cache_prompt: false,
    ...further,
  });
  let [text, rest, pieces] = ["", "", 0];
  for await (const chunk of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data: {")) continue;
      const event: { error?: object; choices?: { delta: { content?: string } }[] } = JSON.parse(
        line.slice(6),
      );
      if (event.error) return { text, failure: line };
      text += event.choices?.[0]?.delta.content ?? "";
      onPiece((pieces += 1));
    }
  }
  return { text, failure: response.ok ? undefined : rest };
}

describe.skipIf(NATS.isMissing)(`a fleet whose machines fail${NATS.note}`, () => {
  let fleet: TestFleet;
  let entrance: TestDaemon;
  const expected = new Map<string, string>();
  let workers: TestDaemon[];
  let names = 0;

  /** The entrance has no model, so that everything goes over the network. */
  beforeAll(async () => {
    fleet = await TestFleet.start();
    [entrance, ...workers] = await Promise.all([
      fleet.join("desk", { hasModel: false }),
      fleet.join("one"),
      fleet.join("two"),
    ]);
    await fleet.complete(entrance, 3, 2);
    const [one] = workers;
    if (!one) throw new Error("there is no machine");
    for (const prompt of PROMPTS) expected.set(prompt, (await stream(one, prompt)).text);
  });
  afterAll(async () => await fleet?.stop());
  beforeEach(async () => await haveWorkers(2));

  /** Starts those that a test, or its first try, has left missing. */
  async function haveWorkers(count: number): Promise<void> {
    while (workers.length < count) workers.push(await fleet.join(`new-${(names += 1)}`));
    await fleet.complete(entrance, 1 + workers.length, workers.length);
  }

  /** Ends one that works for others, and starts a new one in its place. */
  async function replace(victim: TestDaemon): Promise<void> {
    victim.kill("SIGKILL");
    await victim.exited;
    workers = workers.filter((each) => each !== victim);
    workers.push(await fleet.join(`new-${(names += 1)}`));
  }

  test.each([
    ["a greedy answer", { temperature: 0 }],
    ["a sampled answer with a seed", { temperature: 1, seed: 7 }],
  ])("continues %s on another machine, with the same text and without an error", async (_name, sampling) => {
    const further = { ...sampling, max_tokens: LONG };
    const [prompt = ""] = PROMPTS;
    const whole = await stream(entrance, prompt, undefined, further);
    const before = await answersMoved(entrance);
    // On a busy computer an answer may be complete before its machine is found and killed.
    for (let time = 0; time < TRIES && (await answersMoved(entrance)) === before; time += 1) {
      const moved = await untilKilled(
        async (end) => await stream(entrance, prompt, (count) => void (count === 40 && end()), further),
        () => workers,
        replace,
      );
      expect(moved.failure).toBeUndefined();
      expect(moved.text).toBe(whole.text);
    }
    expect(await answersMoved(entrance)).toBeGreaterThan(before);
  });

  test(
    "loses none of 200 requests, and gives each its text, while machines and the NATS server are killed",
    async ({ signal }) => {
      await haveWorkers(3);
      const over = new AbortController();
      signal.addEventListener("abort", () => over.abort());
      let count = 0;
      const faults = (async () => {
        for (let fault = 0; !over.signal.aborted; fault += 1) {
          await sleep(500 + Math.random() * 1500);
          if (over.signal.aborted) return;
          count += 1;
          if (fault % 4 === 3) {
            await fleet.nats.kill("SIGKILL");
            await sleep(500 + Math.random() * 1500);
            await fleet.nats.restart();
          } else {
            const victim = workers[Math.floor(Math.random() * workers.length)];
            if (victim) await replace(victim);
          }
        }
      })();
      faults.catch(() => undefined); // awaited below
      const wrong: string[] = [];
      const queue = Array.from({ length: 200 }, (_, index) => PROMPTS[index % PROMPTS.length] ?? "");
      const client = async (): Promise<void> => {
        let refusals = 0;
        for (let prompt = queue.pop(); prompt !== undefined && !signal.aborted; prompt = queue.pop()) {
          const { text, failure } = await stream(entrance, prompt);
          const isRefused = text === "" && failure?.includes(`"fleet_unreachable"`);
          refusals = isRefused ? refusals + 1 : 0;
          if (isRefused && refusals < MAX_REFUSALS) {
            // Without the NATS server the request is rejected as retryable; clients retry.
            queue.push(prompt);
            await sleep(RETRY_MS);
          } else if (failure !== undefined || text !== expected.get(prompt))
            wrong.push(failure ?? `another text: ${text}`);
        }
      };
      try {
        await Promise.all(Array.from({ length: 6 }, client));
      } finally {
        over.abort();
        await faults;
      }
      expect(wrong).toEqual([]);
      expect(count, "faults").toBeGreaterThan(1);
    },
    10 * MINUTES,
  );

  test("serves what it has without the NATS server, and all again when it is back", async () => {
    const [worker] = workers;
    const [prompt = ""] = PROMPTS;
    if (!worker) throw new Error("there is no machine");
    await fleet.nats.kill("SIGKILL");
    try {
      expect((await ask(worker, prompt)).status).toBe(200);
      expect(await ask(entrance, prompt)).toMatchObject({
        status: 503,
        body: { error: { code: "fleet_unreachable" } },
      });
    } finally {
      await fleet.nats.restart();
    }
    await fleet.complete(entrance, 1 + workers.length, workers.length);
    expect((await ask(entrance, prompt)).status).toBe(200);
  });
});
