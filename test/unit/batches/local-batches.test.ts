import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import type { Batch, RunLine } from "../../../src/batches/batch.ts";
import { TestBatches, create, echo, named, onlyFirst, results } from "./batch-services.ts";

const testBatches = new TestBatches();

test("creates no files without a batch", async () => {
  await testBatches.open();
  expect(existsSync(path.join(testBatches.folder, "batches"))).toBe(false);
});

test("a batch continues after each restart, and each line is answered once", async () => {
  const lines = named(40);
  let answered = 0;
  const slow: RunLine = async ({ body }, signal) => {
    answered += 1;
    // Lines that run when the process ends are run again.
    if (answered % 9 === 0) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return { status: 200, body, retryable: false, retryAfterSecs: 1 };
  };
  let batches = await testBatches.open(slow, { models: { slots: 1 } });
  const { id } = await create(batches, lines);
  for (let restarts = 0; restarts < 3; restarts += 1) {
    const before = answered;
    await expect.poll(() => answered, { interval: 2 }).toBeGreaterThan(before + 5);
    await batches.close();
    batches = await testBatches.open(slow, { models: { slots: 1 } });
  }
  await batches.close();
  batches = await testBatches.open();
  expect(await results(batches, id)).toEqual(lines.map((line) => [line, "succeeded", line]));
  expect(await batches.batch(undefined, "test", id)).toMatchObject({ status: "completed", total: 40 });
});

test("lines of one model run together", async () => {
  const asked: unknown[] = [];
  const batches = await testBatches.open(async (line, signal) => {
    asked.push(JSON.parse(line.body));
    return await echo(line, signal);
  });
  const { id } = await create(batches, ["b/1", "a/1", "b/2", "a/2", "b/3", "a/3"]);
  expect(await results(batches, id)).toHaveLength(6);
  expect(asked.map((line) => String(line)[0])).toEqual(["a", "a", "a", "b", "b", "b"]);
});

test("two batches for different models alternate by turns rather than by lines", async () => {
  const running = new Set<string>();
  const together: boolean[] = [];
  const batches = await testBatches.open(async (line, signal) => {
    const [model = ""] = String(JSON.parse(line.body)).split("/");
    running.add(model);
    together.push(running.size > 1);
    await new Promise((resolve) => setTimeout(resolve, 1));
    running.delete(model);
    return await echo(line, signal);
  });
  const one = await create(batches, named(30));
  const other = await create(batches, ["n/1", "n/2"]);
  expect(await results(batches, one.id)).toHaveLength(30);
  expect(await results(batches, other.id)).toHaveLength(2);
  expect(together).not.toContain(true);
});

test("does not try further lines while there is no memory for the model", async () => {
  let tries = 0;
  let hasMemory = false;
  const batches = await testBatches.open(async (line, signal) => {
    tries += 1;
    if (hasMemory) return await echo(line, signal);
    return { status: 503, body: "{}", retryable: true, retryAfterSecs: 2 };
  });
  const { id } = await create(batches, named(50));
  await expect.poll(() => tries, { interval: 5 }).toBeGreaterThan(0);
  await new Promise((resolve) => setTimeout(resolve, 200));
  // Only the lines that were already running.
  expect(tries).toBeLessThan(10);
  hasMemory = true;
  expect(await results(batches, id)).toHaveLength(50);
});

test("a batch whose lines are refused repeatedly reports why, until one is answered", async () => {
  let hasMemory = false;
  const batches = await testBatches.open(async (line, signal) => {
    if (hasMemory) return await onlyFirst(line, signal);
    const body = JSON.stringify({ error: { message: "There is no room." } });
    return { status: 503, body, retryable: true, retryAfterSecs: 0.01 };
  });
  const { id } = await create(batches, named(2));
  const batch = async (): Promise<Batch> => await batches.batch(undefined, "test", id);
  await expect.poll(async () => (await batch()).waiting, { interval: 5 }).toBe("waits: There is no room.");
  hasMemory = true;
  await expect.poll(async () => (await batch()).counts.succeeded, { interval: 5 }).toBe(1);
  expect(await batch()).toMatchObject({ status: "in_progress", waiting: undefined });
});

test("lines that are not done within the completion window expire", async () => {
  let now = 1_000_000;
  let batches = await testBatches.open(onlyFirst, {}, () => now);
  const { id } = await create(batches, named(3));
  await expect
    .poll(async () => (await batches.batch(undefined, "test", id)).counts.succeeded, { interval: 5 })
    .toBe(1);
  await batches.close();
  now += 24 * 3_600_000;
  batches = await testBatches.open(onlyFirst, {}, () => now);
  expect(await results(batches, id)).toEqual([
    ["m/0", "succeeded", "m/0"],
    ["m/1", "expired", null],
    ["m/2", "expired", null],
  ]);
  expect((await batches.batch(undefined, "test", id)).status).toBe("expired");
});

test("a line that is too deep or too wide for a request fails the batch", async () => {
  const batches = await testBatches.open();
  const deep = `${"[".repeat(20_000)}1${"]".repeat(20_000)}`;
  const wide = `[${"[],".repeat(200_000)}1]`;
  const received = await batches.receive([new TextEncoder().encode(`"m/0"\n${deep}\n${wide}\n`)]);
  const inputFile = await received.store({ viewer: undefined, purpose: "requests", name: "in" });
  const [api, endpoint] = ["test", "/"];
  const { id } = await batches.create({
    viewer: undefined,
    api,
    idKind: "batch",
    endpoint,
    inputFile,
    metadata: null,
  });
  const status = async (): Promise<string> => (await batches.batch(undefined, api, id)).status;
  await expect.poll(status, { interval: 5 }).toBe("failed");
  expect((await batches.batch(undefined, api, id)).problems).toMatchObject([
    { line: 2, code: "invalid_json_line", message: expect.stringContaining("nested") },
    { line: 3, code: "invalid_json_line", message: expect.stringContaining("values") },
  ]);
});

test("an exception of one line becomes the answer to that line, and the batch continues", async () => {
  const tries = new Map<string, number>();
  const failing: RunLine = async (line, signal) => {
    tries.set(line.body, (tries.get(line.body) ?? 0) + 1);
    if (line.body === '"m/0"') throw new RangeError("Maximum call stack size exceeded");
    if (line.body === '"m/1"') return { ...(await echo(line, signal)), body: "<html>" };
    return await echo(line, signal);
  };
  // Advances the clock so that no retry has to wait.
  let time = 1_000_000;
  const batches = await testBatches.open(failing, {}, () => (time += 5000));
  const { id } = await create(batches, named(3));
  expect(await results(batches, id)).toEqual([
    ["m/0", "errored", { code: "internal_error" }],
    ["m/1", "errored", { code: "internal_error" }],
    ["m/2", "succeeded", "m/2"],
  ]);
  expect(Object.fromEntries(tries)).toEqual({ '"m/0"': 3, '"m/1"': 3, '"m/2"': 1 });
});
