import { chmodSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";
import type { RunLine } from "../../../src/batches/batch.ts";
import { SqliteBatchStore } from "../../../src/batches/sqlite/sqlite-batch-store.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { TestBatches, create, echo, named, onlyFirst, results } from "./batch-services.ts";

const testBatches = new TestBatches();

test("files and batches are deleted after their retention", async () => {
  let now = 1_000_000;
  const config = { batches: { retention: 60 } };
  let batches = await testBatches.open(echo, config, () => now);
  const { id, inputFile } = await create(batches, named(2));
  await results(batches, id);
  await batches.close();
  now += 61_000;
  batches = await testBatches.open(echo, config, () => now);
  await expect(batches.file(undefined, inputFile, ["requests"])).rejects.toMatchObject({
    code: "file_not_found",
  });
  await expect(batches.batch(undefined, "test", id)).rejects.toMatchObject({ code: "batch_not_found" });
  expect(testBatches.storedFiles()).toEqual([]);
});

test("a damaged store is moved aside with its files, and a new one begins", async () => {
  let batches = await testBatches.open();
  await results(batches, (await create(batches, named(2))).id);
  await batches.close();
  writeFileSync(path.join(testBatches.folder, "batches/data/batches.db"), "no database ".repeat(1000));
  batches = await testBatches.open();
  const kept = readdirSync(path.join(testBatches.folder, "batches")).filter((name) =>
    name.startsWith("damaged-"),
  );
  expect(kept).toHaveLength(1);
  expect(readdirSync(path.join(testBatches.folder, "batches", kept[0] ?? "", "files"))).toHaveLength(2);
  expect(await results(batches, (await create(batches, named(2))).id)).toHaveLength(2);
});

test("a store that becomes damaged while it is open is moved aside, and a new one begins", async () => {
  let gate = Promise.withResolvers<void>();
  const gated: RunLine = async (line, signal) => {
    await Promise.race([gate.promise, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
    return await echo(line, signal);
  };
  let batches = await testBatches.open(gated);
  const { id } = await create(batches, named(3000));
  await expect
    .poll(async () => (await batches.batch(undefined, "test", id)).status, { interval: 5 })
    .toBe("in_progress");
  await batches.close();
  batches = await testBatches.open(gated);
  // The first pages are cached already.
  const database = path.join(testBatches.folder, "batches/data/batches.db");
  const damaged = readFileSync(database).fill(0xff, 20 * 4096);
  writeFileSync(database, damaged);
  gate.resolve();
  const aside = (): string[] =>
    readdirSync(path.join(testBatches.folder, "batches")).filter((name) => name.startsWith("damaged-"));
  await expect.poll(aside, { interval: 5 }).toHaveLength(1);
  gate = Promise.withResolvers();
  gate.resolve();
  expect(await results(batches, (await create(batches, named(2))).id)).toHaveLength(2);
});

test("a second daemon cannot lock the store of the first", async () => {
  const batches = await testBatches.open();
  await results(batches, (await create(batches, named(1))).id);
  const { execFileSync } = await import("node:child_process");
  const lock = path.join(testBatches.folder, "batches/daybreak.lock");
  const source = new URL("../../../src/files/locks.ts", import.meta.url).href;
  const script = `const { tryLock } = await import(${JSON.stringify(source)}); console.log((await tryLock(${JSON.stringify(lock)})) === undefined)`;
  expect(
    execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" }).trim(),
  ).toBe("true");
});

test("uploads are limited by file size and total size", async () => {
  const batches = await testBatches.open(echo, { batches: { max_file_size: 2048, max_total_size: 3000 } });
  const file = [new Uint8Array(2000)];
  await (await batches.receive(file)).store({ viewer: undefined, purpose: "batch", name: "one" });
  await expect(batches.receive([new Uint8Array(3000)])).rejects.toMatchObject({ code: "payload_too_large" });
  await expect(batches.receive(file)).rejects.toMatchObject({ code: "insufficient_disk" });
  expect(testBatches.storedFiles()).toHaveLength(1);
});

test("an upload that is not stored is removed", async () => {
  const batches = await testBatches.open();
  await (await batches.receive([new Uint8Array(10)]))[Symbol.asyncDispose]();
  expect(testBatches.storedFiles()).toEqual([]);
});

test("a store that is found to be damaged when its batches are read is moved aside", async () => {
  let batches = await testBatches.open();
  await results(batches, (await create(batches, named(2))).id);
  await batches.close();
  const file = path.join(testBatches.folder, "batches/data/batches.db");
  const database = new DatabaseSync(file);
  const { rootpage } =
    database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'batches'").get() ?? {};
  database.close();
  const page = (Number(rootpage) - 1) * 4096;
  writeFileSync(file, readFileSync(file).fill(0xff, page, page + 4096));
  batches = await testBatches.open();
  expect(await results(batches, (await create(batches, named(2))).id)).toHaveLength(2);
});

test("concurrent uploads are limited together", async () => {
  const batches = await testBatches.open(echo, { batches: { max_file_size: 2048, max_total_size: 3000 } });
  await batches.receive([]).then((first) => first[Symbol.asyncDispose]());
  const file = [new Uint8Array(2000)];
  const one = await batches.receive(file);
  await expect(batches.receive(file)).rejects.toMatchObject({ code: "insufficient_disk" });
  await one[Symbol.asyncDispose]();
  const [two, three] = [await batches.receive(file), await batches.receive([new Uint8Array(900)])];
  const kept = { viewer: undefined, purpose: "batch", name: "" } as const;
  await three.store(kept);
  await two.store(kept);
  expect(testBatches.storedFiles()).toHaveLength(2);
});

test("output that the store does not accept is removed from the disk", async () => {
  const done = Promise.withResolvers<void>();
  const batches = await testBatches.open(async (line, signal) => {
    await done.promise;
    return await echo(line, signal);
  });
  const finish = vi
    .spyOn(SqliteBatchStore.prototype, "finish")
    .mockRejectedValue(new ServiceError("insufficient_disk", "The disk is full."));
  await create(batches, named(2));
  done.resolve();
  await expect.poll(() => finish.mock.calls.length, { interval: 5 }).toBe(1);
  await expect.poll(() => testBatches.storedFiles(), { interval: 5 }).toHaveLength(1);
  finish.mockRestore();
});

test.skipIf(process.platform === "win32")("files of batches are readable only by their owner", async () => {
  const data = path.join(testBatches.folder, "batches/data");
  // Folders as an earlier daemon created them.
  mkdirSync(path.join(data, "files"), { recursive: true });
  for (const each of ["batches", "batches/data", "batches/data/files"])
    chmodSync(path.join(testBatches.folder, each), 0o755);
  const modes = (): Record<string, string> =>
    Object.fromEntries(
      readdirSync(testBatches.folder, { recursive: true, encoding: "utf8" }).map((name) => {
        const { mode } = statSync(path.join(testBatches.folder, name));
        return [name.replace(/file-\w+/, "file"), (mode & 0o777).toString(8)];
      }),
    );
  let batches = await testBatches.open(onlyFirst);
  await create(batches, named(2));
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
  await batches.close();
  chmodSync(path.join(data, "batches.db"), 0o644);
  batches = await testBatches.open(onlyFirst);
  expect(modes()).toEqual(expected);
});

test("cancelled lines are counted without usage", async () => {
  const batches = await testBatches.open(onlyFirst);
  const { id } = await create(batches, named(4));
  await expect
    .poll(async () => (await batches.batch(undefined, "test", id)).counts.succeeded, { interval: 5 })
    .toBe(1);
  await batches.cancel(undefined, "test", id);
  await results(batches, id);
  const { counts, usage } = await batches.batch(undefined, "test", id);
  expect(counts).toMatchObject({ succeeded: 1, cancelled: 3 });
  expect(usage).toEqual({ inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 });
});
