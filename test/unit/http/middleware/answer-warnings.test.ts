import { Hono } from "hono";
import { expect, test } from "vitest";
import { answerWarnings, WARNING_HEADER } from "../../../../src/http/middleware/answer-warnings.ts";
import type { AppEnv } from "../../../../src/http/app-env.ts";

async function headerFor(warnings: readonly string[]): Promise<string | null> {
  const app = new Hono<AppEnv>().use(answerWarnings()).get("/", (context) => {
    context.set("warnings", warnings);
    return new Response("a stream");
  });
  return (await app.request("/")).headers.get(WARNING_HEADER);
}

test("warnings are sent in a response header", async () => {
  expect(await headerFor(["a is not enforced", "b is not enforced"])).toBe(
    "a is not enforced; b is not enforced",
  );
  expect(await headerFor([])).toBeNull();
});

test("warnings are escaped for headers", async () => {
  expect(await headerFor(["größe\n"])).toBe("gr\\u00f6\\u00dfe\\u000a");
});

test("warnings are limited in number and length", async () => {
  const header = await headerFor(Array.from({ length: 300 }, (_, at) => `${at} ${"x".repeat(500)}`));
  expect(header).toMatch(/^0 x+; 1 x+;.*; and 290 more$/);
  expect(header?.length).toBeLessThan(2100);
});
