import { describe, expect, test } from "vitest";
import { EngineSlots } from "../../../src/engine/engine-slots.ts";
import type { SlotRequest, SlotResult } from "../../../src/engine/protocol/calls.ts";
import { FakeEngine } from "../../support/fake-engine.ts";

const never = new AbortController().signal;
const MIB = 1024 * 1024;

/** An engine with scripted answers that records its requests. */
function scripted(answer: (request: SlotRequest) => SlotResult) {
  const requests: SlotRequest["action"][] = [];
  const { info, spec } = new FakeEngine({ contextSize: 64, slots: 2 });
  const slots = new EngineSlots({
    info,
    spec,
    slots: async (request) => {
      requests.push(request.action);
      return answer(request);
    },
  });
  return { slots, asked: requests };
}

const save = (slots: EngineSlots, maxBytes = 100 * MIB) =>
  slots.save(0, async ({ chunks }) => (await Array.fromAsync(chunks)).map(({ length }) => length), {
    maxBytes,
    signal: never,
  });

function saving({ bytes = 10 * MIB, tokens = [1, 2], scales = [] as number[], piece = 4 * MIB } = {}) {
  return scripted((request) => {
    if (request.action === "save") return { action: "save", bytes, tokens: Int32Array.from(tokens), scales };
    if (request.action !== "read") return { action: "done" };
    return { action: "read", data: new Uint8Array(Math.min(piece, bytes - request.offset)) };
  });
}

describe("saving a slot of an engine", () => {
  test("reads the state in chunks and frees the engine's copy", async () => {
    const { slots, asked: requests } = saving();
    expect(await save(slots)).toEqual([4 * MIB, 4 * MIB, 2 * MIB]);
    expect(requests).toEqual(["save", "read", "read", "read", "drop"]);
  });

  test.each([
    ["a state larger than allowed", { bytes: 101 * MIB }],
    ["a token outside the vocabulary", { tokens: [1, 100] }],
    ["a negative token", { tokens: [-1] }],
    ["more tokens than the context", { tokens: Array.from({ length: 65 }, () => 1) }],
    ["a scale for an unknown adapter", { scales: [1] }],
    ["chunks that are too short", { piece: 1 }],
    ["missing chunks", { piece: 0 }],
  ])("rejects an engine's answer with %s", async (_what, changes) => {
    const { slots, asked: requests } = saving(changes);
    await expect(save(slots)).rejects.toMatchObject({ code: "inference_failed" });
    expect(requests.at(-1)).toBe("drop");
  });

  test("rejects an empty slot with slot_state_not_found", async () => {
    await expect(save(saving({ bytes: 0, tokens: [] }).slots)).rejects.toMatchObject({
      code: "slot_state_not_found",
    });
  });
});

test("a state whose chunks cannot be read completely is not restored", async () => {
  const { slots, asked: requests } = scripted(() => ({ action: "done" }));
  const chunks = (async function* () {
    yield new Uint8Array(4);
    throw new Error("the file is damaged");
  })();
  const state = { tokens: Int32Array.of(1), scales: [], bytes: 8, chunks };
  await expect(slots.restore(0, state, never)).rejects.toThrow("the file is damaged");
  expect(requests).toEqual(["begin", "write", "drop"]);
});

test("the engine's copy of a state is freed when the client disconnects", async () => {
  const { slots, asked: requests } = scripted(({ action }) => {
    if (action === "drop") return { action: "done" };
    throw new Error("the client has left");
  });
  await expect(save(slots)).rejects.toThrow("has left");
  const state = { tokens: Int32Array.of(1), scales: [], bytes: 8, chunks: (async function* () {})() };
  await expect(slots.restore(0, state, never)).rejects.toThrow("has left");
  expect(requests).toEqual(["save", "drop", "begin", "drop"]);
});

test.each([2, 64, 1e21, Infinity])(
  "slot %d of an engine with two slots is rejected without a message to the engine",
  async (slot) => {
    const { slots, asked: requests } = scripted(() => ({ action: "done" }));
    const state = { tokens: Int32Array.of(1), scales: [], bytes: 8, chunks: (async function* () {})() };
    const refused = { code: "invalid_parameter", message: expect.stringContaining("no slot of this number") };
    await expect(slots.erase(slot, never)).rejects.toMatchObject(refused);
    await expect(slots.restore(slot, state, never)).rejects.toMatchObject(refused);
    await expect(slots.save(slot, async () => {}, { maxBytes: MIB, signal: never })).rejects.toMatchObject(
      refused,
    );
    expect(requests).toEqual([]);
  },
);
