import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import type { Batch, RunLine } from "../../../src/batches/batch.ts";
import { BatchRooms, create, echo, named, onlyFirst, results } from "./batch-services.ts";

const rooms = new BatchRooms();

test("without a batch nothing is written", async () => {
  await rooms.open();
  expect(existsSync(path.join(rooms.folder, "batches"))).toBe(false);
});

test("a batch goes on after each end of the process, and each line is answered once", async () => {
  const lines = named(40);
  let answered = 0;
  const slow: RunLine = async ({ body }, signal) => {
    answered += 1;
    // What is under way when the process ends is lost, and done again.
    if (answered % 9 === 0) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return { status: 200, body, retryable: false, retryAfterSecs: 1 };
  };
  let room = await rooms.open(slow, { models: { slots: 1 } });
  const { id } = await create(room, lines);
  for (let restarts = 0; restarts < 3; restarts += 1) {
    const before = answered;
    await expect.poll(() => answered, { interval: 2 }).toBeGreaterThan(before + 5);
    await room.close();
    room = await rooms.open(slow, { models: { slots: 1 } });
  }
  await room.close();
  room = await rooms.open();
  expect(await results(room, id)).toEqual(lines.map((line) => [line, "succeeded", line]));
  expect(await room.batch(undefined, "test", id)).toMatchObject({ status: "completed", total: 40 });
});

test("lines of one model are run together", async () => {
  const asked: unknown[] = [];
  const room = await rooms.open(async (line, signal) => {
    asked.push(JSON.parse(line.body));
    return await echo(line, signal);
  });
  const { id } = await create(room, ["b/1", "a/1", "b/2", "a/2", "b/3", "a/3"]);
  expect(await results(room, id)).toHaveLength(6);
  expect(asked.map((line) => String(line)[0])).toEqual(["a", "a", "a", "b", "b", "b"]);
});

test("two batches for different models take turns instead of changing places with each line", async () => {
  const running = new Set<string>();
  const together: boolean[] = [];
  const room = await rooms.open(async (line, signal) => {
    const [model = ""] = String(JSON.parse(line.body)).split("/");
    running.add(model);
    together.push(running.size > 1);
    await new Promise((resolve) => setTimeout(resolve, 1));
    running.delete(model);
    return await echo(line, signal);
  });
  const one = await create(room, named(30));
  const other = await create(room, ["n/1", "n/2"]);
  expect(await results(room, one.id)).toHaveLength(30);
  expect(await results(room, other.id)).toHaveLength(2);
  expect(together).not.toContain(true);
});

test("while there is no room for the model, lines are not tried one after the other", async () => {
  let tries = 0;
  let hasRoom = false;
  const room = await rooms.open(async (line, signal) => {
    tries += 1;
    if (hasRoom) return await echo(line, signal);
    return { status: 503, body: "{}", retryable: true, retryAfterSecs: 2 };
  });
  const { id } = await create(room, named(50));
  await expect.poll(() => tries, { interval: 5 }).toBeGreaterThan(0);
  await new Promise((resolve) => setTimeout(resolve, 200));
  // Those that were under way at once.
  expect(tries).toBeLessThan(10);
  hasRoom = true;
  expect(await results(room, id)).toHaveLength(50);
});

test("a batch whose lines are refused again and again says why, until one is answered", async () => {
  let hasRoom = false;
  const room = await rooms.open(async (line, signal) => {
    if (hasRoom) return await onlyFirst(line, signal);
    const body = JSON.stringify({ error: { message: "There is no room." } });
    return { status: 503, body, retryable: true, retryAfterSecs: 0.01 };
  });
  const { id } = await create(room, named(2));
  const batch = async (): Promise<Batch> => await room.batch(undefined, "test", id);
  await expect.poll(async () => (await batch()).waiting, { interval: 5 }).toBe("waits: There is no room.");
  hasRoom = true;
  await expect.poll(async () => (await batch()).counts.succeeded, { interval: 5 }).toBe(1);
  expect(await batch()).toMatchObject({ status: "in_progress", waiting: undefined });
});

test("what is not done within the window expires", async () => {
  let now = 1_000_000;
  let room = await rooms.open(onlyFirst, {}, () => now);
  const { id } = await create(room, named(3));
  await expect
    .poll(async () => (await room.batch(undefined, "test", id)).counts.succeeded, { interval: 5 })
    .toBe(1);
  await room.close();
  now += 24 * 3_600_000;
  room = await rooms.open(onlyFirst, {}, () => now);
  expect(await results(room, id)).toEqual([
    ["m/0", "succeeded", "m/0"],
    ["m/1", "expired", null],
    ["m/2", "expired", null],
  ]);
  expect((await room.batch(undefined, "test", id)).status).toBe("expired");
});

test("a line that would not be taken as a request fails the batch, and blocks nothing", async () => {
  const room = await rooms.open();
  const deep = `${"[".repeat(20_000)}1${"]".repeat(20_000)}`;
  const wide = `[${"[],".repeat(200_000)}1]`;
  const received = await room.receive([new TextEncoder().encode(`"m/0"\n${deep}\n${wide}\n`)]);
  const inputFile = await received.keep({ viewer: undefined, purpose: "requests", name: "in" });
  const [api, endpoint] = ["test", "/"];
  const { id } = await room.create({
    viewer: undefined,
    api,
    idKind: "batch",
    endpoint,
    inputFile,
    metadata: null,
  });
  const status = async (): Promise<string> => (await room.batch(undefined, api, id)).status;
  await expect.poll(status, { interval: 5 }).toBe("failed");
  expect((await room.batch(undefined, api, id)).problems).toMatchObject([
    { line: 2, code: "invalid_json_line", message: expect.stringContaining("nested") },
    { line: 3, code: "invalid_json_line", message: expect.stringContaining("values") },
  ]);
});

test("an exception that belongs to one line is the answer to that line, and the batch goes on", async () => {
  const tries = new Map<string, number>();
  const failing: RunLine = async (line, signal) => {
    tries.set(line.body, (tries.get(line.body) ?? 0) + 1);
    if (line.body === '"m/0"') throw new RangeError("Maximum call stack size exceeded");
    if (line.body === '"m/1"') return { ...(await echo(line, signal)), body: "<html>" };
    return await echo(line, signal);
  };
  // So that nothing has to wait before it is tried again.
  let time = 1_000_000;
  const room = await rooms.open(failing, {}, () => (time += 5000));
  const { id } = await create(room, named(3));
  expect(await results(room, id)).toEqual([
    ["m/0", "errored", { code: "internal_error" }],
    ["m/1", "errored", { code: "internal_error" }],
    ["m/2", "succeeded", "m/2"],
  ]);
  expect(Object.fromEntries(tries)).toEqual({ '"m/0"': 3, '"m/1"': 3, '"m/2"': 1 });
});
