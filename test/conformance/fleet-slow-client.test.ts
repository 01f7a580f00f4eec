import { createHash } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { listenToFrames } from "../support/listen-to-frames.ts";
import { NATS } from "../support/nats-server.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { CHATML_WORDS, tinyLlama, tokenId } from "../support/tiny-models.ts";
import { FLEET_MODEL, TestFleet } from "../support/test-fleet.ts";

const JSON_TYPE = { "content-type": "application/json" };
const MINUTES = 60_000;
/** Far longer than what a local socket holds: some two megabytes, as each token is a long text. */
const [TOKENS, LETTERS] = [300, 8000];
const TEXTS = Array.from("abcdefghijklmnopqrstuvwxyz", (letter) =>
  createHash("shake256", { outputLength: LETTERS / 2 })
    .update(letter)
    .digest("hex"),
);
const MODEL = { context: 512, embedding: 64, blocks: 2, words: CHATML_WORDS, texts: TEXTS };
const LONG = {
  model: FLEET_MODEL,
  prompt: "say some words",
  max_tokens: TOKENS,
  temperature: 1.5,
  seed: 7,
  stream: true,
  cache_prompt: false,
  logit_bias: Object.fromEntries(TEXTS.map((text) => [tokenId(tinyLlama(MODEL), text), 100])),
};
/** Longer than either side of a call is silent for. */
const PAUSE_MS = 5000;

describe.skipIf(NATS.isMissing)(`a client of an answer that another machine gives${NATS.note}`, () => {
  let fleet: TestFleet;
  let entrance: TestDaemon;
  let worker: TestDaemon;
  let spy: NatsConnection;
  /** Bytes of answers that have reached the entrance. */
  let bytes = 0;

  beforeAll(async () => {
    fleet = await TestFleet.start({}, MODEL);
    [entrance, worker] = await Promise.all([fleet.join("desk", { hasModel: false }), fleet.join("worker")]);
    await fleet.complete(entrance, 2, 1);
    spy = await listenToFrames(fleet, "answer", "desk", entrance, ({ payload }) => {
      bytes += payload.length;
    });
  });
  afterAll(async () => {
    await spy?.close();
    await fleet?.stop();
  });

  async function runningOnWorker(): Promise<number> {
    const metrics = await (await fetch(`${worker.url}/metrics`)).text();
    return Number(/^service_requests_running (\d+)/m.exec(metrics)?.[1]);
  }

  test(
    "may not read for a while: no more of it is sent than fits, and then all of it comes",
    async () => {
      bytes = 0;
      const response = await open(entrance);
      const rest: Buffer[] = [];
      response.once("data", (chunk: Buffer) => {
        rest.push(chunk);
        response.pause();
      });
      onTestFinished(() => void response.destroy());
      await expect.poll(() => bytes).toBeGreaterThan(0);
      let before: number;
      do {
        before = bytes;
        await sleep(PAUSE_MS);
      } while (bytes > before);
      await sleep(PAUSE_MS);
      // Nothing comes any more, and most of it has not come.
      expect(bytes).toBe(before);
      expect(bytes).toBeLessThan((TOKENS * LETTERS) / 2);
      const text = textOf([...rest, ...(await readAll(response))]);
      const tokens = Array.from({ length: TOKENS }, (_, at) => text.slice(at * LETTERS, (at + 1) * LETTERS));
      expect(tokens.filter((token) => !TEXTS.includes(token))).toEqual([]);
      expect(text).toHaveLength(TOKENS * LETTERS);
    },
    5 * MINUTES,
  );

  test("frees the machine's slot at once when it leaves, also while it does not read", async () => {
    for (const reads of [true, false]) {
      const before = bytes;
      const response = await open(entrance);
      await once(response, "data");
      if (!reads) response.pause();
      response.destroy();
      await expect.poll(runningOnWorker, { interval: 10 }).toBe(0);
      await sleep(500);
      // It was left in the middle.
      expect(bytes - before).toBeLessThan((TOKENS * LETTERS) / 2);
    }
  });
});

function open({ socket: socketPath }: TestDaemon): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { socketPath, path: "/v1/completions", method: "POST", headers: JSON_TYPE, agent: false },
      resolve,
    );
    request.once("error", reject);
    request.end(JSON.stringify(LONG));
  });
}

async function readAll(response: http.IncomingMessage): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  // Without encoding, a response consists of buffers.
  for await (const chunk of response) chunks.push(Buffer.from(chunk));
  return chunks;
}

interface Chunk {
  readonly choices: { text?: string }[];
}

/** The whole text of an answer. */
function textOf(chunks: readonly Buffer[]): string {
  const lines = Buffer.concat(chunks).toString().split("\n");
  expect(lines).toContain("data: [DONE]");
  return lines
    .filter((line) => line.startsWith("data: {"))
    .map((line) => {
      const { choices }: Chunk = JSON.parse(line.slice("data: ".length));
      return choices[0]?.text ?? "";
    })
    .join("");
}
