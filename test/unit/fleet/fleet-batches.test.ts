import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { RunLine } from "../../../src/batches/batch.ts";
import { AnswerStore } from "../../../src/fleet/batches/answer-store.ts";
import { isSharedId, newSharedId } from "../../../src/fleet/batches/batch-record.ts";
import {
  BatchMachines,
  createBatch,
  named,
  nameModel,
  outputOf,
  TEXT_API,
  USAGE,
} from "../../support/batch-machines.ts";
import { NATS, type NatsServer, startNats } from "../../support/nats-server.ts";

const status = async ({ batches }: Awaited<ReturnType<BatchMachines["join"]>>, id: string): Promise<string> =>
  (await batches.batch(undefined, TEXT_API, id)).status;

/** Answers the first line only. */
const hanging: RunLine = async (line, signal) => {
  if (!line.body.includes("m/0")) await new Promise((resolve) => signal.addEventListener("abort", resolve));
  return await nameModel(line, signal);
};

const slow: RunLine = async (line, signal) => {
  await sleep(20);
  return await nameModel(line, signal);
};

describe.skipIf(NATS.isMissing)(`batches of a fleet${NATS.note}`, () => {
  let nats: NatsServer;
  let fleet: BatchMachines;
  beforeAll(async () => {
    nats = await startNats({ jetStream: true });
  });
  afterAll(async () => await nats.stop());
  beforeEach(() => {
    fleet = new BatchMachines(nats.url, `t${randomBytes(4).toString("hex")}`);
  });
  afterEach(async () => await fleet.close());

  test("are created on one machine, answered by all with the model, and read on a third", async () => {
    const answeredBy = new Map<string, string>();
    const begun = new Set<string>();
    const isShared = Promise.withResolvers<void>();
    const by =
      (name: string): RunLine =>
      async (line, signal) => {
        const { line: text }: { line: string } = JSON.parse(line.body);
        answeredBy.set(text, name);
        if (begun.add(name).size === 2) isShared.resolve();
        signal.addEventListener("abort", () => isShared.resolve());
        await isShared.promise;
        return await nameModel(line, signal);
      };
    const [one, two, three] = await Promise.all([
      fleet.join("one", { runLine: by("one") }),
      // The same model under another alias.
      fleet.join("two", { runLine: by("two"), models: { other: "m" } }),
      fleet.join("three", { runLine: by("three"), models: {} }),
    ]);
    const lines = named(200);
    const { id } = await createBatch(three.batches, lines);
    await expect.poll(async () => await status(two, id), { interval: 50 }).toBe("completed");
    const output = await outputOf(two.batches, id);
    expect(output).toEqual(
      lines.map((line) => [line, "succeeded", answeredBy.get(line) === "two" ? "other" : "m"]),
    );
    expect(new Set(answeredBy.values())).toEqual(new Set(["one", "two"]));
    expect(await one.batches.batch(undefined, TEXT_API, id)).toMatchObject({
      total: 200,
      counts: { succeeded: 200, errored: 0, cancelled: 0, expired: 0 },
      usage: { inputTokens: 200 * USAGE.inputTokens, outputTokens: 200 * USAGE.outputTokens },
    });
    expect([...one.ended, ...two.ended, ...three.ended]).toEqual(["completed"]);
  });

  test("have lines of unknown models answered by the leader", async () => {
    const [one] = await Promise.all([
      fleet.join("one", {
        runLine: async (line, signal) =>
          line.body.includes("other")
            ? { status: 404, body: '"none"', retryable: false, retryAfterSecs: 1 }
            : await nameModel(line, signal),
      }),
      fleet.join("two", { runLine: hanging }),
    ]);
    const { id } = await createBatch(one.batches, ["other/1", "other/2"]);
    await expect.poll(async () => await status(one, id), { interval: 20 }).toBe("completed");
    expect(await outputOf(one.batches, id)).toEqual([
      ["other/1", "errored", "none"],
      ["other/2", "errored", "none"],
    ]);
  });

  test("wait for a machine with the resolved model, and keep their answers", async () => {
    const one = await fleet.join("one", { models: {} });
    const two = await fleet.join("two", { runLine: hanging });
    const { id } = await createBatch(one.batches, named(3));
    const answered = async (): Promise<number> =>
      (await one.batches.batch(undefined, TEXT_API, id)).counts.succeeded;
    await expect.poll(answered, { interval: 20 }).toBe(1);
    const waiting = async (): Promise<string | undefined> =>
      (await one.batches.batch(undefined, TEXT_API, id)).waiting;
    expect(await waiting()).toBeUndefined();
    await two.close();
    expect(await waiting()).toBe("waits for a machine that has m");
    await fleet.join("three", { models: { renamed: "m" } });
    await expect.poll(async () => await status(one, id), { interval: 20 }).toBe("completed");
    expect(await waiting()).toBeUndefined();
    expect(await outputOf(one.batches, id)).toEqual([
      ["m/0", "succeeded", "m"],
      ["m/1", "succeeded", "renamed"],
      ["m/2", "succeeded", "renamed"],
    ]);
  });

  test("do not use another model of the same name while the machine of theirs is gone", async () => {
    const one = await fleet.join("one", { models: {} });
    const two = await fleet.join("two", { runLine: hanging });
    const { id } = await createBatch(one.batches, named(3));
    const batch = async () => await one.batches.batch(undefined, TEXT_API, id);
    await expect.poll(async () => (await batch()).counts.succeeded, { interval: 20 }).toBe(1);
    let asked = 0;
    const namesake: RunLine = async (line, signal) => {
      asked += 1;
      return await nameModel(line, signal);
    };
    await fleet.join("three", { models: { m: "another" }, runLine: namesake });
    await two.close();
    await expect
      .poll(async () => (await batch()).waiting, { interval: 20 })
      .toBe("waits for a machine that has m");
    // Longer than the interval of checks for queued lines.
    await sleep(1200);
    expect(asked).toBe(0);
    await fleet.join("four", { models: { renamed: "m" } });
    await expect.poll(async () => await status(one, id), { interval: 20 }).toBe("completed");
    expect(await outputOf(one.batches, id)).toEqual([
      ["m/0", "succeeded", "m"],
      ["m/1", "succeeded", "renamed"],
      ["m/2", "succeeded", "renamed"],
    ]);
  });

  test("wait for a machine that left just before they were created", async () => {
    const one = await fleet.join("one", { models: {} });
    await (await fleet.join("two")).close();
    const { id } = await createBatch(one.batches, ["m/0", "typo/0", "m/1"]);
    const waiting = async (): Promise<string | undefined> =>
      (await one.batches.batch(undefined, TEXT_API, id)).waiting;
    await expect.poll(waiting, { interval: 20 }).toBe("waits for a machine that has m");
    await fleet.join("three", { models: { renamed: "m" } });
    await expect.poll(async () => await status(one, id), { interval: 20 }).toBe("completed");
    expect(await outputOf(one.batches, id)).toEqual([
      ["m/0", "succeeded", "renamed"],
      // Answered by the leader.
      ["typo/0", "succeeded", "typo"],
      ["m/1", "succeeded", "renamed"],
    ]);
  });

  test("can be cancelled on any machine", async () => {
    const [one, two] = await Promise.all([
      fleet.join("one", { runLine: hanging }),
      fleet.join("two", { runLine: hanging }),
    ]);
    const { id } = await createBatch(one.batches, named(60));
    await two.batches.cancel(undefined, TEXT_API, id);
    await expect.poll(async () => await status(two, id), { interval: 20 }).toBe("cancelled");
    const { counts, total } = await one.batches.batch(undefined, TEXT_API, id);
    expect(counts.succeeded + counts.cancelled).toBe(total);
    expect(await outputOf(two.batches, id)).toHaveLength(60);
  });

  test("expire after a day with the answers so far", async () => {
    let late = 0;
    const one = await fleet.join("one", { runLine: hanging, now: () => Date.now() + late });
    const { id } = await createBatch(one.batches, named(3));
    const answered = async (): Promise<number> =>
      (await one.batches.batch(undefined, TEXT_API, id)).counts.succeeded;
    await expect.poll(answered, { interval: 20 }).toBe(1);
    late = 25 * 3_600_000;
    await expect.poll(async () => await status(one, id), { interval: 20 }).toBe("expired");
    expect(await outputOf(one.batches, id)).toEqual([
      ["m/0", "succeeded", "m"],
      ["m/1", "expired", null],
      ["m/2", "expired", null],
    ]);
  });

  test("are taken over at once from a machine that shuts down", async () => {
    const [one, two] = [
      await fleet.join("one", { runLine: hanging }),
      await fleet.join("two", { models: {} }),
    ];
    const { id } = await createBatch(one.batches, named(10));
    await expect
      .poll(async () => (await two.batches.batch(undefined, TEXT_API, id)).counts.succeeded, { interval: 20 })
      .toBe(1);
    const three = await fleet.join("three");
    const closing = performance.now();
    await one.close();
    await expect.poll(async () => await status(three, id), { interval: 20 }).toBe("completed");
    // Lines of a killed machine are redelivered after 15 seconds only.
    expect(performance.now() - closing).toBeLessThan(12_000);
    expect(await outputOf(two.batches, id)).toHaveLength(10);
  });

  test("are listed together with older ones of this machine", async () => {
    let time = 1_000_000_000_000;
    const { batches, local } = await fleet.join("one", { now: () => (time += 1000) });
    const ids: string[] = [];
    for (const store of [local, local, local, batches, batches, batches]) {
      await using received = await store.receive([new Uint8Array(1)]);
      ids.push((await received.store({ viewer: undefined, purpose: "batch", name: "" })).id);
    }
    expect(ids.map(isSharedId)).toEqual([false, false, false, true, true, true]);
    for (const id of ids) expect((await batches.file(undefined, id, ["batch"])).id).toBe(id);
    const page = async (query: object): Promise<readonly [string, boolean]> => {
      const all = { viewer: undefined, limit: 2, descending: false, purposes: ["batch"] as const, ...query };
      const { items, hasMore } = await batches.files(all);
      return [items.map(({ id }) => ids.indexOf(id)).join(" "), hasMore];
    };
    expect(await page({})).toEqual(["0 1", true]);
    expect(await page({ limit: 3 })).toEqual(["0 1 2", true]);
    expect(await page({ after: ids[1] })).toEqual(["2 3", true]);
    expect(await page({ after: ids[3] })).toEqual(["4 5", false]);
    expect(await page({ limit: 6 })).toEqual(["0 1 2 3 4 5", false]);
    expect(await page({ limit: 10 })).toEqual(["0 1 2 3 4 5", false]);
    expect(await page({ descending: true, limit: 4 })).toEqual(["5 4 3 2", true]);
    expect(await page({ descending: true, after: ids[2] })).toEqual(["1 0", false]);
    expect(await page({ descending: true, before: ids[1] })).toEqual(["3 2", true]);
    expect(await page({ before: ids[4] })).toEqual(["2 3", true]);
    expect(await page({ before: ids[2] })).toEqual(["0 1", false]);
    const { id } = await createBatch(local, named(2));
    expect((await batches.batch(undefined, TEXT_API, id)).id).toBe(id);
    await expect
      .poll(async () => (await batches.batch(undefined, TEXT_API, id)).status, { interval: 20 })
      .toBe("completed");
  });

  test("refuse lines for paths other than those of the API", async () => {
    const asked: string[] = [];
    const one = await fleet.join("one", {
      runLine: async (line, signal) => {
        asked.push(line.path);
        return await nameModel(line, signal);
      },
    });
    const { id } = await createBatch(one.batches, ["m/0", "m/#"]);
    await expect.poll(async () => await status(one, id), { interval: 20 }).toBe("completed");
    expect(await outputOf(one.batches, id)).toEqual([
      ["m/0", "succeeded", "m"],
      ["m/#", "errored", { code: "invalid_parameter" }],
    ]);
    expect(asked).toEqual(["/"]);
  });

  test("count only the first answer to a line", async () => {
    const one = await fleet.join("one");
    const answers = new AnswerStore(one.jetStream);
    await one.jetStream.primaryStore();
    const [batch] = [newSharedId("batch")];
    const save = async (requestId: string): Promise<boolean> =>
      await answers.add(batch, 7, "succeeded", { status: 200, requestId, body: '"x"' }, USAGE);
    expect([await save("one"), await save("two"), await save("one")]).toEqual([true, false, true]);
    expect((await answers.tally(batch)).counts.succeeded).toBe(1);
    expect(await answers.get(batch, 7)).toMatchObject({ requestId: "one" });
  });

  test("are swept when expired, with uploads that were never stored", async () => {
    let late = 0;
    const one = await fleet.join("one", { now: () => Date.now() + late });
    const { id, inputFile } = await createBatch(one.batches, named(2));
    await expect.poll(async () => await status(one, id), { interval: 20 }).toBe("completed");
    const { outputFile = "" } = await one.batches.batch(undefined, TEXT_API, id);
    await using left = await one.batches.receive([new Uint8Array(10)]);
    expect(left.bytes).toBe(10);
    const files = async (): Promise<number> =>
      (await one.jetStream.subjects("batchdata", one.jetStream.subject("batchdata", "file", "*", "0")))
        .length;
    await one.sweep();
    expect(await files()).toBe(3);
    late = 31 * 24 * 3_600_000;
    await one.sweep();
    expect(await files()).toBe(0);
    for (const file of [inputFile, outputFile])
      await expect(one.batches.file(undefined, file, ["requests", "results"])).rejects.toMatchObject({
        code: "file_not_found",
      });
    await expect(one.batches.batch(undefined, TEXT_API, id)).rejects.toMatchObject({
      code: "batch_not_found",
    });
  });
});

