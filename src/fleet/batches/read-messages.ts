import { AckPolicy, DeliverPolicy, type JetStreamManager, type JsMsg } from "@nats-io/jetstream";
import { errors, nuid } from "@nats-io/transport-node";
import { codeOf, isAtLeast, NO_CONSUMER } from "../jetstream/jetstream-errors.ts";

/** Messages per fetch, and its duration. */
const FETCH_MESSAGES = 2000;
const FETCH_TIMEOUT_MS = 1000;
/** Silence after which another consumer is created: older servers may place one on a cluster server that is gone. */
const SILENCE_TIMEOUT_MS = 2000;
/** First version in which clients can name an ephemeral consumer. */
const CONSUMER_NAMES_VERSION = [2, 9, 0] as const;
/** Time after which the server removes an unused consumer. */
const CONSUMER_TTL_MS = 15_000;

interface ReadOptions {
  /** Subject, which may have wildcards. */
  readonly filter: string;
  /** Sequence number of the first message. */
  readonly from: number;
  readonly headersOnly: boolean;
  /** Version of the server. */
  readonly version: string;
  /** Time after which a silent server counts as unreachable. */
  readonly timeoutMs: number;
}

/** Reads all messages of a filter in order, each once. @throws errors of NATS */
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
  // With a name, a resent request creates no second consumer; older servers choose the name themselves.
  let name = isAtLeast(version, CONSUMER_NAMES_VERSION) ? nuid.next() : undefined;
  try {
    const created = manager.consumers.add(stream, {
      ...(name !== undefined && { name }),
      filter_subject: filter,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: from,
      ack_policy: AckPolicy.None,
      headers_only: headersOnly,
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: CONSUMER_TTL_MS * 1e6,
    });
    const info = await withTimeout(created);
    name = info.name;
    const consumer = manager.jetstream().consumers.getConsumerFromInfo(info);
    let lastMessageAt = performance.now();
    for (let left = info.num_pending; left > 0;) {
      const request = { max_messages: Math.min(left, FETCH_MESSAGES), expires: FETCH_TIMEOUT_MS };
      for await (const message of await consumer.fetch(request)) {
        take(message);
        lastMessageAt = performance.now();
        left = message.info.pending;
        if (left === 0) break;
      }
      // Fewer messages are left if some have been removed meanwhile.
      if (left > 0) left = (await withTimeout(consumer.info())).num_pending;
      if (left > 0 && performance.now() - lastMessageAt > SILENCE_TIMEOUT_MS) throw new errors.TimeoutError();
    }
  } finally {
    // If this request is lost, the consumer expires.
    if (name !== undefined) manager.consumers.delete(stream, name).catch(() => undefined);
  }
}

/** @throws TimeoutError if the server is silent for too long */
async function withTimeout<Result>(answer: Promise<Result>): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new errors.TimeoutError()), SILENCE_TIMEOUT_MS);
  try {
    return await Promise.race([answer, promise]);
  } finally {
    clearTimeout(timer);
  }
}
