import { Hono } from "hono";
import { expect, test } from "vitest";
import {
  answerWarnings,
  addWarnings,
  WARNING_HEADER,
} from "../../../../src/http/middleware/answer-warnings.ts";
import type { AppEnv } from "../../../../src/http/app-env.ts";

async function told(warnings: readonly string[]): Promise<string | null> {
  const app = new Hono<AppEnv>().use(answerWarnings()).get("/", (context) => {
    addWarnings(context, warnings);
    return new Response("a stream");
  });
  return (await app.request("/")).headers.get(WARNING_HEADER);
}

test("warnings are a header of the answer, streamed or not", async () => {
  expect(await told(["a is not enforced", "b is not enforced"])).toBe("a is not enforced; b is not enforced");
  expect(await told([])).toBeNull();
});

test("they have the characters that headers may have", async () => {
  expect(await told(["größe\n"])).toBe("gr\\u00f6\\u00dfe\\u000a");
});

test("they are no more than fits", async () => {
  const header = await told(Array.from({ length: 300 }, (_, at) => `${at} ${"x".repeat(500)}`));
  expect(header).toMatch(/^0 x+; 1 x+;.*; and 290 more$/);
  expect(header?.length).toBeLessThan(2100);
});
