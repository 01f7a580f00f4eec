import fs from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import { EngineSlots } from "../../src/engine/engine-slots.ts";
import { randoms } from "../support/randoms.ts";
import {
  collect,
  doneOf,
  engineSpec,
  NEVER,
  promptRequest,
  startEngine,
  temporaryFolder,
  textOf,
  writeModel,
} from "../support/engine-fixture.ts";
import { generated } from "../support/generated.ts";
import { measureReuse, PROMPT_PATTERNS, words } from "../support/prompt-patterns.ts";
import { tinyLlama } from "../support/tiny-models.ts";

/** Context that takes many seconds to fill, also on a busy machine. */
const CONTEXT = 16_384;
const folder = temporaryFolder();
let engine: Engine;

beforeAll(async () => {
  const file = writeModel(folder, "tiny", tinyLlama({ context: CONTEXT }));
  engine = await startEngine(
    engineSpec(file, { contextSize: CONTEXT, slots: 4, promptCacheBytes: 16 * 1024 ** 2 }),
  );
});

afterAll(async () => {
  await engine.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

async function ask(
  prompt: string,
  options: { cachePrompt?: boolean; slot?: number; maxTokens?: number } = {},
) {
  const request = promptRequest(prompt, { maxTokens: 4, cachePrompt: true, details: true, ...options });
  const events = await collect(generated(engine, request, NEVER));
  const { usage, details } = doneOf(events);
  return { text: textOf(events), ...usage, slot: details?.slot };
}

describe("prompts that were evicted from their slots", () => {
  test.each([...PROMPT_PATTERNS.keys()])("are computed once by %s", async (name) => {
    const { reused, reusable } = await measureReuse(engine, name);
    expect(reused / reusable).toBeGreaterThan(0.97);
  });

  test("never mix: concurrent conversations answer as on a fresh engine", async () => {
    const random = randoms(7);
    const system = words("s", 10);
    const chats = Array.from({ length: 5 }, (_, at) => system + words("vwxyz"[at]!, 3));
    /** Runs the conversations concurrently, turn by turn. */
    const asked: { prompt: string; text: string }[] = [];
    const turns = Array.from({ length: 20 }, () => Math.floor(random() * chats.length));
    const taker = async (parity: number): Promise<void> => {
      for (const at of turns.filter((chat) => chat % 2 === parity)) {
        const prompt = chats[at]!;
        const { text } = await ask(prompt);
        asked.push({ prompt, text });
        // Some branch off earlier, as after an edit.
        chats[at] = random() < 0.3 ? prompt.slice(0, prompt.length - 20) : `${prompt}${text} more `;
      }
    };
    await Promise.all([taker(0), taker(1)]);
    const afresh: { prompt: string; text: string }[] = [];
    for (const { prompt } of asked)
      afresh.push({ prompt, text: (await ask(prompt, { cachePrompt: false })).text });
    expect(asked).toEqual(afresh);
  });
});

describe("a request that names its slot", () => {
  test("runs in that slot and reuses the prompt of another one", async () => {
    const prompt = words("q", 12);
    const first = await ask(prompt, { slot: 3 });
    expect(first).toMatchObject({ slot: 3 });
    expect(first.cachedTokens).toBeLessThan(4);
    const inOtherSlot = await ask(prompt, { slot: 1 });
    expect(inOtherSlot).toEqual({ ...first, slot: 1, cachedTokens: first.promptTokens - 1 });
  });

  test("gets the slot as soon as it is idle, before other requests", async () => {
    const leave = new AbortController();
    const endless = promptRequest(words("l", 3), {
      maxTokens: undefined,
      sampling: { ignoreEos: true },
      slot: 2,
    });
    const busy = generated(engine, endless, leave.signal);
    await busy.next();
    const slots = new EngineSlots(engine);
    expect(await slots.reserve(2, NEVER)).toBe(true);
    leave.abort(new Error("enough"));
    await expect(collect(busy)).rejects.toThrow("enough");
    expect(await slots.reserve(2, NEVER)).toBe(false);
    const others = await Promise.all(["l", "m", "n"].map((letter) => ask(words(letter, 3))));
    expect(new Set(others.map(({ slot }) => slot))).toEqual(new Set([0, 1, 3]));
    expect((await ask(words("o", 3), { slot: 2 })).slot).toBe(2);
    await slots.release(2, NEVER);
  });

  test("is refused when the model has no such slot", async () => {
    await expect(ask("a", { slot: 4 })).rejects.toMatchObject({
      code: "invalid_parameter",
      message: "The model has 4 slots, numbers 0 to 3.",
    });
  });
});