describe.skipIf(NATS.isMissing)(`batches while the NATS server is unreachable${NATS.note}`, () => {
  test("pause, report fleet_unreachable, and continue afterwards", async () => {
    const nats = await startNats({ jetStream: true });
    onTestFinished(async () => await nats.stop());
    const fleet = new BatchMachines(nats.url, "t");
    const [one, two] = await Promise.all([
      fleet.join("one", { runLine: slow }),
      fleet.join("two", { runLine: slow }),
    ]);
    const lines = named(120);
    const { id, inputFile } = await createBatch(one.batches, lines);
    const answered = async (): Promise<number> =>
      (await two.batches.batch(undefined, TEXT_API, id)).counts.succeeded;
    await expect.poll(answered, { interval: 10 }).toBeGreaterThan(20);
    await nats.kill("SIGKILL");
    const unreachable = { code: "fleet_unreachable" };
    await expect.poll(() => one.jetStream.isConnected, { interval: 10 }).toBe(false);
    await expect(one.batches.batch(undefined, TEXT_API, id)).rejects.toMatchObject(unreachable);
    await expect(one.batches.file(undefined, inputFile, ["requests"])).rejects.toMatchObject(unreachable);
    await expect(createBatch(one.batches, lines)).rejects.toMatchObject(unreachable);
    const query = { viewer: undefined, limit: 1, descending: true, api: TEXT_API };
    await expect(one.batches.batches(query)).rejects.toMatchObject(unreachable);
    await nats.restart();
    await expect
      .poll(async () => await one.batches.batch(undefined, TEXT_API, id).catch(() => undefined), {
        interval: 50,
        timeout: 60_000,
      })
      .toMatchObject({ status: "completed", counts: { succeeded: 120 } });
    expect(await outputOf(one.batches, id)).toEqual(lines.map((line) => [line, "succeeded", "m"]));
    await fleet.close();
  });

  test("are local without JetStream, and refuse uploads while JetStream is full", async () => {
    const plain = await startNats();
    onTestFinished(async () => await plain.stop());
    const alone = new BatchMachines(plain.url, "t");
    const { batches } = await alone.join("one");
    const local = await createBatch(batches, named(1));
    expect(isSharedId(local.id)).toBe(false);
    await expect
      .poll(async () => (await batches.batch(undefined, TEXT_API, local.id)).status, { interval: 10 })
      .toBe("completed");
    await alone.close({ hasStreams: false });
    const small = await startNats({ jetStream: { maxFileBytes: 48 * 1024 * 1024 } });
    onTestFinished(async () => await small.stop());
    const fleet = new BatchMachines(small.url, "t");
    const one = await fleet.join("one");
    const upload = async (bytes: number): Promise<string> => {
      await using received = await one.batches.receive([new Uint8Array(bytes)]);
      return (await received.store({ viewer: undefined, purpose: "batch", name: "" })).id;
    };
    const first = await upload(10_000_000);
    await expect(upload(10_000_000)).rejects.toMatchObject({ code: "insufficient_disk" });
    await one.batches.deleteFile(undefined, first, ["batch"]);
    expect(isSharedId(await upload(10_000_000))).toBe(true);
    await fleet.close();
  });
});
