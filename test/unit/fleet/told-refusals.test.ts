import { expect, onTestFinished, test } from "vitest";
import type { RunLine } from "../../../src/batches/batch.ts";
import { toMessageBatch } from "../../../src/api/anthropic/batches/message-batch-object.ts";
import { toBatchObject } from "../../../src/api/openai/batches/batch-objects.ts";
import { BatchMachines, createBatch, named, nameModel, TEXT_API } from "../../support/batch-machines.ts";
import { NATS, startNats } from "../../support/nats-server.ts";

const FAST = { interval: 20 };
const NO_MEMORY = "There is no memory for the model.";

test.skipIf(NATS.isMissing)(
  `every machine reports why lines of a batch are refused, in lists and in both APIs, until one is answered${NATS.note}`,
  async () => {
    const nats = await startNats({ jetStream: true });
    onTestFinished(async () => await nats.stop());
    const fleet = new BatchMachines(nats.url, "t");
    onTestFinished(async () => await fleet.close());
    let late = 0;
    let hasMemory = false;
    const refusing: RunLine = async (line, signal) => {
      if (hasMemory) return await nameModel(line, signal);
      const body = JSON.stringify({ error: { message: NO_MEMORY } });
      return { status: 503, body, retryable: true, retryAfterSecs: 2 };
    };
    const now = (): number => Date.now() + late;
    await fleet.join("one", { runLine: refusing, now });
    const two = await fleet.join("two", { models: {}, now });
    const { id } = await createBatch(two.batches, named(3));
    const batchNow = async () => {
      late += 500;
      return await two.batches.batch(undefined, TEXT_API, id);
    };
    const waiting = `waits: ${NO_MEMORY}`;
    await expect.poll(async () => (await batchNow()).waiting, FAST).toBe(waiting);
    const query = { viewer: undefined, api: TEXT_API, limit: 20, descending: true };
    const { items } = await two.batches.batches(query);
    expect(items).toMatchObject([{ id, waiting }]);
    for (const batch of items) {
      expect(toBatchObject(batch)).toMatchObject({ waiting });
      expect(toMessageBatch(batch, "http://host")).toMatchObject({ waiting });
    }
    hasMemory = true;
    await expect.poll(async () => (await batchNow()).status, FAST).toBe("completed");
    expect(await batchNow()).not.toHaveProperty("waiting");
  },
);
