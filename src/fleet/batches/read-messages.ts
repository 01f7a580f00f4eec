import { AckPolicy, DeliverPolicy, type JetStreamManager, type JsMsg } from "@nats-io/jetstream";
import { errors, nuid } from "@nats-io/transport-node";
import { codeOf, isAtLeast, NO_CONSUMER } from "../jetstream/jetstream-errors.ts";

/** Messages that are asked for at once, and for how long. */
const READ_AT_ONCE = 2000;
const FETCH_MS = 1000;
/** After so long without a word, another reader is made: older servers give one to any server of a cluster, also to one that is gone. */
const SILENCE_MS = 2000;
/** From this version on, who asks for a reader can name it. */
const NAMES = [2, 9, 0] as const;
/** A reader that has died is forgotten after this. */
const READER_MS = 15_000;

export interface ReadOptions {
  /** The subject, which may have wildcards. */
  readonly filter: string;
  /** The number of the first message. */
  readonly from: number;
  readonly headersOnly: boolean;
  /** Of the server. */
  readonly version: string;
  /** After so long, a server that says nothing is away. */
  readonly timeoutMs: number;
}

/** Reads all messages of a filter, in their order, each once. @throws the errors of NATS */
export async function readMessages(
  manager: JetStreamManager,
  stream: string,
  options: ReadOptions,
  take: (message: JsMsg) => void,
): Promise<void> {
  const deadline = performance.now() + options.timeoutMs;
  let { from } = options;
  for (;;) {
    try {
      await readFrom(manager, stream, { ...options, from }, (message) => {
        from = message.seq + 1;
        take(message);
      });
      return;
    } catch (error) {
      const isLost = error instanceof errors.TimeoutError || codeOf(error) === NO_CONSUMER;
      if (!isLost || performance.now() > deadline) throw error;
    }
  }
}

async function readFrom(
  manager: JetStreamManager,
  stream: string,
  { filter, from, headersOnly, version }: ReadOptions,
  take: (message: JsMsg) => void,
): Promise<void> {
  // One that is asked for twice is the same; older servers give it a name themselves.
  let name = isAtLeast(version, NAMES) ? nuid.next() : undefined;
  try {
    const added = manager.consumers.add(stream, {
      ...(name !== undefined && { name }),
      filter_subject: filter,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: from,
      ack_policy: AckPolicy.None,
      headers_only: headersOnly,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: READER_MS * 1e6,
    });
    const reader = await heard(added);
    name = reader.name;
    const consumer = manager.jetstream().consumers.getConsumerFromInfo(reader);
    let heardAt = performance.now();
    for (let left = reader.num_pending; left > 0;) {
      const wish = { max_messages: Math.min(left, READ_AT_ONCE), expires: FETCH_MS };
      for await (const message of await consumer.fetch(wish)) {
        take(message);
        heardAt = performance.now();
        left = message.info.pending;
        if (left === 0) break;
      }
      // Fewer than there were, if some have been removed meanwhile.
      if (left > 0) left = (await heard(consumer.info())).num_pending;
      if (left > 0 && performance.now() - heardAt > SILENCE_MS) throw new errors.TimeoutError();
    }
  } finally {
    // Where this is lost, it ends by itself.
    if (name !== undefined) manager.consumers.delete(stream, name).catch(() => undefined);
  }
}

/** @throws TimeoutError when the server says nothing for too long */
async function heard<Result>(answer: Promise<Result>): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new errors.TimeoutError()), SILENCE_MS);
  try {
    return await Promise.race([answer, promise]);
  } finally {
    clearTimeout(timer);
  }
}
