import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { rmSync } from "node:fs";
import type { Engine } from "../../src/engine/engine.ts";
import { EngineSlots } from "../../src/engine/engine-slots.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import { ServiceError } from "../../src/errors/service-error.ts";
import { Random } from "../../scripts/test/withstand/kit/random.ts";
import {
  doneOf,
  engineSpec,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  startEngine,
  temporaryFolder,
  textOf,
  writeModel,
} from "../support/engine-fixture.ts";
import type { GenerationEvent } from "../../src/engine/protocol/generation.ts";
import type { GgufFile } from "../support/gguf-writer.ts";
import { tinyGemma2, tinyGemma3, tinyQwen2, tinyQwen3 } from "../support/tiny-families.ts";
import { tinyLlama, tinyLora } from "../support/tiny-models.ts";

/**
 * Slots saved and restored in engines of several architectures and settings: what is answered afterwards must be what would
 * have been answered without, and nothing in a state may end the engine.
 */

const PROMPT = "Once upon a time there was a little girl who lived in a village. ".repeat(2);

const CONTINUED = `${PROMPT}9 dragons came.`;

interface Saved {
  readonly tokens: Int32Array<ArrayBuffer>;
  readonly scales: readonly number[];
  readonly bytes: Uint8Array<ArrayBuffer>;
}

let folder: string;

