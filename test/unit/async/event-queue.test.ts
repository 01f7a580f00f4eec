import { expect, test } from "vitest";
import { EventQueue } from "../../../src/async/event-queue.ts";

function queue(limit = 10): EventQueue<string> {
  return new EventQueue(limit, (value) => value.length);
}

test("a queue yields its values in order, also those from before the reader, then the end", async () => {
  const values = queue();
  values.push("a");
  const all = Array.fromAsync(values);
  values.push("b");
  values.end();
  values.push("behind the end");
  expect(await all).toEqual(["a", "b"]);
});

test("a queue that ends with an error first yields its values", async () => {
  const values = queue();
  values.push("a");
  values.end(new Error("broken"));
  expect(await values.next()).toEqual({ done: false, value: "a" });
  await expect(values.next()).rejects.toThrow("broken");
});

test("a cleared queue drops its values", async () => {
  const values = queue();
  values.push("a");
  values.clear(new Error("too slow"));
  await expect(values.next()).rejects.toThrow("too slow");
});

test("a full queue rejects values until it has been read", async () => {
  const values = queue(4);
  expect([values.push("aa"), values.push("bb"), values.push("c")]).toEqual([true, true, false]);
  await values.next();
  expect(values.push("c")).toBe(true);
});

test("ready() resolves when the queue has a value, without taking it", async () => {
  const values = queue();
  let isReady = false;
  const ready = values.ready().then(() => (isReady = true));
  await Promise.resolve();
  expect(isReady).toBe(false);
  values.push("a");
  await ready;
  expect(await values.next()).toEqual({ done: false, value: "a" });
});
