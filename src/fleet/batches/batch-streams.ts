import {
  DiscardPolicy,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { codeOf, NAME_IN_USE, NO_LEADER, NO_STREAM } from "./jetstream-errors.ts";

const MIB = 1024 * 1024;
/** What is on its way to be run is over after 24 hours, with its batch. */
const WORK_KEPT_MS = 3 * 24 * 3_600_000;
/** Copies in a cluster: one server may fail. */
const CLUSTER_REPLICAS = 3;

/** The streams of batches. Their subjects begin with the same word. */
export const STREAMS = ["batches", "batchdata", "batchwork"] as const;
export type StreamKind = (typeof STREAMS)[number];

/** Bytes on the server's disk; less where an account allows less. */
const SIZES: Readonly<Record<StreamKind, readonly number[]>> = {
  batches: [64, 16, 4].map((size) => size * MIB),
  batchwork: [64, 16, 4].map((size) => size * MIB),
  batchdata: [4096, 1024, 256, 64, 16].map((size) => size * MIB),
};

/** The name of a stream. */
export function streamName(prefix: string, kind: StreamKind): string {
  return `${prefix.replaceAll(".", "_")}_${kind}`;
}

/** Makes the streams that are missing. */
export async function makeStreams(
  manager: JetStreamManager,
  prefix: string,
  isCluster: boolean,
): Promise<void> {
  for (const kind of ["batches", "batchwork", "batchdata"] as const) {
    const name = streamName(prefix, kind);
    if (await isThere(manager, name)) continue;
    await addStream(manager, configOf(kind, name, `${prefix}.${kind}.>`), SIZES[kind], isCluster);
  }
}

async function isThere(manager: JetStreamManager, name: string): Promise<boolean> {
  try {
    await manager.streams.info(name);
    return true;
  } catch (error) {
    if (codeOf(error) === NO_STREAM) return false;
    throw error;
  }
}

/** Nothing makes room for something else: what does not fit is refused. */
function configOf(kind: StreamKind, name: string, subject: string): Partial<StreamConfig> & { name: string } {
  const work = { retention: RetentionPolicy.Workqueue, max_age: WORK_KEPT_MS * 1e6 };
  return {
    name,
    subjects: [subject],
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    ...(kind === "batchwork" ? work : { retention: RetentionPolicy.Limits, max_msgs_per_subject: 1 }),
  };
}

/**
 * Adds a stream, with as many copies and as much room as the server gives; nothing, if another machine has just done so.
 * @param sizes bytes, from the largest
 */
export async function addStream(
  manager: JetStreamManager,
  config: Partial<StreamConfig> & { name: string },
  sizes: readonly number[],
  isCluster: boolean,
): Promise<void> {
  let failure: unknown;
  for (const num_replicas of isCluster ? [CLUSTER_REPLICAS, 1] : [1]) {
    for (const max_bytes of sizes) {
      try {
        await manager.streams.add({ ...config, max_bytes, num_replicas });
        return;
      } catch (error) {
        const code = codeOf(error);
        if (code === NAME_IN_USE) return;
        // A server that has not answered may make it all the same; a smaller one would be in its way.
        if (code === undefined || code === NO_LEADER) throw error;
        failure = error;
      }
    }
  }
  throw failure;
}
