import { isNatsAuthFailure, describeNatsProblem } from "../api/wire/machines.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { FleetConnection } from "./fleet-connection.ts";
import { type Heartbeat, type MemberInfo, INITIAL_REVISION, type Member } from "./members.ts";

/** More machines than any fleet has. */
const MAX_MACHINES = 4096;
/** Maximum bytes of the stored messages of all machines. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Latest messages of another machine. */
export interface KnownMachine {
  readonly heartbeat: Heartbeat;
  readonly info: MemberInfo | undefined;
  /** Time of the last heartbeat. */
  readonly seenAt: number;
}

interface Entry {
  heartbeat: Heartbeat;
  heartbeatBytes: number;
  info: MemberInfo | undefined;
  infoBytes: number;
  seenAt: number;
}

/**
 * Latest messages of the other machines. Forged messages must not fill the memory: beyond the limits, the machines that
 * have been silent for longest are removed.
 */
export class KnownMachines {
  readonly #byId = new Map<string, Entry>();
  #bytes = 0;

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): KnownMachine | undefined {
    return this.#byId.get(id);
  }

  values(): MapIterator<KnownMachine> {
    return this.#byId.values();
  }

  /** Stores a heartbeat. @param bytes size of the message */
  heard(heartbeat: Heartbeat, bytes: number, now: number): void {
    const entry = this.#byId.get(heartbeat.id) ?? {
      heartbeat,
      heartbeatBytes: 0,
      info: undefined,
      infoBytes: 0,
      seenAt: now,
    };
    this.#bytes += bytes - entry.heartbeatBytes;
    entry.heartbeat = heartbeat;
    entry.heartbeatBytes = bytes;
    entry.seenAt = now;
    this.#byId.set(heartbeat.id, entry);
    this.#evictOldest();
  }

  /** Stores the member info of a known machine; ignores others. @param bytes size of the message */
  setInfo(info: MemberInfo, bytes: number): void {
    const entry = this.#byId.get(info.id);
    if (!entry) return;
    this.#bytes += bytes - entry.infoBytes;
    entry.info = info;
    entry.infoBytes = bytes;
    this.#evictOldest();
  }

  /** Returns true if the machine was known. */
  forget(id: string): boolean {
    const entry = this.#byId.get(id);
    if (entry) this.#bytes -= entry.heartbeatBytes + entry.infoBytes;
    return this.#byId.delete(id);
  }

  /** Removes and returns all machines without a heartbeat since a time. */
  forgetSilent(before: number): readonly KnownMachine[] {
    const silent = [...this.#byId.values()].filter(({ seenAt }) => seenAt < before);
    for (const { heartbeat } of silent) this.forget(heartbeat.id);
    return silent;
  }

  #evictOldest(): void {
    while (this.#byId.size > MAX_MACHINES || this.#bytes > MAX_BYTES) {
      let oldest: Entry | undefined;
      for (const entry of this.#byId.values()) if (!oldest || entry.seenAt < oldest.seenAt) oldest = entry;
      if (!oldest) return;
      this.forget(oldest.heartbeat.id);
    }
  }
}

/** Time that departed machines are remembered. */
const DEPARTED_TTL_MS = 3_600_000;
/** Maximum number of departed machines, each with up to {@link MAX_MEMBER_INFO_BYTES}. */
const MAX_DEPARTED = 64;

/** Machines that have left or fallen silent recently. Times are in milliseconds since any origin. */
export class DepartedMachines {
  readonly #byName = new Map<string, { readonly machine: Member; readonly at: number }>();

  /** Adds a machine that is gone. */
  add(machine: Member, now: number): void {
    const { name, revision } = machine.info;
    if (revision === INITIAL_REVISION) return;
    // Keeps the map in order of departure.
    this.#byName.delete(name);
    this.#byName.set(name, { machine, at: now });
    const [first] = this.#byName.keys();
    if (this.#byName.size > MAX_DEPARTED && first !== undefined) this.#byName.delete(first);
  }

  /** Removes a machine that has described its models again. Matched by name, since the id changes with each start. */
  returned({ name, revision }: Pick<MemberInfo, "name" | "revision">): void {
    if (revision !== INITIAL_REVISION) this.#byName.delete(name);
  }

  /** Returns the machines that left within a time in milliseconds. */
  recent(now: number, millis = DEPARTED_TTL_MS): readonly Member[] {
    for (const [name, { at }] of this.#byName) if (now - at >= DEPARTED_TTL_MS) this.#byName.delete(name);
    return [...this.#byName.values()].filter(({ at }) => now - at < millis).map(({ machine }) => machine);
  }
}

/** Retry-After while other machines cannot be reached. */
const RECONNECT_RETRY_SECS = 1;
/** Retry-After while a machine restarts: official clients retry twice, by when it may have started. */
const RESTART_RETRY_SECS = 5;

/** Returns the error for a model that unreachable machines may have. */
export function unreachableModelError(
  name: string | undefined,
  { isConnected, servers, problem }: Pick<FleetConnection, "isConnected" | "servers" | "problem">,
): ServiceError {
  const why = isConnected
    ? `has only just reached the fleet's NATS server at ${servers}, so others may have it: try again in a few seconds`
    : `cannot ask the others, since the fleet's NATS server at ${servers} ${describeNatsProblem(problem)}: ${isNatsAuthFailure(problem) ? "correct them" : "start it, or try again when it is back"}`;
  return unreachableError(`This machine does not have ${modelText(name)}, and ${why}.`, RECONNECT_RETRY_SECS);
}

/** Returns the error for a model whose machine is expected to return. */
export function restartingModelError(name: string | undefined, machine: string): ServiceError {
  return unreachableError(
    `The machine ${machine}, which has ${modelText(name)}, is starting or stopping, or has just left the fleet: try again in a few seconds.`,
    RESTART_RETRY_SECS,
  );
}

function modelText(name: string | undefined): string {
  return name ? `the model "${name}"` : "a model";
}

function unreachableError(message: string, retryAfterSecs: number): ServiceError {
  return new ServiceError("fleet_unreachable", message, { param: "model", retryAfterSecs });
}
