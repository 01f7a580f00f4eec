import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { toError } from "../../errors/to-error.ts";
import { isAtLeast } from "./server-version.ts";

/**
 * A server of a cluster that is older than this, and is started again after a crash, takes what it has been told to remove of
 * some subjects for all that it has (nats-server issue 4196). Debian 12 has such a one.
 */
const SAFE = [2, 9, 18] as const;
/** Messages at once, where they are removed one by one. */
const AT_ONCE = 16;

/**
 * Removes the messages of a subject, which may have wildcards.
 * @param before those with lower numbers alone
 */
export async function removeMessages(
  { streams }: Pick<JetStreamManager, "streams">,
  info: NatsConnection["info"],
  stream: string,
  filter: string,
  before?: number,
): Promise<void> {
  if (info?.cluster === undefined || isAtLeast(info.version, SAFE)) {
    await streams.purge(stream, { filter, ...(before !== undefined && { seq: before }) });
    return;
  }
  const { state } = await streams.info(stream, { subjects_filter: filter });
  const subjects = Object.keys(state.subjects ?? {});
  const removeAll = async (subject: string): Promise<void> => {
    for (;;) {
      const last = await streams.getMessage(stream, { last_by_subj: subject });
      if (!last || (before !== undefined && last.seq >= before)) return;
      const failure = await streams.deleteMessage(stream, last.seq, false).catch(toError);
      if (!(failure instanceof Error)) continue;
      // Another machine may have done it.
      const left = await streams.getMessage(stream, { last_by_subj: subject });
      if (left?.seq === last.seq) throw failure;
    }
  };
  for (let at = 0; at < subjects.length; at += AT_ONCE)
    await Promise.all(subjects.slice(at, at + AT_ONCE).map(removeAll));
}
