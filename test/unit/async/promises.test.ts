import { setImmediate as promisesSetImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { abortable, Mutex } from "../../../src/async/promises.ts";

const NEVER = new AbortController().signal;

test("abortable() settles like the promise, unless the signal aborts first", async () => {
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
])(
  "a promise that fails after the signal aborted %s the wait causes no unhandled rejection",
  async (_when, turns) => {
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
    await promisesSetImmediate();
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  },
);

test("a mutex admits callers one at a time, in order", async () => {
  const mutex = new Mutex();
  const log: string[] = [];
  const work = async (name: string): Promise<void> => {
    using lock = await mutex.lock(NEVER);
    log.push(`${name} in`);
    await new Promise((resolve) => setImmediate(resolve));
    log.push(`${name} out`);
    expect(lock).toBeDefined();
  };
  await Promise.all([work("a"), work("b"), work("c")]);
  expect(log).toEqual(["a in", "a out", "b in", "b out", "c in", "c out"]);
});

test("releasing a mutex twice admits one waiter, not two", async () => {
  const mutex = new Mutex();
  const first = await mutex.lock(NEVER);
  const second = mutex.lock(NEVER);
  let isThirdIn = false;
  const third = mutex.lock(NEVER).then(() => (isThirdIn = true));
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  const lock = await second;
  await new Promise((resolve) => setImmediate(resolve));
  expect(isThirdIn).toBe(false);
  lock[Symbol.dispose]();
  await third;
});

test("a waiter that aborts neither blocks a mutex nor admits another early", async () => {
  const mutex = new Mutex();
  const first = await mutex.lock(NEVER);
  const client = new AbortController();
  const second = mutex.lock(client.signal);
  let isThirdIn = false;
  const third = mutex.lock(NEVER).then(() => (isThirdIn = true));
  client.abort(new Error("gone"));
  await expect(second).rejects.toThrow("gone");
  expect(isThirdIn).toBe(false);
  first[Symbol.dispose]();
  await third;
});
