import { chmodSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";
import type { RunLine } from "../../../src/batches/batch.ts";
import { SqliteBatchStore } from "../../../src/batches/sqlite/sqlite-batch-store.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { BatchRooms, create, echo, named, onlyFirst, results } from "./batch-services.ts";

const rooms = new BatchRooms();

test("files and batches are kept for a time", async () => {
  let now = 1_000_000;
  const config = { batches: { retention: 60 } };
  let room = await rooms.open(echo, config, () => now);
  const { id, inputFile } = await create(room, named(2));
  await results(room, id);
  await room.close();
  now += 61_000;
  room = await rooms.open(echo, config, () => now);
  await expect(room.file(undefined, inputFile, ["requests"])).rejects.toMatchObject({
    code: "file_not_found",
  });
  await expect(room.batch(undefined, "test", id)).rejects.toMatchObject({ code: "batch_not_found" });
  expect(rooms.storedFiles()).toEqual([]);
});

test("a damaged store is put aside with all its files, and a new one begins", async () => {
  let room = await rooms.open();
  await results(room, (await create(room, named(2))).id);
  await room.close();
  writeFileSync(path.join(rooms.folder, "batches/data/batches.db"), "no database ".repeat(1000));
  room = await rooms.open();
  const kept = readdirSync(path.join(rooms.folder, "batches")).filter((name) => name.startsWith("damaged-"));
  expect(kept).toHaveLength(1);
  expect(readdirSync(path.join(rooms.folder, "batches", kept[0] ?? "", "files"))).toHaveLength(2);
  expect(await results(room, (await create(room, named(2))).id)).toHaveLength(2);
});

test("a store that becomes damaged while it is open is put aside, and the next batch has a new one", async () => {
  let gate = Promise.withResolvers<void>();
  const gated: RunLine = async (line, signal) => {
    await Promise.race([gate.promise, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
    return await echo(line, signal);
  };
  let room = await rooms.open(gated);
  const { id } = await create(room, named(3000));
  await expect
    .poll(async () => (await room.batch(undefined, "test", id)).status, { interval: 5 })
    .toBe("in_progress");
  await room.close();
  room = await rooms.open(gated);
  // The first pages have been read.
  const database = path.join(rooms.folder, "batches/data/batches.db");
  const damaged = readFileSync(database).fill(0xff, 20 * 4096);
  writeFileSync(database, damaged);
  gate.resolve();
  const aside = (): string[] =>
    readdirSync(path.join(rooms.folder, "batches")).filter((name) => name.startsWith("damaged-"));
  await expect.poll(aside, { interval: 5 }).toHaveLength(1);
  gate = Promise.withResolvers();
  gate.resolve();
  expect(await results(room, (await create(room, named(2))).id)).toHaveLength(2);
});

test("a second daemon on the same folder is told that the first has the batches", async () => {
  const room = await rooms.open();
  await results(room, (await create(room, named(1))).id);
  const { execFileSync } = await import("node:child_process");
  const lock = path.join(rooms.folder, "batches/daybreak.lock");
  const source = new URL("../../../src/files/locks.ts", import.meta.url).href;
  const script = `const { tryLock } = await import(${JSON.stringify(source)}); console.log((await tryLock(${JSON.stringify(lock)})) === undefined)`;
  expect(
    execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" }).trim(),
  ).toBe("true");
});

test("files are bounded alone and together", async () => {
  const room = await rooms.open(echo, { batches: { max_file_size: 2048, max_total_size: 3000 } });
  const file = [new Uint8Array(2000)];
  await (await room.receive(file)).keep({ viewer: undefined, purpose: "batch", name: "one" });
  await expect(room.receive([new Uint8Array(3000)])).rejects.toMatchObject({ code: "payload_too_large" });
  await expect(room.receive(file)).rejects.toMatchObject({ code: "insufficient_disk" });
  expect(rooms.storedFiles()).toHaveLength(1);
});

test("a file that is not kept leaves nothing", async () => {
  const room = await rooms.open();
  await (await room.receive([new Uint8Array(10)]))[Symbol.asyncDispose]();
  expect(rooms.storedFiles()).toEqual([]);
});

test("a store that turns out to be damaged when its batches are read is put aside", async () => {
  let room = await rooms.open();
  await results(room, (await create(room, named(2))).id);
  await room.close();
  const file = path.join(rooms.folder, "batches/data/batches.db");
  const database = new DatabaseSync(file);
  const { rootpage } =
    database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'batches'").get() ?? {};
  database.close();
  const page = (Number(rootpage) - 1) * 4096;
  writeFileSync(file, readFileSync(file).fill(0xff, page, page + 4096));
  room = await rooms.open();
  expect(await results(room, (await create(room, named(2))).id)).toHaveLength(2);
});

test("files that arrive at the same time are bounded together", async () => {
  const room = await rooms.open(echo, { batches: { max_file_size: 2048, max_total_size: 3000 } });
  await room.receive([]).then((first) => first[Symbol.asyncDispose]());
  const file = [new Uint8Array(2000)];
  const one = await room.receive(file);
  await expect(room.receive(file)).rejects.toMatchObject({ code: "insufficient_disk" });
  await one[Symbol.asyncDispose]();
  const [two, three] = [await room.receive(file), await room.receive([new Uint8Array(900)])];
  const kept = { viewer: undefined, purpose: "batch", name: "" } as const;
  await three.keep(kept);
  await two.keep(kept);
  expect(rooms.storedFiles()).toHaveLength(2);
});

test("output that the store does not take is not left on the disk", async () => {
  const done = Promise.withResolvers<void>();
  const room = await rooms.open(async (line, signal) => {
    await done.promise;
    return await echo(line, signal);
  });
  const finish = vi
    .spyOn(SqliteBatchStore.prototype, "finish")
    .mockRejectedValue(new ServiceError("insufficient_disk", "The disk is full."));
  await create(room, named(2));
  done.resolve();
  await expect.poll(() => finish.mock.calls.length, { interval: 5 }).toBe(1);
  await expect.poll(() => rooms.storedFiles(), { interval: 5 }).toHaveLength(1);
  finish.mockRestore();
});

test.skipIf(process.platform === "win32")("other accounts can read nothing of batches", async () => {
  const data = path.join(rooms.folder, "batches/data");
  // As a daemon before this one made them.
  mkdirSync(path.join(data, "files"), { recursive: true });
  for (const each of ["batches", "batches/data", "batches/data/files"])
    chmodSync(path.join(rooms.folder, each), 0o755);
  const modes = (): Record<string, string> =>
    Object.fromEntries(
      readdirSync(rooms.folder, { recursive: true, encoding: "utf8" }).map((name) => {
        const { mode } = statSync(path.join(rooms.folder, name));
        return [name.replace(/file-\w+/, "file"), (mode & 0o777).toString(8)];
      }),
    );
  let room = await rooms.open(onlyFirst);
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
  room = await rooms.open(onlyFirst);
  expect(modes()).toEqual(expected);
});

test("lines that are never run count, and use nothing", async () => {
  const room = await rooms.open(onlyFirst);
  const { id } = await create(room, named(4));
  await expect
    .poll(async () => (await room.batch(undefined, "test", id)).counts.succeeded, { interval: 5 })
    .toBe(1);
  await room.cancel(undefined, "test", id);
  await results(room, id);
  const { counts, usage } = await room.batch(undefined, "test", id);
  expect(counts).toMatchObject({ succeeded: 1, cancelled: 3 });
  expect(usage).toEqual({ inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 });
});
