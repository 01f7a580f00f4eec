import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { NATS_SERVER } from "../support/nats-server.ts";
import { postJson } from "../support/post-json.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { ask, busyOf, FLEET_MODEL, TestFleet } from "../support/test-fleet.ts";

const TOKENS = 160;
/** Of an answer that is still being given when its machine has been found and killed. */
const LONG = 1500;
const MINUTES = 60_000;
/** Different prompts, whose answers are known from one machine. */
const PROMPTS = Array.from({ length: 20 }, (_, index) => `once upon a time there was ${index * 7919}`);

/** The text of a streamed answer, and how long the client waited at most between two pieces, in milliseconds. */
async function stream(
  { url }: TestDaemon,
  content: string,
  onPiece: (count: number) => void = () => undefined,
  further: object = {},
): Promise<{ text: string; failure: string | undefined; pause: number }> {
  const response = await postJson(`${url}/v1/chat/completions`, {
    model: FLEET_MODEL,
    messages: [{ role: "user", content }],
    max_tokens: TOKENS,
    temperature: 0,
    ignore_eos: true,
    stream: true,
    ...further,
  });
  let [text, rest, pieces, pause, last] = ["", "", 0, 0, performance.now()];
  for await (const chunk of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    pause = Math.max(pause, performance.now() - last);
    last = performance.now();
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data: {")) continue;
      const event: { error?: object; choices?: { delta: { content?: string } }[] } = JSON.parse(
        line.slice(6),
      );
      if (event.error) return { text, failure: line, pause };
      text += event.choices?.[0]?.delta.content ?? "";
      onPiece((pieces += 1));
    }
  }
  return { text, failure: response.ok ? undefined : rest, pause };
}

describe.skipIf(NATS_SERVER === null)("a fleet whose machines fail", () => {
  let fleet: TestFleet;
  let desk: TestDaemon;
  const expected = new Map<string, string>();
  let workers: TestDaemon[];
  let number = 0;

  /** The entrance has no model, so that everything goes over the network. */
  beforeAll(async () => {
    fleet = await TestFleet.start();
    [desk, ...workers] = await Promise.all([
      fleet.join("desk", { hasModel: false }),
      fleet.join("one"),
      fleet.join("two"),
    ]);
    await fleet.complete(desk, 3, 2);
    const [one] = workers;
    if (!one) throw new Error("there is no machine");
    for (const prompt of PROMPTS) expected.set(prompt, (await stream(one, prompt)).text);
  }, 3 * MINUTES);
  afterAll(async () => await fleet.stop());

  /** Ends one that works for others, and starts a new one in its place. */
  async function replace(victim: TestDaemon): Promise<TestDaemon> {
    victim.kill("SIGKILL");
    await victim.exited;
    number += 1;
    workers = workers.filter((each) => each !== victim);
    const next = await fleet.join(`new-${number}`);
    workers.push(next);
    return next;
  }

  test.each([
    ["a greedy answer", { temperature: 0 }],
    ["a sampled answer with a seed", { temperature: 1, seed: 7 }],
  ])("continues %s on another machine, with the same text and without an error", async (_name, sampling) => {
    const further = { ...sampling, max_tokens: LONG };
    const [prompt = ""] = PROMPTS;
    const whole = await stream(desk, prompt, undefined, further);
    let replaced: Promise<TestDaemon> | undefined;
    const moved = await stream(
      desk,
      prompt,
      (count) => {
        if (count === 40) replaced = busyOf(workers).then(replace);
      },
      further,
    );
    expect(moved.failure).toBeUndefined();
    expect(moved.text).toBe(whole.text);
    expect(moved.pause, "the machine was killed while it answered").toBeGreaterThan(500);
    await replaced;
    await fleet.complete(desk, 3, 2);
  });

  test(
    "loses none of 200 requests, and gives each its text, while machines and the NATS server are killed",
    async () => {
      await fleet.join("three").then((three) => workers.push(three));
      await fleet.complete(desk, 4, 3);
      const over = new AbortController();
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
      const wrong: string[] = [];
      const queue = Array.from({ length: 200 }, (_, index) => PROMPTS[index % PROMPTS.length] ?? "");
      await Promise.all(
        Array.from({ length: 6 }, async () => {
          for (let prompt = queue.pop(); prompt !== undefined; prompt = queue.pop()) {
            const { text, failure } = await stream(desk, prompt);
            if (failure !== undefined || text !== expected.get(prompt))
              wrong.push(failure ?? `another text: ${text}`);
          }
        }),
      );
      over.abort();
      await faults;
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
    expect((await ask(worker, prompt)).status).toBe(200);
    expect(await ask(desk, prompt)).toMatchObject({
      status: 503,
      body: { error: { code: "fleet_unreachable" } },
    });
    await fleet.nats.restart();
    await fleet.complete(desk, 1 + workers.length, workers.length);
    expect((await ask(desk, prompt)).status).toBe(200);
  });
});
