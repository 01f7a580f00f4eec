import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { RunLine } from "../../src/batches/batch.ts";
import { BatchMachines, createBatch, named, nameModel, TEXT_API } from "../support/batch-machines.ts";
import { NATS, startNats } from "../support/nats-server.ts";

const BATCHES = 200;
const LINES = 200;
const CREATED_AT_ONCE = 20;
/** Milliseconds that a line takes. */
const LINE_MS = 100;
/** About a second, but for machines that do other things as well; behind the lines of the others it would be minutes. */
const SOON_MS = 15_000;

test.skipIf(NATS.isMissing)(
  `a small batch begins about at once beside 200 others that have lines for minutes${NATS.note}`,
  async () => {
    const nats = await startNats({ jetStream: true });
    onTestFinished(async () => await nats.stop());
    const fleet = new BatchMachines(nats.url, "t");
    onTestFinished(async () => await fleet.close({ hasStreams: false }));
    const begunAt = new Map<string, number>();
    const runLine: RunLine = async (request, signal) => {
      const { line }: { line: string } = JSON.parse(request.body);
      begunAt.set(line, begunAt.get(line) ?? performance.now());
      await sleep(LINE_MS, undefined, { signal }).catch(() => undefined);
      return await nameModel(request, signal);
    };
    const machines = await Promise.all(
      ["one", "two", "three"].map(async (name) => await fleet.join(name, { runLine })),
    );
    const [one, two] = machines;
    if (!one || !two) throw new Error("there are no machines");
    await expect.poll(async () => await two.jetStream.primaryStore()).toBe("fleet");
    for (let at = 0; at < BATCHES; at += CREATED_AT_ONCE) {
      await Promise.all(
        Array.from({ length: CREATED_AT_ONCE }, async (_, index) => {
          const { batches } = machines[index % machines.length] ?? one;
          await createBatch(
            batches,
            named(LINES).map((line) => `${line}-${at + index}`),
            "a",
          );
        }),
      );
    }
    const figures: number[][] = [];
    for (const [at, viewer] of ["a", "b", "a", "b"].entries()) {
      const created = performance.now();
      const lines = [0, 1, 2].map((line) => `m/small-${at}-${line}`);
      const { id } = await createBatch(two.batches, lines, viewer);
      const status = async (): Promise<string> => (await two.batches.batch(undefined, TEXT_API, id)).status;
      await expect.poll(status, { interval: 20, timeout: 60_000 }).toBe("completed");
      const first = Math.min(...lines.map((line) => begunAt.get(line) ?? Number.POSITIVE_INFINITY));
      figures.push([first - created, performance.now() - created]);
    }
    process.stdout.write(
      `begun and ended after ${figures.map((pair) => pair.map(Math.round).join(" and ")).join(", ")} ms\n`,
    );
    for (const [begun] of figures) expect(begun).toBeLessThan(SOON_MS);
  },
  10 * 60_000,
);
