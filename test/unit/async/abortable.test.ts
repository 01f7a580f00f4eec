import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { abortable } from "../../../src/async/abortable.ts";

const NEVER = new AbortController().signal;

test("waiting gives what the promise gives, unless the signal aborts first", async () => {
  expect(await abortable(Promise.resolve("value"), NEVER)).toBe("value");
  await expect(abortable(Promise.reject(new Error("broken")), NEVER)).rejects.toThrow("broken");
  const client = new AbortController();
  const waiting = abortable(new Promise(() => undefined), client.signal);
  client.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
});

test.each([
  ["before", 0],
  ["during", 1],
])("a promise that fails after the signal has aborted %s the wait disturbs nobody", async (_when, turns) => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  const client = new AbortController();
  const work = Promise.withResolvers<void>();
  if (turns === 0) client.abort(new Error("gone"));
  const waiting = abortable(work.promise, client.signal);
  client.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  work.reject(new Error("failed later"));
  await setImmediate();
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});
