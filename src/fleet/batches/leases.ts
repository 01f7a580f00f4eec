import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { readJson, writeJson } from "../wire-format.ts";
import type { JetStreamStore } from "./jetstream-store.ts";
import { isSharedId } from "./batch-record.ts";

/** After so long without a renewal, anyone may take a lease. */
const LEASE_MS = 8000;
const RENEW_MS = 2500;
/** A daemon that ends waits so long for the server. */
const CLOSE_MS = 2000;

/** Empty: nobody's. */
const leaseSchema = z.object({ holder: z.string() });

interface Held {
  seq: number;
  /** When it was last renewed, before the server was asked. */
  at: number;
  isBeingRenewed: boolean;
}

/**
 * Says who leads a batch. Nobody compares clocks: a lease that has not changed for a while, as one sees it oneself, is
 * anyone's. Each unfinished batch has one, so that they are also the list of these.
 */
export class Leases {
  readonly #place: JetStreamStore;
  readonly #selfId: string;
  readonly #held = new Map<string, Held>();
  /** Leases of others: which one was seen, since when. */
  readonly #seen = new Map<string, { readonly seq: number; readonly since: number }>();
  readonly #timer: NodeJS.Timeout;

  constructor(place: JetStreamStore, selfId: string) {
    this.#place = place;
    this.#selfId = selfId;
    this.#timer = setInterval(() => void this.#renewAll(), RENEW_MS).unref();
  }

  /** The lease of a new batch, which is this machine's. */
  async begin(id: string): Promise<void> {
    await this.#take(id, undefined);
  }

  /** Ids of all batches with a lease. */
  async ids(): Promise<readonly string[]> {
    const subjects = await this.#place.subjects("batches", this.#subject("*"));
    const ids = subjects.map((subject) => subject.split(".").at(-1) ?? "");
    for (const id of this.#seen.keys()) if (!ids.includes(id)) this.#seen.delete(id);
    return ids.filter(isSharedId);
  }

  /** Whether this machine has a lease, as far as it can know. */
  isHeld(id: string): boolean {
    const held = this.#held.get(id);
    return held !== undefined && performance.now() - held.at < LEASE_MS;
  }

  /** Has a lease if it can. One that does not exist is only made if `create`. */
  async hold(id: string, create = false): Promise<boolean> {
    if (this.isHeld(id)) return true;
    this.#held.delete(id);
    const stored = await this.#place.get("batches", this.#subject(id));
    if (!stored) return create && (await this.#take(id, 0));
    const { holder = "" } = readJson(leaseSchema, stored.data) ?? {};
    const seen = this.#seen.get(id);
    // Its own it loses when the answer to a renewal does not arrive.
    if (holder === "" || holder === this.#selfId) return await this.#take(id, stored.seq);
    if (seen?.seq === stored.seq && performance.now() - seen.since >= LEASE_MS)
      return await this.#take(id, stored.seq);
    if (seen?.seq !== stored.seq) this.#seen.set(id, { seq: stored.seq, since: performance.now() });
    return false;
  }

  /** The batch is over, and what belongs to it is removed. */
  async end(id: string): Promise<void> {
    this.#held.delete(id);
    this.#seen.delete(id);
    await this.#place.purge("batches", this.#subject(id));
  }

  /** Lets others have all of them at once. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const held = [...this.#held];
    this.#held.clear();
    if (!this.#place.isConnected) return;
    const free = writeJson({ holder: "" });
    const puts = held.map(async ([id, { seq }]) => await this.#place.put(this.#subject(id), free, seq));
    // They end by themselves where the server does not take this.
    await Promise.race([Promise.allSettled(puts), sleep(CLOSE_MS, undefined, { ref: false })]);
    for (const [id] of held) this.#place.nudge(id);
  }

  async #take(id: string, expected: number | undefined): Promise<boolean> {
    const at = performance.now();
    const seq = await this.#place.put(this.#subject(id), writeJson({ holder: this.#selfId }), expected);
    if (seq === undefined) return false;
    this.#seen.delete(id);
    this.#held.set(id, { seq, at, isBeingRenewed: false });
    return true;
  }

  /** Never rejects. */
  async #renewAll(): Promise<void> {
    if (!this.#place.isConnected) return;
    await Promise.allSettled(
      [...this.#held].map(async ([id, held]) => {
        // Another renewal of the same one would find it changed by the first, and count as lost.
        if (held.isBeingRenewed) return;
        held.isBeingRenewed = true;
        const at = performance.now();
        const seq = await this.#place
          .put(this.#subject(id), writeJson({ holder: this.#selfId }), held.seq)
          .finally(() => (held.isBeingRenewed = false));
        if (this.#held.get(id) !== held) return;
        if (seq === undefined) this.#held.delete(id);
        else Object.assign(held, { seq, at });
      }),
    );
  }

  #subject(id: string): string {
    return this.#place.subject("batches", "lease", id);
  }
}
