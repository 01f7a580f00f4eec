import { expect, onTestFinished, test, vi } from "vitest";
import { abortable } from "../../../../src/async/promises.ts";
import { configSchema } from "../../../../src/config/schema.ts";
import type { Engine } from "../../../../src/engine/engine.ts";
import type { SlotResult } from "../../../../src/engine/protocol/calls.ts";
import { PromptCache } from "../../../../src/models/slots/prompt-cache.ts";
import { ModelSlots } from "../../../../src/models/slots/model-slots.ts";
import { FakeEngine } from "../../../support/fake-engine.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const never = new AbortController().signal;

/** Returns consecutive token ids from a number on. */
const countFrom = (first: number, count: number): number[] =>
  Array.from({ length: count }, (_, at) => (first + at) % 100);

/** Fake engine with these conversations in its slots, which records restored ones. */
class SlotEngine extends FakeEngine {
  readonly restored: (readonly [slot: number, tokens: readonly number[]])[] = [];
  readonly #conversations: readonly (readonly number[])[];

  constructor(conversations: readonly (readonly number[])[] = [], slots = 4) {
    // Any file has a hash.
    super({ slots, modelFiles: [import.meta.filename] });
    this.#conversations = conversations;
  }

  override async slots(request: Parameters<FakeEngine["slots"]>[0]): Promise<SlotResult> {
    if (request.action === "list")
      return {
        action: "list",
        slots: Array.from({ length: this.spec.slots }, (_, at) => ({
          tokens: this.#conversations[at]?.length ?? 0,
          isBusy: false,
          lastUsed: at,
        })),
      };
    if (request.action === "save")
      return {
        action: "save",
        bytes: 8,
        tokens: Int32Array.from(this.#conversations[request.slot] ?? []),
        scales: [],
      };
    if (request.action === "read") return { action: "read", data: new Uint8Array(8) };
    if (request.action === "restore") this.restored.push([request.slot, [...request.tokens]]);
    return { action: "done" };
  }
}

async function setup() {
  const config = configSchema.parse({
    cache_dir: await temporaryFolder(),
    models: { saved_prompts: 1_000_000 },
  });
  const warnings: unknown[] = [];
  const logger = { debug: () => {}, warn: (fields: unknown) => void warnings.push(fields) };
  const slots = new ModelSlots(
    { config, kernels: "daybreak" },
    {
      aliasOf: async (name) => name,
      acquire: () => Promise.reject(new Error("nothing is leased")),
      engineOf: () => undefined,
    },
  );
  const folder = slots.folder!;
  const cache = new PromptCache(slots, folder, logger);
  const counts = async () =>
    (await folder.list("m")).map(({ header }) => header?.tokens).toSorted((a = 0, b = 0) => a - b);
  return { folder, kept: cache, warnings, counts };
}

test("slots are restored with one conversation each, except for short ones", async () => {
  const { kept: cache, warnings } = await setup();
  const [one, other] = [countFrom(1, 20), countFrom(50, 30)];
  await cache.save("m", new SlotEngine([one, other, countFrom(1, 5)]));
  const engine = new SlotEngine();
  await cache.restore("m", engine, never);
  expect(engine.restored.map(([slot]) => slot)).toEqual([0, 1]);
  expect(engine.restored.map(([, tokens]) => tokens)).toEqual(expect.arrayContaining([one, other]));
  expect(warnings).toEqual([]);
});

test("a continued conversation replaces its saved version, and no other", async () => {
  const { kept: cache, counts } = await setup();
  await cache.save("m", new SlotEngine([countFrom(1, 40), countFrom(50, 30)]));
  // The last tokens may differ.
  await cache.save("m", new SlotEngine([[...countFrom(1, 38), 99, 98, ...countFrom(7, 20)]]));
  expect(await counts()).toEqual([30, 60]);
});

test("only the last sixteen conversations are kept", async () => {
  const { kept: cache, counts } = await setup();
  for (let first = 0; first < 20; first++) await cache.save("m", new SlotEngine([countFrom(first, 20)]));
  expect(await counts()).toHaveLength(16);
});

test("a model with other settings restores nothing, and a failing restore does not fail the load", async () => {
  const { kept: cache, warnings } = await setup();
  await cache.save("m", new SlotEngine([countFrom(1, 20)]));
  const other = new SlotEngine();
  Object.assign(other.spec, { cacheTypeK: "q8_0" });
  await cache.restore("m", other, never);
  expect(other.restored).toEqual([]);
  const failing = new SlotEngine();
  failing.slots = () => Promise.reject(new Error("the engine has ended"));
  await cache.restore("m", failing, never);
  await cache.save("m", failing);
  expect(warnings).toHaveLength(2);
});

test("a load that is cancelled while prompts are restored ends", async () => {
  const { kept: cache } = await setup();
  await cache.save("m", new SlotEngine([countFrom(1, 20)]));
  const reason = new Error("nobody waits any more");
  await expect(cache.restore("m", new SlotEngine(), AbortSignal.abort(reason))).rejects.toBe(reason);
});

test("an engine that is delayed for seconds is waited for", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  vi.spyOn(AbortSignal, "timeout").mockImplementation((millis) => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error("too late")), millis);
    return controller.signal;
  });
  const { kept: cache, counts } = await setup();
  const engine = new SlotEngine([countFrom(1, 20)]);
  const answer = engine.slots.bind(engine);
  engine.slots = async (request: Parameters<Engine["slots"]>[0], signal?: AbortSignal) => {
    if (request.action === "list")
      await abortable(new Promise((resolve) => setTimeout(resolve, 8000)), signal ?? never);
    return await answer(request);
  };
  const saving = cache.save("m", engine);
  await vi.advanceTimersByTimeAsync(8000);
  vi.useRealTimers();
  await saving;
  expect(await counts()).toEqual([20]);
});
