import { jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { LineRuns } from "../../../src/fleet/batches/line-runs.ts";
import { jetStreamMachine } from "../../support/jetstream-machine.ts";
import { NATS } from "../../support/nats-server.ts";

const BATCH = { id: "batch_f00", queue: "0" };
const LINE = { number: 1, start: 0, length: 1 };

test.skipIf(NATS.isMissing)(
  `does not count acknowledged lines that the stream still has${NATS.note}`,
  async () => {
    const { jetStream, nats } = await jetStreamMachine();
    // State after a power failure: acknowledged messages are still in the stream.
    const { streams } = await jetstreamManager(nats);
    await streams.add({ name: "t_batchwork", subjects: ["t.batchwork.>"] });
    const runs = new LineRuns(jetStream);
    expect(await runs.hasAny(BATCH)).toBe(false);
    await runs.add(BATCH, 0, [LINE]);
    expect(await runs.hasAny(BATCH)).toBe(true);
    const run = await runs.take(BATCH, 0);
    expect(run?.lines).toEqual([LINE]);
    expect(await runs.hasAny(BATCH)).toBe(true);
    run?.done();
    await expect.poll(async () => await runs.hasAny(BATCH), { interval: 10 }).toBe(false);
    expect(await runs.groups(BATCH)).toEqual(new Set([0]));
    await runs.add(BATCH, 0, [LINE]);
    expect(await runs.hasAny(BATCH)).toBe(true);
  },
);
