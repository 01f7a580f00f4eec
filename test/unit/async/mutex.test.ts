import { expect, test } from "vitest";
import { Mutex } from "../../../src/async/mutex.ts";

const NEVER = new AbortController().signal;

test("a mutex lets callers in one at a time, in their order", async () => {
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

test("a waiter that aborts neither blocks a mutex nor lets another in early", async () => {
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
