import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { readJson, writeJson } from "../wire-format.ts";
import type { JetStreamStore } from "./jetstream-store.ts";
import { isSharedId } from "./batch-record.ts";

/** Time without a renewal after which any machine may take a lease. */
const LEASE_MS = 8000;
const RENEW_INTERVAL_MS = 2500;
/** Maximum wait for the server when closing. */
const CLOSE_TIMEOUT_MS = 2000;

/** Empty if no machine has the lease. */
const leaseSchema = z.object({ holder: z.string() });

interface HeldLease {
  seq: number;
  /** Time of the last renewal, taken before the request. */
  at: number;
  isBeingRenewed: boolean;
}

/**
 * Leases that determine which machine leads a batch. Clocks of machines are never compared: a lease has expired if this
 * machine has not seen it change for a while. Each unfinished batch has a lease, so leases also list these batches.
 *
 * Not made with @nats-io/kv, which sends updates without message ids: an update that is sent again to a cluster without
 * a leader could not be distinguished from another machine's.
 */
export class Leases {
  readonly #jetStream: JetStreamStore;
  readonly #selfId: string;
  readonly #held = new Map<string, HeldLease>();
  /** Sequence numbers of others' leases, and when they were first seen. */
  readonly #othersLeases = new Map<string, { readonly seq: number; readonly since: number }>();
  readonly #timer: NodeJS.Timeout;

  constructor(jetStream: JetStreamStore, selfId: string) {
    this.#jetStream = jetStream;
    this.#selfId = selfId;
    this.#timer = setInterval(() => void this.#renewAll(), RENEW_INTERVAL_MS).unref();
  }

  /** Creates the lease of a new batch for this machine. */
  async create(id: string): Promise<void> {
    await this.#write(id, undefined);
  }

  /** Returns the ids of all batches that have a lease. */
  async ids(): Promise<readonly string[]> {
    const subjects = await this.#jetStream.subjects("batches", this.#subject("*"));
    const ids = subjects.map((subject) => subject.split(".").at(-1) ?? "");
    for (const id of this.#othersLeases.keys()) if (!ids.includes(id)) this.#othersLeases.delete(id);
    return ids.filter(isSharedId);
  }

  /** Returns true if this machine has a lease, as far as it can know. */
  isHeld(id: string): boolean {
    const held = this.#held.get(id);
    return held !== undefined && performance.now() - held.at < LEASE_MS;
  }

  /** Acquires a lease if possible. A missing lease is created only if `create` is true. */
  async acquire(id: string, create = false): Promise<boolean> {
    if (this.isHeld(id)) return true;
    this.#held.delete(id);
    const stored = await this.#jetStream.get("batches", this.#subject(id));
    if (!stored) return create && (await this.#write(id, 0));
    const { holder = "" } = readJson(leaseSchema, stored.data) ?? {};
    const seen = this.#othersLeases.get(id);
    // This machine may be the recorded holder without knowing if the acknowledgment of a renewal was lost.
    if (holder === "" || holder === this.#selfId) return await this.#write(id, stored.seq);
    if (seen?.seq === stored.seq && performance.now() - seen.since >= LEASE_MS)
      return await this.#write(id, stored.seq);
    if (seen?.seq !== stored.seq) this.#othersLeases.set(id, { seq: stored.seq, since: performance.now() });
    return false;
  }

  /** Removes the lease of a finished batch, after everything else of it. */
  async remove(id: string): Promise<void> {
    this.#held.delete(id);
    this.#othersLeases.delete(id);
    await this.#jetStream.purge("batches", this.#subject(id));
  }

  /** Releases all leases. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const held = [...this.#held];
    this.#held.clear();
    if (!this.#jetStream.isConnected) return;
    const free = writeJson({ holder: "" });
    const puts = held.map(async ([id, { seq }]) => await this.#jetStream.put(this.#subject(id), free, seq));
    // Leases that the server does not release expire.
    await Promise.race([Promise.allSettled(puts), sleep(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
    for (const [id] of held) this.#jetStream.announceChange(id);
  }

  async #write(id: string, expected: number | undefined): Promise<boolean> {
    const at = performance.now();
    const seq = await this.#jetStream.put(this.#subject(id), writeJson({ holder: this.#selfId }), expected);
    if (seq === undefined) return false;
    this.#othersLeases.delete(id);
    this.#held.set(id, { seq, at, isBeingRenewed: false });
    return true;
  }

  /** Never rejects. */
  async #renewAll(): Promise<void> {
    if (!this.#jetStream.isConnected) return;
    await Promise.allSettled(
      [...this.#held].map(async ([id, held]) => {
        // A concurrent renewal would see a changed lease and count it as lost.
        if (held.isBeingRenewed) return;
        held.isBeingRenewed = true;
        const at = performance.now();
        const seq = await this.#jetStream
          .put(this.#subject(id), writeJson({ holder: this.#selfId }), held.seq)
          .finally(() => (held.isBeingRenewed = false));
        if (this.#held.get(id) !== held) return;
        if (seq === undefined) this.#held.delete(id);
        else Object.assign(held, { seq, at });
      }),
    );
  }

  #subject(id: string): string {
    return this.#jetStream.subject("batches", "lease", id);
  }
}
