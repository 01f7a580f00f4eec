import { expect, test } from "vitest";
import { EventQueue } from "../../../src/async/event-queue.ts";

function queue(limit = 10): EventQueue<string> {
  return new EventQueue(limit, (value) => value.length);
}

test("a queue gives its values in their order, also those that came before the reader, then the end", async () => {
  const values = queue();
  values.push("a");
  const all = Array.fromAsync(values);
  values.push("b");
  values.end();
  values.push("behind the end");
  expect(await all).toEqual(["a", "b"]);
});

test("a queue that ends with an error gives what waits first", async () => {
  const values = queue();
  values.push("a");
  values.end(new Error("broken"));
  expect(await values.next()).toEqual({ done: false, value: "a" });
  await expect(values.next()).rejects.toThrow("broken");
});

test("a queue that is cleared gives nothing of what waited", async () => {
  const values = queue();
  values.push("a");
  values.clear(new Error("too slow"));
  await expect(values.next()).rejects.toThrow("too slow");
});

test("a queue takes no more than its limit, until it has been read", async () => {
  const values = queue(4);
  expect([values.push("aa"), values.push("bb"), values.push("c")]).toEqual([true, true, false]);
  await values.next();
  expect(values.push("c")).toBe(true);
});

test("a queue is ready when a value waits, without taking it", async () => {
  const values = queue();
  let isReady = false;
  const ready = values.ready().then(() => (isReady = true));
  await Promise.resolve();
  expect(isReady).toBe(false);
  values.push("a");
  await ready;
  expect(await values.next()).toEqual({ done: false, value: "a" });
});
