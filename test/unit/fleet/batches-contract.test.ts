import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { RunLine } from "../../../src/batches/batch.ts";
import { LocalBatches } from "../../../src/batches/local-batches.ts";
import type { BatchService } from "../../../src/batches/batch-service.ts";
import { configSchema, type ConfigInput } from "../../../src/config/schema.ts";
import { ServiceEvents } from "../../../src/events/service-events.ts";
import { isSharedId } from "../../../src/fleet/batches/batch-record.ts";
import {
  BatchMachines,
  createBatch,
  named,
  nameModel,
  outputOf,
  TEXT_API,
  TEXT_LINES,
  USAGE,
} from "../../support/batch-machines.ts";
import { NATS, type NatsServer, startNats } from "../../support/nats-server.ts";
import { type Need, unless } from "../../support/need.ts";

interface Opened {
  readonly batches: BatchService;
  close(): Promise<void>;
}
interface Options {
  readonly runLine?: RunLine;
  readonly config?: ConfigInput;
  readonly now?: () => number;
}
type Open = (options?: Options) => Promise<Opened>;

async function openEmbedded({ runLine = nameModel, config = {}, now }: Options = {}): Promise<Opened> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-batches-"));
  const batches = new LocalBatches({
    config: configSchema.parse({ cache_dir: folder, ...config }),
    formats: { [TEXT_API]: TEXT_LINES },
    events: new ServiceEvents(),
    logger: pino({ level: "silent" }),
    onLine: () => undefined,
    ...(now && { now }),
  });
  await batches.start(runLine);
  const close = async (): Promise<void> => {
    await batches.close();
    rmSync(folder, { recursive: true });
  };
  return { batches, close };
}

let nats: NatsServer | undefined;
beforeAll(async () => {
  if (!NATS.isMissing) nats = await startNats({ jetStream: true });
});
afterAll(async () => await nats?.stop());

async function openFleet(options: Options = {}): Promise<Opened> {
  const fleet = new BatchMachines(nats?.url ?? "", `t${randomBytes(4).toString("hex")}`);
  const { batches } = await fleet.join("one", options);
  return { batches, close: async () => await fleet.close() };
}

/** Answers the first line only. */
const hanging: RunLine = async (line, signal) => {
  const { line: text }: { line: string } = JSON.parse(line.body);
  if (text !== "m/0") await new Promise((resolve) => signal.addEventListener("abort", resolve));
  return await nameModel(line, signal);
};

const upload = async (batches: BatchService, content: string, viewer?: string): Promise<string> => {
  await using received = await batches.receive([new TextEncoder().encode(content)]);
  return (await received.store({ viewer, purpose: "batch", name: "in" })).id;
};
const statusOf = async (batches: BatchService, id: string): Promise<string> =>
  (await batches.batch(undefined, TEXT_API, id)).status;
const reached = async (batches: BatchService, id: string, status: string): Promise<void> => {
  await expect.poll(async () => await statusOf(batches, id), { interval: 10 }).toBe(status);
};
const STORES: readonly (readonly [string, Open, boolean, Need])[] = [
  ["one machine", openEmbedded, false, unless(true, "")],
  ["a fleet", openFleet, true, NATS],
];

