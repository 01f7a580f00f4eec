import type { JetStreamManager, StreamConfig } from "@nats-io/jetstream";
import { reasonOf } from "../../errors/reason-of.ts";
import { NO_LEADER } from "./ask-again.ts";
import { codeOf, NAME_IN_USE, NO_STREAM, NOT_CLUSTERED } from "./jetstream-errors.ts";

/** Copies in a cluster: with three, one server may fail; with two, a disk may be lost. */
const WANTED_COPIES = 3;
const CLUSTER_COPIES = [WANTED_COPIES, 2, 1];

/** A cluster that does not give a stream as many copies as it should have. */
export interface FewCopies {
  readonly copies: number;
  /** What the server says. */
  readonly why: string;
}

/**
 * Makes a stream that is missing, with as many copies and as much room as the server gives, and more copies of one that has
 * too few.
 * @param sizes bytes, from the largest
 */
export async function makeStream(
  manager: JetStreamManager,
  config: Partial<StreamConfig> & { name: string },
  sizes: readonly number[],
  isCluster: boolean,
): Promise<FewCopies | undefined> {
  const copies = await copiesOf(manager, config.name);
  if (copies === undefined) return await addStream(manager, config, sizes, isCluster);
  return isCluster ? await addCopies(manager, config.name, copies) : undefined;
}

/** Undefined: there is no such stream. */
async function copiesOf(manager: JetStreamManager, name: string): Promise<number | undefined> {
  try {
    return (await manager.streams.info(name)).config.num_replicas;
  } catch (error) {
    if (codeOf(error) === NO_STREAM) return undefined;
    throw error;
  }
}

/** A stream can be used with the copies that it has: whatever fails here is only told. */
async function addCopies(
  manager: JetStreamManager,
  name: string,
  copies: number,
): Promise<FewCopies | undefined> {
  let failure: unknown;
  for (const num_replicas of CLUSTER_COPIES.filter((count) => count > copies)) {
    try {
      await manager.streams.update(name, { num_replicas });
      return tooFew(num_replicas, failure);
    } catch (error) {
      failure ??= error;
      // One that does not answer this does not answer the next one either.
      if (codeOf(error) === undefined) break;
    }
  }
  return tooFew(copies, failure);
}

function tooFew(copies: number, failure: unknown): FewCopies | undefined {
  // A server may have a cluster of which JetStream is no part.
  if (failure === undefined || codeOf(failure) === NOT_CLUSTERED) return undefined;
  return { copies, why: reasonOf(failure) };
}

/** Adds nothing, if another machine has just done so. */
async function addStream(
  manager: JetStreamManager,
  config: Partial<StreamConfig> & { name: string },
  sizes: readonly number[],
  isCluster: boolean,
): Promise<FewCopies | undefined> {
  let failure: unknown;
  for (const num_replicas of isCluster ? CLUSTER_COPIES : [1]) {
    for (const max_bytes of sizes) {
      try {
        await manager.streams.add({ ...config, max_bytes, num_replicas });
        return isCluster && num_replicas < WANTED_COPIES ? tooFew(num_replicas, failure) : undefined;
      } catch (error) {
        const code = codeOf(error);
        if (code === NAME_IN_USE) return undefined;
        // A server that has not answered may make it all the same; a smaller one would be in its way.
        if (code === undefined || code === NO_LEADER) throw error;
        failure ??= error;
      }
    }
  }
  throw failure;
}
