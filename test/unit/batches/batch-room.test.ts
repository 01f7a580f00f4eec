import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { BatchFormat, RunLine } from "../../../src/batches/batch-format.ts";
import { BatchRoom } from "../../../src/batches/batch-room.ts";
import type { Batch } from "../../../src/batches/batch.ts";
import { configSchema, type ConfigInput } from "../../../src/config/schema.ts";
import { SqliteBatchStore } from "../../../src/batches/sqlite/sqlite-batch-store.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { ServiceEvents } from "../../../src/events/service-events.ts";

const NO_USAGE = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };

/** Lines are texts: "model/id". */
const FORMAT: BatchFormat = {
  endpoints: ["/"],
  separatesErrors: false,
  read: (value) => ({ customId: String(value), model: String(value).split("/", 1)[0] ?? "", beginning: [] }),
  request: (value) => ({ path: "/", body: JSON.stringify(value) }),
  error: ({ code }) => JSON.stringify({ code }),
  usage: () => NO_USAGE,
  write: ({ customId, outcome, answer }) =>
    JSON.stringify([customId, outcome, answer ? JSON.parse(answer.body) : null]),
};
const echo: RunLine = async ({ body }) => ({ status: 200, body, retryable: false, retryAfterSecs: 1 });

/** Answers the first line alone. */
const onlyFirst: RunLine = async (line, signal) => {
  if (line.body === '"m/0"') return await echo(line, signal);
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  return await echo(line, signal);
};

let folder: string;
const rooms: BatchRoom[] = [];

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-batches-"));
});

afterEach(async () => {
  await Promise.all(rooms.splice(0).map((room) => room.close()));
  rmSync(folder, { recursive: true });
});

async function open(
  runLine: RunLine = echo,
  config: ConfigInput = {},
  now?: () => number,
): Promise<BatchRoom> {
  const room = new BatchRoom({
    config: configSchema.parse({ cache_dir: folder, ...config }),
    formats: { test: FORMAT },
    events: new ServiceEvents(),
    logger: pino({ level: "silent" }),
    onLine: () => undefined,
    ...(now && { now }),
  });
  rooms.push(room);
  await room.start(runLine);
  return room;
}

async function create(room: BatchRoom, lines: readonly string[]): Promise<Batch> {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  const received = await room.receive([new TextEncoder().encode(text)]);
  const inputFile = await received.keep({ viewer: undefined, purpose: "requests", name: "in" });
  const [api, endpoint] = ["test", "/"];
  return await room.create({ viewer: undefined, api, idKind: "batch", endpoint, inputFile, metadata: null });
}

async function results(room: BatchRoom, id: string): Promise<unknown[]> {
  await expect
    .poll(async () => (await room.batch(undefined, "test", id)).outputFile, { interval: 5 })
    .toBeDefined();
  const { outputFile = "" } = await room.batch(undefined, "test", id);
  const content = await room.content(undefined, outputFile, ["results"]);
  const text = await new Response(content.read(0, content.size - 1)).text();
  return text
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
}

function storedFiles(): string[] {
  return readdirSync(path.join(folder, "batches/data/files"));
}

function named(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `m/${at}`);
}

test("without a batch nothing is written", async () => {
  await open();
  expect(existsSync(path.join(folder, "batches"))).toBe(false);
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
  let room = await open(slow, { models: { slots: 1 } });
  const { id } = await create(room, lines);
  for (let restarts = 0; restarts < 3; restarts += 1) {
    const before = answered;
    await expect.poll(() => answered, { interval: 2 }).toBeGreaterThan(before + 5);
    await room.close();
    room = await open(slow, { models: { slots: 1 } });
  }
  await room.close();
  room = await open();
  expect(await results(room, id)).toEqual(lines.map((line) => [line, "succeeded", line]));
  expect(await room.batch(undefined, "test", id)).toMatchObject({ status: "completed", total: 40 });
});