beforeAll(() => {
  folder = temporaryFolder();
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function answer(
  engine: Engine,
  prompt = PROMPT,
  maxTokens = 8,
  adapterScales?: number[],
): Promise<{ text: string; cached: number }> {
  const events: GenerationEvent[] = [];
  await engine.generate(
    promptRequest(prompt, { maxTokens, adapterScales }),
    (event) => events.push(event),
    NEVER,
  );
  return { text: textOf(events), cached: doneOf(events).usage.cachedTokens };
}

/** Saves the slot that was used last. */
async function save(engine: Engine): Promise<Saved> {
  const slots = new EngineSlots(engine);
  const [last] = (await slots.list(NEVER)).toSorted((a, b) => b.lastUsed - a.lastUsed);
  return await slots.save(
    last!.id,
    async ({ tokens, scales, chunks: pieces }) => ({
      tokens: Int32Array.from(tokens),
      scales,
      bytes: new Uint8Array(Buffer.concat(await Array.fromAsync(pieces))),
    }),
    { maxBytes: 1e9, signal: NEVER },
  );
}

async function restore(engine: Engine, slot: number, { tokens, scales, bytes }: Saved): Promise<void> {
  const pieces = (async function* () {
    yield bytes;
  })();
  await new EngineSlots(engine).restore(slot, { tokens, scales, bytes: bytes.length, chunks: pieces }, NEVER);
}

const SETTINGS: readonly (readonly [string, Partial<EngineSpec>])[] = [
  ["a context for each slot", {}],
  ["a context that slots share", { sharedContext: true }],
  ["flash attention", { flashAttention: "true" }],
  ["a quantized KV cache", { flashAttention: "true", cacheTypeK: "q8_0", cacheTypeV: "q4_0" }],
  ["two threads", { threads: 2 }],
];

const FAMILIES: readonly (readonly [string, () => GgufFile])[] = [
  ["llama", tinyLlama],
  ["qwen2", tinyQwen2],
  ["qwen3", tinyQwen3],
  ["gemma2, with windows of attention", tinyGemma2],
  ["gemma3, with windows of attention", tinyGemma3],
];

/** Compares the answers of an engine with a restored slot and of engines without one. */
async function comesBack(
  file: string,
  settings: Partial<EngineSpec>,
): Promise<{ got: unknown; wanted: unknown }> {
  const spec = engineSpec(file, { slots: 3, ...settings });
  const first = await startEngine(spec);
  // Without an answer, so that the prompt that follows has all of it: of a window of attention nothing can be taken back.
  await answer(first, PROMPT, 1);
  const saved = await save(first);
  const continued = await answer(first, CONTINUED);
  await first.close();
  const second = await startEngine({ ...spec, slots: 2 });
  try {
    await restore(second, 1, saved);
    const gone = await answer(second, CONTINUED);
    // A prompt that only begins like it is answered as by an engine that knows nothing.
    const other = `${PROMPT.slice(0, 40)} dragon`;
    const mixed = await answer(second, other);
    await new EngineSlots(second).erase(0, NEVER);
    await new EngineSlots(second).erase(1, NEVER);
    const { text } = await answer(second, other);
    return {
      got: { ...gone, mixed: mixed.text },
      wanted: { text: continued.text, cached: saved.tokens.length, mixed: text },
    };
  } finally {
    await second.close();
  }
}

describe("a saved slot comes back", () => {
  test.each(SETTINGS)("with %s", async (_what, settings) => {
    const { got, wanted } = await comesBack(SHIPPED_MODEL, settings);
    expect(got).toEqual(wanted);
  });

  test.each(FAMILIES)("in a model of the family %s", async (name, model) => {
    const { got, wanted } = await comesBack(writeModel(folder, name.replaceAll(/\W/g, ""), model()), {});
    expect(got).toEqual(wanted);
  });
});

describe("a saved slot of a model with adapters", () => {
  const SCALES = [0.5, -1];

  test.each([0, 1])(
    "comes back for requests with the same scales, in slot %d that has not answered yet",
    async (slot) => {
      const file = writeModel(folder, `adapted-${slot}`, tinyLlama());
      const adapters = [2, 4].map((deviation) => ({
        path: writeModel(folder, `adapter-${slot}-${deviation}`, tinyLora({ deviation })),
        scale: 1,
      }));
      const spec = engineSpec(file, { slots: 2, adapters, promptCacheBytes: 1e7 });
      const first = await startEngine(spec);
      await answer(first, PROMPT, 1, SCALES);
      const saved = await save(first);
      expect(saved.scales).toEqual(SCALES);
      const continued = await answer(first, CONTINUED, 8, SCALES);
      await first.close();
      const second = await startEngine(spec);
      try {
        await restore(second, slot, saved);
        const plain = await answer(second, CONTINUED, 8, [1, 1]);
        expect(plain.cached).toBe(0);
        expect(plain.text).not.toBe(continued.text);
        const gone = await answer(second, CONTINUED, 8, SCALES);
        expect(gone).toEqual({ text: continued.text, cached: saved.tokens.length });
        await expect(restore(second, slot, { ...saved, scales: [1] })).rejects.toMatchObject({
          code: "slot_state_mismatch",
        });
      } finally {
        await second.close();
      }
    },
  );
});

describe("a state that is not what it seems", () => {
  /** Numbers that a size, a count, a position or a type may be replaced by. */
  const HOSTILE = [0, 1, 2, 63, 64, 255, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

  test.each([
    ["llama", tinyLlama],
    ["gemma3", tinyGemma3],
  ])("never ends the engine of a model of the family %s", async (name, model) => {
    const engine = await startEngine(
      engineSpec(writeModel(folder, `${name}-attacked`, model()), { slots: 2 }),
    );
    const { text } = await answer(engine);
    const saved = await save(engine);
    const random = new Random(7);
    const codes = new Set<string>();
    for (let round = 0; round < 400; round++) {
      const bytes = new Uint8Array(saved.bytes);
      const view = new DataView(bytes.buffer);
      const isHead = round % 2 === 0;
      const at = isHead ? random.int(0, 64) : random.int(0, bytes.length / 4 - 1);
      view.setUint32(at * 4, random.pick(HOSTILE), true);
      const cut = round % 5 === 0 ? bytes.slice(0, random.int(1, bytes.length)) : bytes;
      const tokens = round % 7 === 0 ? saved.tokens.slice(0, -1) : saved.tokens;
      const restored = restore(engine, round % 2, { tokens, scales: [], bytes: cut });
      codes.add(
        await restored.then(
          () => "restored",
          (error: unknown) => ServiceError.from(error).code,
        ),
      );
      if (round % 50 === 0) await answer(engine, `${PROMPT}${round}`);
    }
    expect(engine.alive).toBe(true);
    // A number of what was computed may be any.
    expect(codes).toEqual(new Set(["restored", "slot_state_mismatch"]));
    await new EngineSlots(engine).erase(0, NEVER);
    await new EngineSlots(engine).erase(1, NEVER);
    expect(await answer(engine)).toEqual({ text, cached: 0 });
    await engine.close();
  });

  test("is refused with tokens that the vocabulary does not have", async () => {
    const engine = await startEngine(engineSpec(SHIPPED_MODEL, { slots: 1 }));
    await answer(engine);
    const saved = await save(engine);
    for (const token of [-1, engine.info.vocabSize, 0x7fff_ffff]) {
      const tokens = saved.tokens.slice();
      tokens[5] = token;
      await expect(restore(engine, 0, { ...saved, tokens })).rejects.toMatchObject({
        code: "slot_state_mismatch",
      });
    }
    await engine.close();
  });
});
