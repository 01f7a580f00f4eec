import { pause } from "../../async/pause.ts";
import type { CliIo } from "../cli-io.ts";
import { CliError } from "../cli-error.ts";
import { EXIT } from "../exit-codes.ts";
import { BatchDisplay } from "../terminal/batch-display.ts";
import { printable } from "../terminal/printable.ts";
import { writeLine } from "../terminal/write.ts";
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
  let told: string | undefined;
  while (!ENDED.has(batch.status)) {
    display.show(batch);
    told = await tellWaiting(io, batch, told);
    await pause(lookMs, io.signal);
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

/** The bar tells it on a terminal. @returns why it waits, which has been told */
async function tellWaiting(
  { stderr }: CliIo,
  { id, waiting }: BatchObject,
  told: string | undefined,
): Promise<string | undefined> {
  if (stderr.isTTY || waiting === told) return told;
  await writeLine(stderr, waiting === undefined ? `${id} goes on.` : `${id} ${printable(waiting)}.`);
  return waiting;
}

function mayPass(error: unknown): boolean {
  if (!(error instanceof CliError)) return false;
  return (
    error.exitCode === EXIT.noDaemon || error.exitCode === EXIT.tryLater || error.code === "connection_lost"
  );
}
