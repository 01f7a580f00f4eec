import { isRefused, natsTrouble } from "../api/management/machine-schemas.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { FleetConnection } from "./fleet-connection.ts";
import { type Heartbeat, type MemberInfo, NOT_DESCRIBED, type CandidateMachine } from "./members.ts";

/** No fleet has as many. */
const MAX_MACHINES = 4096;
/** Bytes of messages that are kept of all machines together. */
const MAX_BYTES = 64 * 1024 * 1024;

/** What has been heard of another machine. */
export interface Known {
  readonly beat: Heartbeat;
  readonly card: MemberInfo | undefined;
  /** When it last sent a beat. */
  readonly seenAt: number;
}

interface Kept {
  beat: Heartbeat;
  beatBytes: number;
  card: MemberInfo | undefined;
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
  heard(beat: Heartbeat, bytes: number, now: number): void {
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
  describe(card: MemberInfo, bytes: number): void {
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
    while (this.#byId.size > MAX_MACHINES || this.#bytes > MAX_BYTES) {
      let oldest: Kept | undefined;
      for (const kept of this.#byId.values()) if (!oldest || kept.seenAt < oldest.seenAt) oldest = kept;
      if (!oldest) return;
      this.forget(oldest.beat.id);
    }
  }
}

/** What a machine had that is gone for longer nobody has. */
const KEPT_MS = 3_600_000;
/** Machines that are kept, of at most a card's bytes each; of more that leave at once, those that have left first are forgotten. */
const MAX_KEPT = 64;

/** The machines that have just left, or fallen silent. Times are in milliseconds since any origin. */
export class Departures {
  readonly #byName = new Map<string, { readonly machine: CandidateMachine; readonly at: number }>();

  /** A machine is gone. */
  left(machine: CandidateMachine, now: number): void {
    const { name, revision } = machine.card;
    if (revision === NOT_DESCRIBED) return;
    // The last one to leave is the last of the map.
    this.#byName.delete(name);
    this.#byName.set(name, { machine, at: now });
    const [first] = this.#byName.keys();
    if (this.#byName.size > MAX_KEPT && first !== undefined) this.#byName.delete(first);
  }

  /** A machine has told what it has, again or for the first time: its id is another one after each start, its name is not. */
  came({ name, revision }: Pick<MemberInfo, "name" | "revision">): void {
    if (revision !== NOT_DESCRIBED) this.#byName.delete(name);
  }

  /** Those that have left within so many milliseconds. */
  lately(now: number, millis = KEPT_MS): readonly CandidateMachine[] {
    for (const [name, { at }] of this.#byName) if (now - at >= KEPT_MS) this.#byName.delete(name);
    return [...this.#byName.values()].filter(({ at }) => now - at < millis).map(({ machine }) => machine);
  }
}

/** NATS passes a beat on to the machine that has sent it within this time, or later than anybody cares. */
const OWN_BEATS_KEPT_MS = 10_000;
/** A machine sends two in a second, and some more when something changes. */
const OWN_BEATS_MOST_KEPT = 256;
/** Somebody who speaks in this machine's name all the time must not have it answer all the time. */
const ANSWER_EVERY_MS = 100;
/** The same for what it writes to its log. */
const TELL_EVERY_MS = 60_000;

/** Knows the beats that this machine has sent, and so those that others send in its name. */
export class OwnBeats {
  /** By what they say: when they were sent. */
  readonly #sent = new Map<string, number>();
  #answeredAt = Number.NEGATIVE_INFINITY;
  #toldAt = Number.NEGATIVE_INFINITY;

  sent(data: Uint8Array, now: number): void {
    const text = textOf(data);
    // The newest are at the end.
    this.#sent.delete(text);
    this.#sent.set(text, now);
    for (const [known, at] of this.#sent)
      if (at < now - OWN_BEATS_KEPT_MS || this.#sent.size > OWN_BEATS_MOST_KEPT) this.#sent.delete(known);
      else break;
  }

  /**
   * A beat with this machine's id has come.
   * @returns what is to be done: with `answers`, a beat is to be sent at once, with `tells`, a warning is to be written
   */
  heard(data: Uint8Array, now: number): { readonly answers: boolean; readonly tells: boolean } {
    if (this.#sent.has(textOf(data))) return { answers: false, tells: false };
    const answers = now - this.#answeredAt >= ANSWER_EVERY_MS;
    const tells = now - this.#toldAt >= TELL_EVERY_MS;
    if (answers) this.#answeredAt = now;
    if (tells) this.#toldAt = now;
    return { answers, tells };
  }
}

function textOf(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("latin1");
}

/** For those who ask for a model while nobody can be asked. */
const RECONNECTED_AFTER_SECS = 1;
/** For those who ask for a model of a machine that is expected back: the official clients ask twice more, and until then it may have started. */
const RETURNED_AFTER_SECS = 5;

/** Others may have the model, and cannot be asked. */
export function notAsked(
  name: string | undefined,
  { isConnected, where, problem }: Pick<FleetConnection, "isConnected" | "where" | "problem">,
): ServiceError {
  const why = isConnected
    ? `has only just reached the fleet's NATS server at ${where}, so others may have it: try again in a few seconds`
    : `cannot ask the others, since the fleet's NATS server at ${where} ${natsTrouble(problem)}: ${isRefused(problem) ? "correct them" : "start it, or try again when it is back"}`;
  return unreachable(`This machine does not have ${model(name)}, and ${why}.`, RECONNECTED_AFTER_SECS);
}

/** The machine that has the model is expected back. */
export function notBack(name: string | undefined, machine: string): ServiceError {
  return unreachable(
    `The machine ${machine}, which has ${model(name)}, is starting or stopping, or has just left the fleet: try again in a few seconds.`,
    RETURNED_AFTER_SECS,
  );
}

function model(name: string | undefined): string {
  return name ? `the model "${name}"` : "a model";
}

function unreachable(message: string, retryAfterSecs: number): ServiceError {
  return new ServiceError("fleet_unreachable", message, { param: "model", retryAfterSecs });
}
