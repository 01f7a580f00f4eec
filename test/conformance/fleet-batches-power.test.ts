import { cpSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
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

const LINES = 300;
const POLL = { interval: 20, timeout: 60_000 };
const STREAMS = "jetstream/jetstream/$G/streams";

/** A disk that loses the last moments when the power is cut: a server saves later what it has acknowledged. */
class Disk {
  readonly #nats: NatsServer;
  readonly #copy: string;

  constructor(nats: NatsServer) {
    this.#nats = nats;
    this.#copy = path.join(nats.folder, "copy");
  }

  /** Takes a copy while the server runs, or of a part of its streams. */
  remember(): void {
    rmSync(this.#copy, { recursive: true, force: true });
    cpSync(path.join(this.#nats.folder, "jetstream"), this.#copy, { recursive: true });
  }

  /** Ends the server, and starts it with what was remembered: of all streams, or of these. */
  async cutPower(streams?: readonly string[]): Promise<void> {
    await this.#nats.kill("SIGKILL");
    const { folder } = this.#nats;
    for (const part of streams?.map((stream) => `${STREAMS}/t_${stream}`) ?? ["jetstream"]) {
      rmSync(path.join(folder, part), { recursive: true });
      renameSync(path.join(this.#copy, part.slice("jetstream".length)), path.join(folder, part));
    }
    await this.#nats.restart();
  }
}

describe.skipIf(NATS.isMissing)(`after a power failure of the NATS server${NATS.note}`, () => {
  let nats: NatsServer;
  let disk: Disk;
  let fleet: BatchMachines;
  let one: BatchMachine;
  let two: BatchMachine;
  /** How often each line was run. */
  let runs: Map<string, number>;
  /** Lines that may be answered. */
  let most: number;
  let isOpen: PromiseWithResolvers<void>;
  let late: number;

  const runLine: RunLine = async (request, signal) => {
    const { line }: { line: string } = JSON.parse(request.body);
    if (runs.size >= most)
      await Promise.race([
        isOpen.promise,
        new Promise((resolve) => signal.addEventListener("abort", resolve)),
      ]);
    runs.set(line, (runs.get(line) ?? 0) + 1);
    return await nameModel(request, signal);
  };
  const batchOf = async (id: string): Promise<Batch> => await two.batches.batch(undefined, TEXT_API, id);
  const answered = async (id: string): Promise<number> => (await batchOf(id)).counts.succeeded;
  /** Advances the fake clock, which the disk's timestamps do not follow. */
  const completes = async (id: string): Promise<void> => {
    await expect
      .poll(async () => {
        late += 2000;
        return (await batchOf(id).catch(() => undefined))?.status;
      }, POLL)
      .toBe("completed");
  };

  beforeEach(async () => {
    nats = await startNats({ jetStream: true });
    disk = new Disk(nats);
    runs = new Map();
    most = LINES;
    isOpen = Promise.withResolvers();
    late = 0;
    fleet = new BatchMachines(nats.url, "t");
    const options = { runLine, now: () => Date.now() + late };
    [one, two] = [await fleet.join("one", options), await fleet.join("two", options)];
    // Both know of the streams before the first copy is taken.
    await Promise.all([one.jetStream.primaryStore(), two.jetStream.primaryStore()]);
  });
  afterEach(async () => {
    isOpen.resolve();
    await fleet.close({ hasStreams: false });
    await nats.stop();
  });

  test.each([
    ["all that was told for a while", undefined],
    ["answers alone", ["batchdata"]],
    ["the state of batches alone", ["batches"]],
    ["lines that wait alone", ["batchwork"]],
  ])("lines whose answers are lost with %s are run again, and each is answered once", async (_, streams) => {
    most = 100;
    const { id } = await createBatch(one.batches, named(LINES));
    await expect.poll(async () => await answered(id), POLL).toBeGreaterThanOrEqual(20);
    disk.remember();
    await expect.poll(async () => await answered(id), POLL).toBeGreaterThanOrEqual(80);
    await disk.cutPower(streams);
    isOpen.resolve();
    await completes(id);
    expect(await outputOf(two.batches, id)).toEqual(named(LINES).map((line) => [line, "succeeded", "m"]));
  });

  test("a batch that was created since is gone, and so is its file; others go on", async () => {
    most = 100;
    const before = await createBatch(one.batches, named(LINES));
    await expect.poll(async () => await answered(before.id), POLL).toBeGreaterThanOrEqual(20);
    disk.remember();
    const lost = await createBatch(one.batches, named(LINES));
    await expect.poll(async () => (await batchOf(lost.id)).status, POLL).toBe("in_progress");
    await disk.cutPower();
    isOpen.resolve();
    await completes(before.id);
    const gone = { status: 404 };
    await expect(batchOf(lost.id)).rejects.toMatchObject({ code: "batch_not_found", ...gone });
    await expect(two.batches.cancel(undefined, TEXT_API, lost.id)).rejects.toMatchObject(gone);
    const file = [undefined, lost.inputFile, ["requests"]] as const;
    await expect(two.batches.content(...file)).rejects.toMatchObject({ code: "file_not_found", ...gone });
    const { id } = await createBatch(two.batches, named(5));
    await completes(id);
    expect(await outputOf(one.batches, id)).toHaveLength(5);
  });

  test("an output whose content is lost is not found, and its batch is there", async () => {
    disk.remember();
    const { id } = await createBatch(one.batches, named(LINES));
    await completes(id);
    await disk.cutPower(["batchdata"]);
    await expect
      .poll(async () => await outputOf(two.batches, id).catch(({ code }: { code: string }) => code), POLL)
      .toBe("file_not_found");
    expect((await batchOf(id)).status).toBe("completed");
  });
});
