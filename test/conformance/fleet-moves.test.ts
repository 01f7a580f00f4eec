import {
  closeSync,
  copyFileSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { CHATML_WORDS } from "../support/tiny-models.ts";
import { listenToFrames } from "../support/listen-to-frames.ts";
import { NATS } from "../support/nats-server.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { FLEET_MODEL, TestFleet } from "../support/test-fleet.ts";
import { untilKilled } from "../support/until-killed.ts";

/** Tokens of an answer that is still running when its machine has been found and killed. */
const LONG = 1600;
/** Pieces after which its machine is killed. */
const BEGUN = 16;

/** Long whatever the model says. */
const WORDS = {
  type: "object",
  properties: {
    words: { type: "array", items: { type: "string", minLength: 8 }, minItems: 80, maxItems: 90 },
  },
  required: ["words"],
  additionalProperties: false,
};
const WRITE = { type: "function", function: { name: "write_words", parameters: WORDS } };

/** The lines or events of a streamed answer, as JSON. */
async function* stream(url: string, body: object): AsyncGenerator {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    // A prompt that is in one machine's cache and read by the other would be summed up in another order.
    body: JSON.stringify({
      model: FLEET_MODEL,
      stream: true,
      max_tokens: LONG,
      cache_prompt: false,
      ...body,
    }),
  });
  expect(response.status).toBe(200);
  let rest = "";
  for await (const chunk of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const json = line.replace(/^data: /, "");
      if (json.startsWith("{")) yield JSON.parse(json);
    }
  }
}

/** A line of Daybreak's own API. */
interface Line {
  readonly message: { readonly content: string };
  readonly done: boolean;
  readonly moved?: { readonly times: number; readonly other_tokens: number };
}

function isLine(event: unknown): event is Line {
  return typeof event === "object" && event !== null && "message" in event;
}

function textOf(events: readonly unknown[]): string {
  return events
    .filter(isLine)
    .map(({ message }) => message.content)
    .join("");
}

/** Bytes that no machine reads to tell models apart, in a model of a few megabytes: the weights there are of another one. */
function withOtherWeights(file: string): void {
  const { size } = statSync(file);
  const [head, piece, pieces] = [1024 * 1024, 64 * 1024, 16];
  const rest = size - head - piece;
  const from = head + Math.floor((rest * 8) / pieces) + piece + 1024;
  const bytes = Buffer.alloc(Math.floor(rest / pieces) - piece - 2048);
  expect(bytes.length).toBeGreaterThan(1024);
  const handle = openSync(file, "r+");
  readSync(handle, bytes, 0, bytes.length, from);
  writeSync(handle, Uint8Array.from(bytes).toReversed(), 0, bytes.length, from);
  closeSync(handle);
}