describe.each(STORES)("files and batches of %s", (_name, openStore, isShared, needed) => {
  beforeEach(({ skip }) => skip(needed.isMissing, needed.reason));

  const opened: Opened[] = [];
  const open = async (options?: Options): Promise<BatchService> => {
    const each = await openStore(options);
    opened.push(each);
    return each.batches;
  };
  afterEach(async () => {
    await Promise.all(opened.splice(0).map(async (each) => await each.close()));
  });

  test("return the content of a file, complete and in ranges, until it is deleted", async () => {
    const batches = await open();
    const content = randomBytes(300_000).toString("base64");
    const id = await upload(batches, content);
    expect(isSharedId(id)).toBe(isShared);
    const stored = await batches.content(undefined, id, ["batch"]);
    const { size } = stored;
    expect(size).toBe(content.length);
    const text = async (start: number, end: number): Promise<string> =>
      await new Response(stored.read(start, end)).text();
    expect(await text(0, size - 1)).toBe(content);
    for (const [start, end] of [
      [0, 0],
      [131_071, 131_072],
      [262_144, 262_144],
      [100_000, 399_999],
    ] as const)
      expect(await text(start, end)).toBe(content.slice(start, end + 1));
    await batches.deleteFile(undefined, id, ["batch"]);
    await expect(batches.file(undefined, id, ["batch"])).rejects.toMatchObject({ code: "file_not_found" });
  });

  test("hide items of other owners and of other purposes", async () => {
    const batches = await open();
    const id = await upload(batches, "x", "ada");
    expect(await batches.file("ada", id, ["batch"])).toMatchObject({ id, bytes: 1, name: "in" });
    expect(await batches.file(undefined, id, ["batch"])).toMatchObject({ owner: "ada" });
    await expect(batches.file("eve", id, ["batch"])).rejects.toMatchObject({ code: "file_not_found" });
    await expect(batches.file("ada", id, ["results"])).rejects.toMatchObject({ code: "file_not_found" });
    const batch = await createBatch(batches, named(1), "ada");
    await expect(batches.batch("eve", TEXT_API, batch.id)).rejects.toMatchObject({ code: "batch_not_found" });
    await expect(batches.batch("ada", "other", batch.id)).rejects.toMatchObject({ code: "batch_not_found" });
    await expect(batches.cancel("eve", TEXT_API, batch.id)).rejects.toMatchObject({
      code: "batch_not_found",
    });
    const query = { viewer: "eve", limit: 10, descending: true };
    expect(await batches.files({ ...query, purposes: ["batch", "requests"] })).toMatchObject({ items: [] });
    expect(await batches.batches({ ...query, api: TEXT_API })).toMatchObject({ items: [] });
  });

  test.each(["file-f*", "file-f>", "file-f.", "batch_f00", "", "nothing", "file-f".padEnd(38, "0")])(
    "report no item with the id %j",
    async (id) => {
      const batches = await open();
      await upload(batches, "x");
      await expect(batches.file(undefined, id, ["batch"])).rejects.toMatchObject({ code: "file_not_found" });
      await expect(batches.batch(undefined, TEXT_API, id)).rejects.toMatchObject({ code: "batch_not_found" });
    },
  );

  test("are listed in pages, in both orders and from both sides", async () => {
    let time = 1_000_000_000_000;
    const batches = await open({ now: () => (time += 1000) });
    const ids: string[] = [];
    for (let at = 0; at < 5; at += 1) ids.push(await upload(batches, "x"));
    const page = async (query: object): Promise<readonly [string, boolean]> => {
      const all = { viewer: undefined, limit: 2, descending: false, purposes: ["batch"] as const, ...query };
      const { items, hasMore } = await batches.files(all);
      return [items.map(({ id }) => ids.indexOf(id)).join(" "), hasMore];
    };
    expect(await page({})).toEqual(["0 1", true]);
    expect(await page({ after: ids[1] })).toEqual(["2 3", true]);
    expect(await page({ after: ids[3] })).toEqual(["4", false]);
    expect(await page({ descending: true })).toEqual(["4 3", true]);
    expect(await page({ descending: true, after: ids[3] })).toEqual(["2 1", true]);
    expect(await page({ descending: true, before: ids[1] })).toEqual(["3 2", true]);
    expect(await page({ before: ids[1] })).toEqual(["0", false]);
    expect(await page({ limit: 5 })).toEqual(["0 1 2 3 4", false]);
    await expect(page({ after: "file-f".padEnd(38, "0") })).rejects.toMatchObject({
      code: "invalid_parameter",
    });
  });

  test("include answers in input order, counts and usage of a batch", async () => {
    const batches = await open({
      runLine: async (line, signal) =>
        line.body.includes("m/3")
          ? { status: 400, body: '{"no":3}', retryable: false, retryAfterSecs: 1 }
          : await nameModel(line, signal),
    });
    const lines = named(7).toReversed();
    const { id } = await createBatch(batches, lines);
    await reached(batches, id, "completed");
    expect(await outputOf(batches, id)).toEqual(
      lines.map((line) => (line === "m/3" ? [line, "errored", { no: 3 }] : [line, "succeeded", "m"])),
    );
    expect(await batches.batch(undefined, TEXT_API, id)).toMatchObject({
      total: 7,
      counts: { succeeded: 6, errored: 1, cancelled: 0, expired: 0 },
      usage: { inputTokens: 6 * USAGE.inputTokens, cachedTokens: 6, outputTokens: 12, reasoningTokens: 0 },
    });
    await batches.deleteBatch(undefined, TEXT_API, id);
    await expect(batches.batch(undefined, TEXT_API, id)).rejects.toMatchObject({ code: "batch_not_found" });
    const query = { viewer: undefined, limit: 10, descending: true };
    expect((await batches.files({ ...query, purposes: ["requests", "results"] })).items).toEqual([]);
  });

  test("return answers of megabytes completely", async () => {
    const long = randomBytes(1_500_000).toString("base64");
    const body = JSON.stringify(long);
    const batches = await open({
      runLine: async () => ({ status: 200, body, retryable: false, retryAfterSecs: 1 }),
    });
    const { id } = await createBatch(batches, named(2));
    await reached(batches, id, "completed");
    expect(await outputOf(batches, id)).toEqual(named(2).map((line) => [line, "succeeded", long]));
  });

  test("fail a batch with invalid lines", async () => {
    const batches = await open();
    const { id } = await createBatch(batches, ["m/0", "m/0", 7]);
    await reached(batches, id, "failed");
    expect((await batches.batch(undefined, TEXT_API, id)).problems).toMatchObject([
      { line: 2, code: "duplicate_custom_id" },
      { line: 3, code: "invalid_request" },
    ]);
  });

  test("keep the answers of a cancelled batch, which cannot be cancelled again", async () => {
    const batches = await open({ runLine: hanging });
    const { id, inputFile } = await createBatch(batches, named(3));
    await expect
      .poll(async () => (await batches.batch(undefined, TEXT_API, id)).counts.succeeded, { interval: 10 })
      .toBe(1);
    await expect(batches.deleteFile(undefined, inputFile, ["requests"])).rejects.toMatchObject({
      code: "batch_conflict",
    });
    await expect(batches.deleteBatch(undefined, TEXT_API, id)).rejects.toMatchObject({
      code: "batch_conflict",
    });
    expect((await batches.cancel(undefined, TEXT_API, id)).status).toBe("cancelling");
    await reached(batches, id, "cancelled");
    expect(await outputOf(batches, id)).toEqual([
      ["m/0", "succeeded", "m"],
      ["m/1", "cancelled", null],
      ["m/2", "cancelled", null],
    ]);
    await expect(batches.cancel(undefined, TEXT_API, id)).rejects.toMatchObject({ code: "batch_conflict" });
  });

  test("reject uploads over the size limit, and all uploads if the total limit is zero", async () => {
    const bounded = await open({ config: { batches: { max_file_size: 2048 } } });
    await upload(bounded, "x".repeat(2000));
    await expect(upload(bounded, "x".repeat(2500))).rejects.toMatchObject({ code: "payload_too_large" });
    const closed = await open({ config: { batches: { max_total_size: 0 } } });
    await expect(upload(closed, "x")).rejects.toMatchObject({ code: "insufficient_disk" });
  });
});
