import { describe, expect, test } from "vitest";
import { EngineSlots } from "../../../src/engine/engine-slots.ts";
import type { SlotRequest, SlotResult } from "../../../src/engine/protocol/calls.ts";
import { FakeEngine } from "../../support/fake-engine.ts";

const never = new AbortController().signal;
const MIB = 1024 * 1024;

/** An engine that answers as it is told, and notes what it was asked. */
function scripted(answer: (request: SlotRequest) => SlotResult) {
  const asked: SlotRequest["action"][] = [];
  const { info, spec } = new FakeEngine({ contextSize: 64, slots: 2 });
  const slots = new EngineSlots({
    info,
    spec,
    slots: async (request) => {
      asked.push(request.action);
      return answer(request);
    },
  });
  return { slots, asked };
}

const save = (slots: EngineSlots, most = 100 * MIB) =>
  slots.save(0, async ({ pieces }) => (await Array.fromAsync(pieces)).map(({ length }) => length), {
    most,
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
  test("reads the state piece by piece, and frees the engine's memory", async () => {
    const { slots, asked } = saving();
    expect(await save(slots)).toEqual([4 * MIB, 4 * MIB, 2 * MIB]);
    expect(asked).toEqual(["save", "read", "read", "read", "drop"]);
  });

  test.each([
    ["a state larger than was allowed", { bytes: 101 * MIB }],
    ["a token that the vocabulary does not have", { tokens: [1, 100] }],
    ["a negative token", { tokens: [-1] }],
    ["more tokens than the context", { tokens: Array.from({ length: 65 }, () => 1) }],
    ["an adapter that it does not have", { scales: [1] }],
    ["pieces that are too short", { piece: 1 }],
    ["no more pieces", { piece: 0 }],
  ])("does not believe an engine that tells of %s", async (_what, told) => {
    const { slots, asked } = saving(told);
    await expect(save(slots)).rejects.toMatchObject({ code: "inference_failed" });
    expect(asked.at(-1)).toBe("drop");
  });

  test("says so when a slot is empty", async () => {
    await expect(save(saving({ bytes: 0, tokens: [] }).slots)).rejects.toMatchObject({
      code: "slot_state_not_found",
    });
  });
});

test("a state whose pieces cannot be read to the end is not restored", async () => {
  const { slots, asked } = scripted(() => ({ action: "done" }));
  const pieces = (async function* () {
    yield new Uint8Array(4);
    throw new Error("the file is damaged");
  })();
  const state = { tokens: Int32Array.of(1), scales: [], bytes: 8, pieces };
  await expect(slots.restore(0, state, never)).rejects.toThrow("the file is damaged");
  expect(asked).toEqual(["begin", "write", "drop"]);
});

test("a client who leaves while an engine begins to hold a state leaves none of it there", async () => {
  const { slots, asked } = scripted(({ action }) => {
    if (action === "drop") return { action: "done" };
    throw new Error("the client has left");
  });
  await expect(save(slots)).rejects.toThrow("has left");
  const state = { tokens: Int32Array.of(1), scales: [], bytes: 8, pieces: (async function* () {})() };
  await expect(slots.restore(0, state, never)).rejects.toThrow("has left");
  expect(asked).toEqual(["save", "drop", "begin", "drop"]);
});

test.each([2, 64, 1e21, Infinity])("an engine with two slots is not asked about slot %d", async (slot) => {
  const { slots, asked } = scripted(() => ({ action: "done" }));
  const state = { tokens: Int32Array.of(1), scales: [], bytes: 8, pieces: (async function* () {})() };
  const refused = { code: "invalid_parameter", message: expect.stringContaining("no slot of this number") };
  await expect(slots.erase(slot, never)).rejects.toMatchObject(refused);
  await expect(slots.restore(slot, state, never)).rejects.toMatchObject(refused);
  await expect(slots.save(slot, async () => {}, { most: MIB, signal: never })).rejects.toMatchObject(refused);
  expect(asked).toEqual([]);
});
