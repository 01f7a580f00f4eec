import { describe, expect, test } from "vitest";
import type { ResponseObject } from "../../../../../src/dialects/openai/responses/response-object.ts";
import { ResponseStore } from "../../../../../src/dialects/openai/responses/response-store.ts";
import { responseOf } from "./response-of.ts";

/** Room for three of the responses below, not for four. */
const LIMIT = 6000;

function filled(...texts: string[]): { store: ResponseStore; responses: ResponseObject[] } {
  const store = new ResponseStore(LIMIT);
  const responses = texts.map(responseOf);
  for (const response of responses) store.add(response, response.output);
  return { store, responses };
}

const small = "x".repeat(500);

describe("the memory of responses", () => {
  test("keeps whole conversations and finds single items", () => {
    const { store, responses } = filled("Hello");
    const [response] = responses;
    expect(store.get(response!.id)).toMatchObject({ response, items: response!.output });
    expect(store.item(response!.output[0]!.id)).toEqual(response!.output[0]);
  });

  test("forgets what was not used for longest when it is full, its items too", () => {
    const { store, responses } = filled(small, small, small);
    const [first, second, third] = responses;
    expect(store.get(first!.id)).toBeDefined();
    const fourth = responseOf(small);
    store.add(fourth, fourth.output);
    expect([first, second, third, fourth].map((response) => store.get(response!.id) !== undefined)).toEqual([
      true,
      false,
      true,
      true,
    ]);
    expect(store.item(second!.output[0]!.id)).toBeUndefined();
  });

  test("keeps none that alone is too long, and the others stay", () => {
    const { store, responses } = filled("Hello", "y".repeat(LIMIT));
    expect(responses.map(({ id }) => store.get(id) !== undefined)).toEqual([true, false]);
  });

  test("has room again for what was deleted", () => {
    const { store, responses } = filled(small, small, small);
    expect(store.delete(responses[2]!.id)).toBe(true);
    expect(store.delete(responses[2]!.id)).toBe(false);
    const another = responseOf(small);
    store.add(another, another.output);
    expect([responses[0]!, responses[1]!, another].every(({ id }) => store.get(id))).toBe(true);
  });
});
