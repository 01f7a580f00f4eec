import { expect, onTestFinished, test } from "vitest";
import { clientOf, completeLines, createLines } from "../support/batch-clients.ts";
import { NATS } from "../support/nats-server.ts";
import { ask, fleetOf, FLEET_MODEL, TestFleet } from "../support/test-fleet.ts";

const MINUTE = 60_000;
const LINES = 100;

test.skipIf(NATS.isMissing).each([
  { jetStream: true, waiting: `waits for a machine that has ${FLEET_MODEL}` },
  { jetStream: false, waiting: `waits: The machine worker, which has the model "${FLEET_MODEL}",` },
])(
  "a batch that begins while the only machine with its model restarts fails no line and no other request, with JetStream: $jetStream",
  async ({ jetStream, waiting }) => {
    const fleet = await TestFleet.start({ jetStream });
    onTestFinished(async () => await fleet.stop());
    const entrance = await fleet.join("entrance", { hasModel: false });
    const worker = await fleet.join("worker");
    await fleet.complete(entrance, 2, 1);
    await worker.stop();
    await expect.poll(async () => (await fleetOf(entrance)).machines.length, { timeout: MINUTE }).toBe(1);
    const client = clientOf(entrance);
    const id = await createLines(client, LINES);
    const seen = async (): Promise<unknown> => {
      const { status, ...batch } = await client.batches.retrieve(id);
      return { status, waiting: "waiting" in batch ? batch.waiting : undefined };
    };
    await expect
      .poll(seen, { timeout: MINUTE, interval: 100 })
      .toEqual({ status: "in_progress", waiting: expect.stringContaining(waiting) });
    const answered = new Set<number>();
    const over = new AbortController();
    const asking = (async () => {
      while (!over.signal.aborted) answered.add((await ask(entrance, "hello", { max_tokens: 1 })).status);
    })();
    try {
      await fleet.join("worker");
      await completeLines(() => [client], id, LINES, 2 * MINUTE);
    } finally {
      over.abort();
      await asking;
    }
    // At no moment is the model said not to exist.
    expect(answered).toEqual(new Set([503, 200]));
  },
  5 * MINUTE,
);
