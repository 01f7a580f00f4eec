import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, headers } from "@nats-io/transport-node";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from "vitest";
import type { Batch, RunLine } from "../../src/batches/batch.ts";
import {
  type BatchMachine,
  BatchMachines,
  createBatch,
  named,
  nameModel,
  outputOf,
  TEXT_API,
} from "../support/batch-machines.ts";
import { NATS, type NatsServer, startNats } from "../support/nats-server.ts";

const HOUR_MS = 3_600_000;
const FAST = { interval: 20 };

const batchOf = async ({ batches }: BatchMachine, id: string): Promise<Batch> =>
  await batches.batch(undefined, TEXT_API, id);
const reaches = async (machine: BatchMachine, id: string, status: string): Promise<void> => {
  await expect.poll(async () => (await batchOf(machine, id)).status, FAST).toBe(status);
};
const answers = async (machine: BatchMachine, id: string, count: number): Promise<void> => {
  await expect.poll(async () => (await batchOf(machine, id)).counts.succeeded, FAST).toBe(count);
};
const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

describe.skipIf(NATS.isMissing)(`what harms batches of a fleet${NATS.note}`, () => {
  let nats: NatsServer;
  let fleet: BatchMachines;
  /** True once lines after the first are answered. */
  let isOpen: PromiseWithResolvers<void>;
  let aborted: string[];
  const waiting: RunLine = async (line, signal) => {
    const { line: text }: { line: string } = JSON.parse(line.body);
    const stopped = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => {
        aborted.push(text);
        resolve();
      });
    });
    if (text !== "m/0") await Promise.race([isOpen.promise, stopped]);
    return await nameModel(line, signal);
  };
  beforeAll(async () => {
    nats = await startNats({ jetStream: true });
  });
  afterAll(async () => await nats.stop());
  beforeEach(() => {
    fleet = new BatchMachines(nats.url, `t${randomBytes(4).toString("hex")}`);
    isOpen = Promise.withResolvers();
    aborted = [];
  });
  afterEach(async () => {
    isOpen.resolve();
    await fleet.close();
  });

  test.each(["gone", "no answer", "that of a line that there is not"])(
    "an answer that is %s is asked for again",
    async (harm) => {
      let late = 0;
      const one = await fleet.join("one", { runLine: waiting, now: () => Date.now() + late });
      const { id } = await createBatch(one.batches, named(3));
      await answers(one, id, 1);
      const first = one.jetStream.subject("batchdata", "answer", id, "1");
      if (harm === "gone") await one.jetStream.purge("batchdata", first);
      if (harm === "no answer") await one.jetStream.put(first, new Uint8Array(9));
      const header = headers();
      header.set("Daybreak-Answer", "succeeded 1 1 1 1");
      const strange = ["7", "8"].map((line) => one.jetStream.subject("batchdata", "answer", id, line));
      if (harm.startsWith("that"))
        for (const subject of strange) await one.jetStream.put(subject, new Uint8Array(9), 0, header);
      isOpen.resolve();
      await expect
        .poll(async () => {
          late += 5000;
          return (await batchOf(one, id)).status;
        }, FAST)
        .toBe("completed");
      expect(await outputOf(one.batches, id)).toEqual(named(3).map((line) => [line, "succeeded", "m"]));
      expect((await batchOf(one, id)).counts).toMatchObject({ succeeded: 3, cancelled: 0 });
    },
  );

  test("content of which the beginning or the end is lost is not found", async () => {
    const one = await fleet.join("one");
    const two = await fleet.join("two");
    for (const piece of ["0", "2"]) {
      await using received = await one.batches.receive([new Uint8Array(300_000)]);
      const { id } = await received.store({ viewer: undefined, purpose: "batch", name: "" });
      await one.jetStream.purge("batchdata", one.jetStream.subject("batchdata", "file", id, piece));
      await expect(two.batches.content(undefined, id, ["batch"])).rejects.toMatchObject({
        code: "file_not_found",
      });
    }
  });

  test("one whose input is lost fails", async () => {
    const one = await fleet.join("one", { runLine: waiting });
    const { id, inputFile } = await createBatch(one.batches, named(3));
    await answers(one, id, 1);
    await one.jetStream.purge("batchdata", one.jetStream.subject("batchdata", "file", inputFile, "*"));
    const two = await fleet.join("two", { models: {} });
    await one.close();
    await two.batches.cancel(undefined, TEXT_API, id);
    await reaches(two, id, "failed");
    expect((await batchOf(two, id)).problems).toMatchObject([{ code: "file_not_found" }]);
  });

  test("limits of the machine that finishes one do not shorten it", async () => {
    const one = await fleet.join("one", { runLine: waiting });
    const lines = [...named(30), `m/${"x".repeat(3000)}`];
    const { id } = await createBatch(one.batches, lines);
    await answers(one, id, 1);
    const config = { batches: { max_lines: 10 }, http: { body_limit: 2048 } };
    const two = await fleet.join("two", { config });
    await one.close();
    await reaches(two, id, "completed");
    expect(await outputOf(two.batches, id)).toEqual(lines.map((line) => [line, "succeeded", "m"]));
  });

  test("one that begins while a machine sweeps keeps its answers", async () => {
    const one = await fleet.join("one", { runLine: waiting });
    const subjects = one.jetStream.subjects.bind(one.jetStream);
    let id = "";
    one.jetStream.subjects = async (kind, filter) => {
      const found = await subjects(kind, filter);
      const isSweeping = new Error().stack?.includes("SharedBackend.sweep") ?? false;
      if (id !== "" || !filter.includes(".lease.") || !isSweeping) return found;
      id = "begun";
      ({ id } = await createBatch(one.batches, named(3)));
      await answers(one, id, 1);
      return found;
    };
    await one.sweep();
    expect(id).toMatch(/^batch_f/);
    expect(await subjects("batchdata", one.jetStream.subject("batchdata", "answer", id, "*"))).toHaveLength(
      1,
    );
  });

  test("one whose lease is lost is led on", async () => {
    const one = await fleet.join("one", { runLine: waiting });
    const { id } = await createBatch(one.batches, named(3));
    await answers(one, id, 1);
    await one.jetStream.purge("batches", one.jetStream.subject("batches", "lease", id));
    await one.close();
    const two = await fleet.join("two");
    await two.sweep();
    await reaches(two, id, "completed");
    expect(await outputOf(two.batches, id)).toHaveLength(3);
  });

  test.each(["reads its input", "queues its lines"])(
    "one whose leader has lost its lease while it %s is run once",
    async (step) => {
      const ran: string[] = [];
      // It cannot run any itself.
      const one = await fleet.join("one", { models: {} });
      const two = await fleet.join("two", {
        runLine: async (line, signal) => {
          const { line: text }: { line: string } = JSON.parse(line.body);
          ran.push(text);
          return await waiting(line, signal);
        },
      });
      const [isThere, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const stop = async (): Promise<void> => {
        isThere.resolve();
        await goesOn.promise;
      };
      const get = one.jetStream.get.bind(one.jetStream);
      one.jetStream.get = async (kind, subject) => {
        if (step.startsWith("reads") && subject.includes(".file.") && kind === "batchdata") await stop();
        return await get(kind, subject);
      };
      let puts = 0;
      const put = one.jetStream.put.bind(one.jetStream);
      one.jetStream.put = async (subject, ...rest) => {
        if (step.startsWith("queues") && subject.includes(".batchwork.") && (puts += 1) === 5) await stop();
        return await put(subject, ...rest);
      };
      const lines = named(60);
      const { id } = await createBatch(one.batches, lines);
      await isThere.promise;
      await put(one.jetStream.subject("batches", "lease", id), encode({ holder: "" }));
      await answers(two, id, 1);
      goesOn.resolve();
      // All that it still does, or would do, to the lines.
      await sleep(300);
      isOpen.resolve();
      await reaches(two, id, "completed");
      expect(ran.toSorted()).toEqual(lines.toSorted());
      expect((await batchOf(two, id)).counts).toMatchObject({ succeeded: 60 });
    },
  );

  test("a line that cannot be read does not let others go on unattended", async () => {
    const one = await fleet.join("one", { runLine: waiting });
    const { id } = await createBatch(one.batches, named(3));
    await answers(one, id, 1);
    const lines = [{ number: 9, start: 10_000_000, length: 5 }];
    const [queue = ""] = await one.jetStream.subjects(
      "batchwork",
      one.jetStream.subject("batchwork", id, ">"),
    );
    await one.jetStream.put(queue, encode({ lines }));
    await expect
      .poll(
        async () =>
          await one.jetStream.subjects("batchdata", one.jetStream.subject("batchdata", "answer", id, "9")),
        FAST,
      )
      .toHaveLength(1);
    await one.batches.cancel(undefined, TEXT_API, id);
    await expect.poll(() => aborted, FAST).toContain("m/1");
    await reaches(one, id, "cancelled");
    expect((await batchOf(one, id)).counts).toMatchObject({ succeeded: 1, cancelled: 2, errored: 0 });
  });

  test("records that are not what their subjects say do not exist", async () => {
    const one = await fleet.join("one");
    await using received = await one.batches.receive([new Uint8Array(10)]);
    const { id } = await received.store({ viewer: undefined, purpose: "batch", name: "" });
    const record = { owner: "", purpose: "batch", name: "", bytes: 1, createdAt: 0, expiresAt: 0 };
    for (const [at, wrong] of ["*", id, "file-f".padEnd(38, "0")].entries()) {
      const subject = one.jetStream.subject("batches", "file", `file-f${`${at}`.padEnd(32, "1")}`);
      await one.jetStream.put(subject, encode({ ...record, id: wrong }));
    }
    const query = { viewer: undefined, limit: 9, descending: false, purposes: ["batch"] as const };
    expect((await one.batches.files(query)).items.map((file) => file.id)).toEqual([id]);
    await one.sweep();
    expect((await one.batches.content(undefined, id, ["batch"])).size).toBe(10);
    const left = await one.jetStream.subjects(
      "batchdata",
      one.jetStream.subject("batchdata", "file", id, "*"),
    );
    expect(left).toHaveLength(1);
  });

  test("one that ends while it is cancelled has been cancelled", async () => {
    const one = await fleet.join("one", { runLine: waiting });
    const two = await fleet.join("two", { models: {} });
    const { id } = await createBatch(one.batches, named(3));
    await answers(one, id, 1);
    const put = two.jetStream.put.bind(two.jetStream);
    two.jetStream.put = async (subject, ...rest) => {
      const number = await put(subject, ...rest);
      if (subject.endsWith(`.batch.${id}`)) await reaches(one, id, "cancelled");
      return number;
    };
    expect(await two.batches.cancel(undefined, TEXT_API, id)).toMatchObject({ id, status: "cancelled" });
  });

  test("an output is kept as long as it says, though its batch is older", async () => {
    let late = 0;
    const now = (): number => Date.now() + late;
    const one = await fleet.join("one", { runLine: waiting, now });
    const { id, createdAt } = await createBatch(one.batches, named(2));
    await answers(one, id, 1);
    late = 20 * HOUR_MS;
    isOpen.resolve();
    await reaches(one, id, "completed");
    const { outputFile = "" } = await batchOf(one, id);
    const file = await one.batches.file(undefined, outputFile, ["results"]);
    late += file.expiresAt - createdAt - 25 * HOUR_MS;
    expect(now()).toBeLessThan(file.expiresAt);
    await one.sweep();
    expect(await outputOf(one.batches, id)).toHaveLength(2);
  });

  test("a list is read while what is in it is removed", async () => {
    const one = await fleet.join("one");
    const ids: string[] = [];
    for (let at = 0; at < 20; at += 1) {
      await using received = await one.batches.receive([new Uint8Array(1)]);
      ids.push((await received.store({ viewer: undefined, purpose: "batch", name: "" })).id);
    }
    const begun = performance.now();
    const query = { viewer: undefined, limit: 20, descending: false, purposes: ["batch"] as const };
    const removed = (async () => {
      for (const id of ids) await one.batches.deleteFile(undefined, id, ["batch"]);
    })();
    while ((await one.batches.files(query)).items.length > 0);
    await removed;
    expect(performance.now() - begun).toBeLessThan(30_000);
  });

  test("news that comes all the time is looked at now and then", async () => {
    const one = await fleet.join("one", { runLine: waiting });
    const ids = await Promise.all(
      Array.from({ length: 10 }, async () => (await createBatch(one.batches, named(2))).id),
    );
    for (const id of ids) await reaches(one, id, "in_progress");
    const read = vi.spyOn(one.jetStream, "get");
    const begun = performance.now();
    for (let at = 0; at < 50; at += 1) {
      for (const id of ids) one.jetStream.announceChange(id);
      await sleep(10);
    }
    // Ten of them, twenty times a second.
    expect(read.mock.calls.length).toBeLessThan(30 + (performance.now() - begun) / 3);
  });
});

