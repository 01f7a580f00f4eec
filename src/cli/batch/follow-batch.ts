import type { CliIo } from "../cli-io.ts";
import { CliError } from "../cli-error.ts";
import { pause } from "../client/pause.ts";
import { EXIT } from "../exit-codes.ts";
import { BatchDisplay } from "../terminal/batch-display.ts";
import type { BatchClient, BatchObject } from "./batch-client.ts";

/** A short batch is over soon, a long one does not change much. */
const LOOK_MS = { first: 50, most: 1000, growth: 1.3 };
/** A daemon that is started again is there within seconds, but its models may take a while. */
const MAX_ABSENCE_MS = 120_000;
const ENDED = new Set(["completed", "failed", "expired", "cancelled"]);

/** Shows how far a batch is until it is over, also while the daemon is started again. */
export async function followBatch(io: CliIo, client: BatchClient, first: BatchObject): Promise<BatchObject> {
  using display = new BatchDisplay(io.stderr);
  let batch = first;
  let seenAt = performance.now();
  let lookMs = LOOK_MS.first;
  while (!ENDED.has(batch.status)) {
    display.show(batch);
    await pause(io.signal, lookMs);
    lookMs = Math.min(lookMs * LOOK_MS.growth, LOOK_MS.most);
    try {
      batch = await client.get(batch.id);
      seenAt = performance.now();
    } catch (error) {
      if (!mayPass(error) || performance.now() - seenAt > MAX_ABSENCE_MS) throw error;
    }
  }
  display.show(batch);
  return batch;
}

function mayPass(error: unknown): boolean {
  if (!(error instanceof CliError)) return false;
  return (
    error.exitCode === EXIT.noDaemon || error.exitCode === EXIT.tryLater || error.code === "connection_lost"
  );
}