test("lines of one model are run together", async () => {
  const asked: unknown[] = [];
  const room = await open(async (line, signal) => {
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
  const room = await open(async (line, signal) => {
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
  const room = await open(async (line, signal) => {
    tries += 1;
    if (hasRoom) return await echo(line, signal);
    return { status: 503, body: "{}", retryable: true, retryAfterSecs: 2 };
  });
  const { id } = await create(room, named(500));
  await expect.poll(() => tries, { interval: 5 }).toBeGreaterThan(0);
  await new Promise((resolve) => setTimeout(resolve, 200));
  // Those that were under way at once.
  expect(tries).toBeLessThan(10);
  hasRoom = true;
  expect(await results(room, id)).toHaveLength(500);
});

test("a batch whose lines are refused again and again says why, until one is answered", async () => {
  let hasRoom = false;
  const room = await open(async (line, signal) => {
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
  let room = await open(onlyFirst, {}, () => now);
  const { id } = await create(room, named(3));
  await expect
    .poll(async () => (await room.batch(undefined, "test", id)).counts.succeeded, { interval: 5 })
    .toBe(1);
  await room.close();
  now += 24 * 3_600_000;
  room = await open(onlyFirst, {}, () => now);
  expect(await results(room, id)).toEqual([
    ["m/0", "succeeded", "m/0"],
    ["m/1", "expired", null],
    ["m/2", "expired", null],
  ]);
  expect((await room.batch(undefined, "test", id)).status).toBe("expired");
});

test("files and batches are kept for a time", async () => {
  let now = 1_000_000;
  const config = { batches: { retention: 60 } };
  let room = await open(echo, config, () => now);
  const { id, inputFile } = await create(room, named(2));
  await results(room, id);
  await room.close();
  now += 61_000;
  room = await open(echo, config, () => now);
  await expect(room.file(undefined, inputFile, ["requests"])).rejects.toMatchObject({
    code: "file_not_found",
  });
  await expect(room.batch(undefined, "test", id)).rejects.toMatchObject({ code: "batch_not_found" });
  expect(storedFiles()).toEqual([]);
});

test("a damaged store is put aside with all its files, and a new one begins", async () => {
  let room = await open();
  await results(room, (await create(room, named(2))).id);
  await room.close();
  writeFileSync(path.join(folder, "batches/data/batches.db"), "no database ".repeat(1000));
  room = await open();
  const kept = readdirSync(path.join(folder, "batches")).filter((name) => name.startsWith("damaged-"));
  expect(kept).toHaveLength(1);
  expect(readdirSync(path.join(folder, "batches", kept[0] ?? "", "files"))).toHaveLength(2);
  expect(await results(room, (await create(room, named(2))).id)).toHaveLength(2);
});

test("a store that becomes damaged while it is open is put aside, and the next batch has a new one", async () => {
  let gate = Promise.withResolvers<void>();
  const gated: RunLine = async (line, signal) => {
    await Promise.race([gate.promise, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
    return await echo(line, signal);
  };
  let room = await open(gated);
  const { id } = await create(room, named(3000));
  await expect
    .poll(async () => (await room.batch(undefined, "test", id)).status, { interval: 5 })
    .toBe("in_progress");
  await room.close();
  room = await open(gated);
  // The first pages have been read.
  const database = path.join(folder, "batches/data/batches.db");
  const damaged = readFileSync(database).fill(0xff, 20 * 4096);
  writeFileSync(database, damaged);
  gate.resolve();
  const aside = (): string[] =>
    readdirSync(path.join(folder, "batches")).filter((name) => name.startsWith("damaged-"));
  await expect.poll(aside, { interval: 5 }).toHaveLength(1);
  gate = Promise.withResolvers();
  gate.resolve();
  expect(await results(room, (await create(room, named(2))).id)).toHaveLength(2);
});

test("a second daemon on the same folder is told that the first has the batches", async () => {
  const room = await open();
  await results(room, (await create(room, named(1))).id);
  const { execFileSync } = await import("node:child_process");
  const lock = path.join(folder, "batches/daybreak.lock");
  const source = new URL("../../../src/files/file-lock.ts", import.meta.url).href;
  const script = `const { tryLock } = await import(${JSON.stringify(source)}); console.log((await tryLock(${JSON.stringify(lock)})) === undefined)`;
  expect(
    execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" }).trim(),
  ).toBe("true");
});

test("files are bounded alone and together", async () => {
  const room = await open(echo, { batches: { max_file_size: 2048, max_total_size: 3000 } });
  const file = [new Uint8Array(2000)];
  await (await room.receive(file)).keep({ viewer: undefined, purpose: "batch", name: "one" });
  await expect(room.receive([new Uint8Array(3000)])).rejects.toMatchObject({ code: "payload_too_large" });
  await expect(room.receive(file)).rejects.toMatchObject({ code: "insufficient_disk" });
  expect(storedFiles()).toHaveLength(1);
});

test("a file that is not kept leaves nothing", async () => {
  const room = await open();
  await (await room.receive([new Uint8Array(10)]))[Symbol.asyncDispose]();
  expect(storedFiles()).toEqual([]);
});

test("a store that turns out to be damaged when its batches are read is put aside", async () => {
  let room = await open();
  await results(room, (await create(room, named(2))).id);
  await room.close();
  const file = path.join(folder, "batches/data/batches.db");
  const database = new DatabaseSync(file);
  const { rootpage } =
    database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'batches'").get() ?? {};
  database.close();
  const page = (Number(rootpage) - 1) * 4096;
  writeFileSync(file, readFileSync(file).fill(0xff, page, page + 4096));
  room = await open();
  expect(await results(room, (await create(room, named(2))).id)).toHaveLength(2);
});

test("files that arrive at the same time are bounded together", async () => {
  const room = await open(echo, { batches: { max_file_size: 2048, max_total_size: 3000 } });
  await room.receive([]).then((first) => first[Symbol.asyncDispose]());
  const file = [new Uint8Array(2000)];
  const one = await room.receive(file);
  await expect(room.receive(file)).rejects.toMatchObject({ code: "insufficient_disk" });
  await one[Symbol.asyncDispose]();
  const [two, three] = [await room.receive(file), await room.receive([new Uint8Array(900)])];
  const kept = { viewer: undefined, purpose: "batch", name: "" } as const;
  await three.keep(kept);
  await two.keep(kept);
  expect(storedFiles()).toHaveLength(2);
});

test("a line that would not be taken as a request fails the batch, and blocks nothing", async () => {
  const room = await open();
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

test("output that the store does not take is not left on the disk", async () => {
  const done = Promise.withResolvers<void>();
  const room = await open(async (line, signal) => {
    await done.promise;
    return await echo(line, signal);
  });
  const finish = vi
    .spyOn(SqliteBatchStore.prototype, "finish")
    .mockRejectedValue(new ServiceError("insufficient_disk", "The disk is full."));
  await create(room, named(2));
  done.resolve();
  await expect.poll(() => finish.mock.calls.length, { interval: 5 }).toBe(1);
  await expect.poll(storedFiles, { interval: 5 }).toHaveLength(1);
  finish.mockRestore();
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
  const room = await open(failing, {}, () => (time += 5000));
  const { id } = await create(room, named(3));
  expect(await results(room, id)).toEqual([
    ["m/0", "errored", { code: "internal_error" }],
    ["m/1", "errored", { code: "internal_error" }],
    ["m/2", "succeeded", "m/2"],
  ]);
  expect(Object.fromEntries(tries)).toEqual({ '"m/0"': 3, '"m/1"': 3, '"m/2"': 1 });
});

test.skipIf(process.platform === "win32")("other accounts can read nothing of batches", async () => {
  const data = path.join(folder, "batches/data");
  // As a daemon before this one made them.
  mkdirSync(path.join(data, "files"), { recursive: true });
  for (const each of ["batches", "batches/data", "batches/data/files"])
    chmodSync(path.join(folder, each), 0o755);
  const modes = (): Record<string, string> =>
    Object.fromEntries(
      readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => {
        const { mode } = statSync(path.join(folder, name));
        return [name.replace(/file-\w+/, "file"), (mode & 0o777).toString(8)];
      }),
    );
  let room = await open(onlyFirst);
  await create(room, named(2));
  const expected = {
    batches: "700",
    "batches/daybreak.lock": "600",
    "batches/data": "700",
    "batches/data/batches.db": "600",
    "batches/data/batches.db-shm": "600",
    "batches/data/batches.db-wal": "600",
    "batches/data/files": "700",
    "batches/data/files/file": "600",
  };
  expect(modes()).toEqual(expected);
  await room.close();
  chmodSync(path.join(data, "batches.db"), 0o644);
  room = await open(onlyFirst);
  expect(modes()).toEqual(expected);
});