test.skipIf(NATS.isMissing)(`a fleet whose JetStream has no leader yet is away${NATS.note}`, async () => {
  const nats = await startNats();
  onTestFinished(async () => await nats.stop());
  const starting = await connect({ servers: nats.url });
  onTestFinished(async () => await starting.close());
  starting.subscribe("$JS.API.INFO", {
    callback: (_, message) => {
      const error = { code: 503, err_code: 10_008, description: "JetStream system temporarily unavailable" };
      message.respond(encode({ type: "io.nats.jetstream.api.v1.account_info_response", error }));
    },
  });
  await starting.flush();
  const fleet = new BatchMachines(nats.url, "t");
  const one = await fleet.join("one");
  expect(await one.jetStream.primaryStore()).toBe("away");
  await fleet.close({ hasStreams: false });
});

test.skipIf(NATS.isMissing)(
  `a line that is run while the server is away is run once${NATS.note}`,
  async () => {
    const nats = await startNats({ jetStream: true });
    onTestFinished(async () => await nats.stop());
    const fleet = new BatchMachines(nats.url, "t");
    const isOpen = Promise.withResolvers<void>();
    let runs = 0;
    const one = await fleet.join("one", {
      runLine: async (line, signal) => {
        runs += 1;
        await isOpen.promise;
        return await nameModel(line, signal);
      },
    });
    const { id } = await createBatch(one.batches, named(2));
    await expect.poll(() => runs, FAST).toBe(2);
    await nats.kill("SIGKILL");
    // Longer than it takes until further lines are looked for.
    await sleep(1200);
    await nats.restart();
    await expect.poll(() => one.jetStream.isConnected, FAST).toBe(true);
    await sleep(1200);
    isOpen.resolve();
    await expect.poll(async () => (await batchOf(one, id)).status, FAST).toBe("completed");
    expect(runs).toBe(2);
    await fleet.close();
  },
);