describe.skipIf(NATS.isMissing)(`an answer whose machine is killed${NATS.note}`, () => {
  let fleet: TestFleet;
  let entrance: TestDaemon;
  let workers: TestDaemon[];
  let names = 0;

  beforeAll(async () => {
    // Larger, so that not all of its file is read, and one that can call tools.
    fleet = await TestFleet.start(undefined, {
      embedding: 192,
      blocks: 6,
      chatTemplate: readFileSync(new URL("templates/qwen3.jinja", import.meta.url), "utf8"),
      words: [...CHATML_WORDS, "<tool_call>", "</tool_call>", "<think>", "</think>"],
    });
    [entrance, ...workers] = await Promise.all([
      fleet.join("desk", { hasModel: false }),
      fleet.join("one"),
      fleet.join("two"),
    ]);
  });
  afterAll(async () => await fleet?.stop());
  // What a test, or its first try, has killed is replaced.
  beforeEach(async () => {
    while (workers.length < 2) workers.push(await fleet.join(`new-${(names += 1)}`));
    await fleet.complete(entrance, 3, 2);
  });

  async function kill(victim: TestDaemon): Promise<void> {
    victim.kill("SIGKILL");
    await victim.exited;
    workers = workers.filter((each) => each !== victim);
  }

  /** Reads an answer whose machine is killed after some pieces: these, and all. */
  async function moving(url: string, body: object): Promise<[unknown[], unknown[]]> {
    const ask = async (end: () => void): Promise<unknown[]> => {
      const all: unknown[] = [];
      for await (const event of stream(url, body)) if (all.push(event) === BEGUN) end();
      return all;
    };
    const all = await untilKilled(ask, () => workers, kill);
    return [all.slice(0, BEGUN), all];
  }

  /** Reads an answer twice: undisturbed, and with its machine killed after some pieces. */
  async function twice(url: string, body: object): Promise<[unknown[], unknown[]]> {
    const whole = await Array.fromAsync(stream(url, body));
    const [, moved] = await moving(url, body);
    return [whole, moved];
  }

  test.each([
    ["the most likely", { temperature: 0 }],
    ["a sampled", { temperature: 1.5, seed: 7 }],
  ])(
    "goes on exactly as %s answer in a JSON schema, and tells that it has moved",
    async (_what, sampling) => {
      const messages = [{ role: "user", content: "say some words" }];
      const body = { messages, format: WORDS, think: false, ...sampling };
      const [whole, moved] = await twice(`${entrance.url}/api/chat`, body);
      expect(moved.at(-1)).toMatchObject({ done: true, moved: { times: 1, other_tokens: 0 } });
      expect(textOf(moved)).toBe(textOf(whole));
    },
  );

  test("goes on from its tokens also where none of it is shown before it is complete and fits", async () => {
    // What a grammar does not say is checked at the end.
    const format = { ...WORDS, properties: { words: { ...WORDS.properties.words, uniqueItems: true } } };
    const messages = [{ role: "user", content: "say some words" }];
    const body = { messages, format, think: false, temperature: 1.5, seed: 7 };
    const whole = await Array.fromAsync(stream(`${entrance.url}/api/chat`, body));
    // The first report says that it has begun; the second one, with a sign of life, tells its tokens.
    let reports = 0;
    let onReport: (() => void) | undefined;
    const spy = await listenToFrames(fleet, "answer", "desk", entrance, ({ kind }) => {
      if (kind === "last" && (reports += 1) === 2) onReport?.();
    });
    onTestFinished(async () => await spy.close());
    const ask = async (end: () => void): Promise<unknown[]> => {
      [reports, onReport] = [0, end];
      return await Array.fromAsync(stream(`${entrance.url}/api/chat`, body));
    };
    const moved = await untilKilled(ask, () => workers, kill);
    expect(moved.at(-1)).toMatchObject({ done: true, moved: { times: 1, other_tokens: 0 } });
    expect(textOf(moved)).toBe(textOf(whole));
    expect(entrance.logs()).toMatch(/"tokens":[1-9]\d*[^\n]*another machine continues an answer/);
  });

  test("goes on with the arguments of a tool call", async () => {
    const body = {
      messages: [{ role: "user", content: "write some words" }],
      tools: [WRITE],
      tool_choice: "required",
      reasoning_effort: "none",
      temperature: 1.5,
      seed: 9,
    };
    const [whole, moved] = await twice(`${entrance.url}/v1/chat/completions`, body);
    expect(callOf(whole)).toContain("write_words");
    expect(callOf(moved)).toBe(callOf(whole));
    const metrics = await (await fetch(`${entrance.url}/metrics`)).text();
    expect(metrics).toMatch(/service_fleet_answers_moved_total [1-9]/);
    expect(metrics).toMatch(/service_fleet_answers_moved_otherwise_total 0/);
  });

  test("goes on from what the client has on a machine that would say something else, and tells so", async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-fleet-other-"));
    try {
      copyFileSync(fleet.modelFile, path.join(folder, path.basename(fleet.modelFile)));
      withOtherWeights(path.join(folder, path.basename(fleet.modelFile)));
      const [, two] = workers;
      if (!two) throw new Error("there are no machines");
      await kill(two);
      const other = await fleet.join("other", { env: { SERVICE_MODELS_DIRS: folder } });
      workers.push(other);
      onTestFinished(async () => await kill(other));
      await fleet.complete(entrance, 3, 2);
      const messages = [{ role: "user", content: "say some words" }];
      const body = { messages, temperature: 1.5, seed: 3, ignore_eos: true };
      const [before, all] = await moving(`${entrance.url}/api/chat`, body);
      const last = all.at(-1);
      expect(last).toMatchObject({ done: true, completion_tokens: LONG, moved: { times: 1 } });
      expect(isLine(last) && last.moved?.other_tokens).toBeGreaterThan(0);
      expect(textOf(all).startsWith(textOf(before))).toBe(true);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

/** Name and arguments of the call in a stream of the OpenAI API. */
function callOf(events: readonly unknown[]): string {
  return events
    .map((event) => {
      const chunk: Chunk = JSON.parse(JSON.stringify(event));
      const call = chunk.choices?.[0]?.delta?.tool_calls?.[0]?.function;
      return `${call?.name ?? ""}${call?.arguments ?? ""}`;
    })
    .join("");
}

interface Chunk {
  readonly choices?: { delta?: { tool_calls?: { function?: { name?: string; arguments?: string } }[] } }[];
}
