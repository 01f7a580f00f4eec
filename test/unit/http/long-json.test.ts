import { expect, test } from "vitest";
import { mapInTimeSlices } from "../../../src/async/timers.ts";
import { longJson } from "../../../src/http/streaming/stream-response.ts";
import { longestTurn } from "../../support/longest-turn.ts";

/** Serializing at once would take most of a second. The limit includes garbage collections of other tests. */
const LONGEST_TURN_MS = 200;

const vector = Array.from({ length: 384 }, (_, index) => Math.sin(index));

test.each([
  { object: "list", data: [], usage: { total_tokens: 1 } },
  { tokens: [1, 2, 3], nothing: undefined, none: null, text: "\u{1F600}\n" },
  { data: Array.from({ length: 500 }, (_, index) => ({ index, embedding: vector })), model: "m" },
  Array.from({ length: 500 }, (_, index) => ({ index, embedding: vector })),
  [],
  {},
])("longJson equals JSON.stringify: %#", async (value) => {
  const answer = await longJson(value);
  expect(answer.headers.get("content-type")).toBe("application/json");
  expect(await answer.text()).toBe(JSON.stringify(value));
});

test("longJson does not block the event loop for sixteen thousand vectors", async () => {
  const vectors = Array.from({ length: 16_384 }, () => vector);
  let bytes = 0;
  const longest = await longestTurn(async () => {
    const data = await mapInTimeSlices(vectors, 64, (embedding, index) => ({ index, embedding }));
    for await (const chunk of (await longJson({ data })).body ?? []) bytes += chunk.length;
  });
  expect(bytes).toBeGreaterThan(100_000_000);
  expect(longest).toBeLessThan(LONGEST_TURN_MS);
});

test("longJson stops when the client disconnects", async () => {
  let written = 0;
  const element = { toJSON: () => (written += 1) && vector };
  const answer = await longJson({ data: Array.from({ length: 10_000 }, () => element) });
  const reader = answer.body?.getReader();
  await reader?.read();
  await reader?.cancel();
  await new Promise((resolve) => setImmediate(resolve));
  expect(written).toBeLessThan(100);
});
