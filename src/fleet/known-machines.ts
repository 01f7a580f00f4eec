import type { Beat, Card } from "./card.ts";

/** No fleet has as many. */
const MOST_MACHINES = 4096;
/** Bytes of messages that are kept of all machines together. */
const MOST_BYTES = 64 * 1024 * 1024;

/** What has been heard of another machine. */
export interface Known {
  readonly beat: Beat;
  readonly card: Card | undefined;
  /** When it last sent a beat. */
  readonly seenAt: number;
}

interface Kept {
  beat: Beat;
  beatBytes: number;
  card: Card | undefined;
  cardBytes: number;
  seenAt: number;
}

/**
 * The other machines, as far as they have told. Forged messages must not fill the memory: when there are too many, those
 * that have been silent for longest are forgotten.
 */
export class KnownMachines {
  readonly #byId = new Map<string, Kept>();
  #bytes = 0;

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): Known | undefined {
    return this.#byId.get(id);
  }

  values(): MapIterator<Known> {
    return this.#byId.values();
  }

  /** A machine has sent a beat. @param bytes of the message */
  heard(beat: Beat, bytes: number, now: number): void {
    const kept = this.#byId.get(beat.id) ?? {
      beat,
      beatBytes: 0,
      card: undefined,
      cardBytes: 0,
      seenAt: now,
    };
    this.#bytes += bytes - kept.beatBytes;
    kept.beat = beat;
    kept.beatBytes = bytes;
    kept.seenAt = now;
    this.#byId.set(beat.id, kept);
    this.#makeRoom();
  }

  /** A machine has sent its card; one that has been forgotten meanwhile stays so. @param bytes of the message */
  describe(card: Card, bytes: number): void {
    const kept = this.#byId.get(card.id);
    if (!kept) return;
    this.#bytes += bytes - kept.cardBytes;
    kept.card = card;
    kept.cardBytes = bytes;
    this.#makeRoom();
  }

  /** Returns whether it was known. */
  forget(id: string): boolean {
    const kept = this.#byId.get(id);
    if (kept) this.#bytes -= kept.beatBytes + kept.cardBytes;
    return this.#byId.delete(id);
  }

  /** Forgets all that have sent nothing since then, and returns them. */
  forgetSilent(before: number): readonly Known[] {
    const silent = [...this.#byId.values()].filter(({ seenAt }) => seenAt < before);
    for (const { beat } of silent) this.forget(beat.id);
    return silent;
  }

  #makeRoom(): void {
    while (this.#byId.size > MOST_MACHINES || this.#bytes > MOST_BYTES) {
      let oldest: Kept | undefined;
      for (const kept of this.#byId.values()) if (!oldest || kept.seenAt < oldest.seenAt) oldest = kept;
      if (!oldest) return;
      this.forget(oldest.beat.id);
    }
  }
}
