import {
  DiscardPolicy,
  type JetStreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { type FewCopies, makeStream } from "../jetstream/make-stream.ts";

const MIB = 1024 * 1024;
/** What is on its way to be run is over after 24 hours, with its batch. */
const WORK_KEPT_MS = 3 * 24 * 3_600_000;

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

/** Makes the streams that are missing, as {@link makeStream} does. */
export async function makeStreams(
  manager: JetStreamManager,
  prefix: string,
  isCluster: boolean,
): Promise<FewCopies | undefined> {
  let few: FewCopies | undefined;
  for (const kind of ["batches", "batchwork", "batchdata"] as const) {
    const config = configOf(kind, streamName(prefix, kind), `${prefix}.${kind}.>`);
    const fewer = await makeStream(manager, config, SIZES[kind], isCluster);
    few ??= fewer;
  }
  return few;
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
