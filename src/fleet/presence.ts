import type { Logger } from "pino";
import {
  type Heartbeat,
  heartbeatSchema,
  type MemberInfo,
  memberInfoSchema,
  findModel,
  MAX_HEARTBEAT_BYTES,
  MAX_MEMBER_INFO_BYTES,
  INITIAL_REVISION,
  type Member,
  PROTOCOL,
} from "./members.ts";
import { atMostEvery } from "../async/timers.ts";
import type { ServiceError } from "../errors/service-error.ts";
import {
  DepartedMachines,
  type KnownMachine,
  KnownMachines,
  unreachableModelError,
  restartingModelError,
} from "./known-machines.ts";
import type { FleetConnection } from "./fleet-connection.ts";
import { startTicks } from "./speed-meter.ts";
import { readJson, writeJson } from "./wire-format.ts";

/** Interval between two heartbeats. */
const HEARTBEAT_INTERVAL_MS = 500;
/** A machine without a heartbeat for this time is gone; up to three heartbeats may be late. */
export const SILENCE_TIMEOUT_MS = 2000;
/** Time after a reconnection until all machines that were there before have sent a heartbeat. */
const RECONNECT_GRACE_MS = 5000;
/** A machine that left within this time is expected to return: its daemon or host may be restarting. */
const RESTART_GRACE_MS = 60_000;
/** Timeout of a request for member info. */
const MEMBER_INFO_TIMEOUT_MS = 2000;
/** Maximum concurrent requests for member info; other machines are asked after their next heartbeat. */
const MAX_PENDING_REQUESTS = 256;
/** Minimum interval between corrections of forged heartbeats, and between warnings about them. */
const CORRECTION_INTERVAL_MS = 100;
const WARNING_INTERVAL_MS = 60_000;
/** Maximum number of incompatible or equally named machines that are warned about. */
const MAX_WARNINGS = 256;

interface PresenceOptions {
  readonly connection: FleetConnection;
  readonly logger: Logger;
  /** Source of this machine's messages. */
  readonly self: Member;
}

/** Sends this machine's heartbeats and keeps track of the other machines. */
export class Presence {
  readonly #options: PresenceOptions;
  readonly #known = new KnownMachines();
  /** Machines whose member info is being requested. */
  readonly #requested = new Set<string>();
  readonly #listeners = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;
  #connectedAt = performance.now();
  #lostAt = performance.now();
  /** Cached list of machines, until something changes. */
  #machines: readonly Member[] | undefined;
  readonly #incompatible = new Set<string>();
  readonly #sameName = new Set<string>();
  readonly #mayCorrect = atMostEvery(CORRECTION_INTERVAL_MS);
  readonly #mayWarnOfForgery = atMostEvery(WARNING_INTERVAL_MS);
  readonly #departed = new DepartedMachines();

  constructor(options: PresenceOptions) {
    this.#options = options;
    const { connection, self } = options;
    connection.listen(connection.subject("presence"), (data) => this.#receive(data));
    connection.listen(connection.subject("card", self.info.id), (_data, _subject, reply) =>
      reply?.(encodeWithinLimit(self.info, Math.min(MAX_MEMBER_INFO_BYTES, connection.maxPayload))),
    );
    connection.onChange(() => {
      if (connection.isConnected) {
        this.#connectedAt = performance.now();
        this.sendHeartbeat();
      } else this.#lostAt = performance.now();
      this.#notifyListeners();
    });
    this.#timer = startTicks(HEARTBEAT_INTERVAL_MS, (wasStalled) => this.#tick(wasStalled));
  }

  get isConnected(): boolean {
    return this.#options.connection.isConnected;
  }

  /** Milliseconds since the last disconnection, also after a reconnection. */
  get lostMs(): number {
    return performance.now() - this.#lostAt;
  }

  /** Other machines that are present; empty without a connection. */
  get machines(): readonly Member[] {
    if (!this.#options.connection.isConnected) return [];
    this.#machines ??= [...this.#known.values()].flatMap(({ info, heartbeat }) =>
      info ? [{ info, heartbeat }] : [],
    );
    return this.#machines;
  }

  /** Machines that left or fell silent within the last hour and have not returned. */
  get departed(): readonly Member[] {
    return this.#departed.recent(performance.now());
  }

  /** Returns a machine that is present. */
  get(id: string): Member | undefined {
    const known = this.#options.connection.isConnected ? this.#known.get(id) : undefined;
    return known?.info && { info: known.info, heartbeat: known.heartbeat };
  }

  /** Returns an error if other machines that may have the model cannot be reached; undefined if all can be. */
  unreachableError(name: string | undefined): ServiceError | undefined {
    if (this.isConnected && performance.now() - this.#connectedAt >= RECONNECT_GRACE_MS) return undefined;
    return unreachableModelError(name, this.#options.connection);
  }

  /** Returns an error if a machine that has the model is expected soon; undefined if no machine has it. */
  missingModelError(name: string | undefined): ServiceError | undefined {
    const unreachable = this.unreachableError(name);
    if (unreachable) return unreachable;
    const pausing = this.machines.filter(({ heartbeat }) => heartbeat.state !== "ready");
    const machine = [...pausing, ...this.#departed.recent(performance.now(), RESTART_GRACE_MS)].find((each) =>
      findModel([each], name),
    );
    return machine && restartingModelError(name, machine.info.name);
  }

  /** Calls back when machines come, go or change. Returns a function that removes the listener. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Sends a heartbeat at once, because something has changed. */
  sendHeartbeat(): void {
    const { connection, self } = this.#options;
    connection.publish(connection.subject("presence"), writeJson(self.heartbeat));
  }

  /** Stops sending heartbeats; the last one should have had the state "gone". */
  close(): void {
    clearInterval(this.#timer);
  }

  #tick(wasStalled: boolean): void {
    this.sendHeartbeat();
    if (wasStalled) return;
    const silent = this.#known.forgetSilent(performance.now() - SILENCE_TIMEOUT_MS);
    for (const each of silent) this.#departedMachine(each, "fleet: a machine is gone");
    if (silent.length > 0) this.#notifyListeners();
  }

  #receive(data: Uint8Array): void {
    const heartbeat = data.length <= MAX_HEARTBEAT_BYTES ? readJson(heartbeatSchema, data) : undefined;
    if (!heartbeat) return;
    if (heartbeat.id === this.#options.self.info.id) return this.#receiveOwn(heartbeat);
    if (heartbeat.protocol !== PROTOCOL) return this.#warnIncompatible(heartbeat);
    if (heartbeat.state === "gone") return this.#forget(heartbeat.id, "fleet: a machine has left");
    this.#known.heard(heartbeat, data.length, performance.now());
    if (this.#known.get(heartbeat.id)?.info?.revision !== heartbeat.revision)
      void this.#requestInfo(heartbeat.id);
    this.#notifyListeners();
    return undefined;
  }

  /** Corrects a message of another process that this machine is gone. */
  #receiveOwn({ state }: Heartbeat): void {
    const { self, logger } = this.#options;
    if (state !== "gone" || self.heartbeat.state === "gone") return;
    if (this.#mayCorrect()) this.sendHeartbeat();
    if (this.#mayWarnOfForgery())
      logger.warn(
        "fleet: another process sends messages with this machine's id: a copy of this machine made while its daemon ran, or another client of the NATS server",
      );
  }

  async #requestInfo(id: string): Promise<void> {
    if (this.#requested.has(id) || this.#requested.size >= MAX_PENDING_REQUESTS) return;
    this.#requested.add(id);
    const { connection, logger } = this.#options;
    try {
      const answer = await connection.request(
        connection.subject("card", id),
        new Uint8Array(),
        MEMBER_INFO_TIMEOUT_MS,
      );
      const info = answer.length <= MAX_MEMBER_INFO_BYTES ? readJson(memberInfoSchema, answer) : undefined;
      if (info?.id !== id) throw new Error("its member info is not valid");
      const known = this.#known.get(id);
      // The machine has left meanwhile.
      if (!known) return;
      const isNew = known.info === undefined;
      this.#known.setInfo(info, answer.length);
      this.#departed.returned(info);
      if (isNew)
        logger.info({ machine: info.name, id, version: info.version }, "fleet: a machine has joined");
      this.#compareNames(info);
      this.#notifyListeners();
    } catch (error) {
      // Its next heartbeat triggers another request.
      logger.debug({ err: error, id }, "fleet: cannot get the member info of a machine");
    } finally {
      this.#requested.delete(id);
    }
  }

  #forget(id: string, text: string): void {
    const known = this.#known.get(id);
    if (!known) return;
    this.#known.forget(id);
    this.#departedMachine(known, text);
    this.#notifyListeners();
  }

  #departedMachine({ info, heartbeat }: KnownMachine, text: string): void {
    if (!info) return;
    // A machine that restarts quickly is back under another id before it is noticed as gone.
    const isBack = [...this.#known.values()].some(
      (each) => each.info?.name === info.name && each.info.revision !== INITIAL_REVISION,
    );
    if (!isBack) this.#departed.add({ info, heartbeat }, performance.now());
    // Without a connection all machines are silent, and the lost connection is logged already.
    if (this.isConnected) this.#options.logger.info({ machine: info.name, id: info.id }, text);
  }

  /** Warns about a machine with this machine's name, by which lists and metrics distinguish machines. */
  #compareNames({ id, name }: MemberInfo): void {
    const { self, logger } = this.#options;
    if (name !== self.info.name || this.#sameName.has(id) || this.#sameName.size >= MAX_WARNINGS) return;
    this.#sameName.add(id);
    logger.warn(
      { machine: name, id },
      `fleet: another machine of the fleet has the same name, ${name}: set fleet.name on one of them`,
    );
  }

  /** Warns once about a machine with an incompatible version. */
  #warnIncompatible({ id, protocol }: Heartbeat): void {
    if (this.#incompatible.has(id) || this.#incompatible.size >= MAX_WARNINGS) return;
    this.#incompatible.add(id);
    this.#options.logger.warn(
      { id, protocol },
      "fleet: a machine runs a version that does not work with this one; update the older of the two",
    );
  }

  #notifyListeners(): void {
    this.#machines = undefined;
    for (const listener of this.#listeners) listener();
  }
}

/** Encodes a member info within a size limit by leaving out the last models. */
function encodeWithinLimit(info: MemberInfo, maxBytes: number): Uint8Array {
  const encoded = writeJson(info);
  if (encoded.length <= maxBytes) return encoded;
  let left = maxBytes - writeJson({ ...info, models: [] }).length;
  const fits = info.models.findIndex((model) => (left -= writeJson(model).length + 1) < 0);
  return writeJson({ ...info, models: info.models.slice(0, fits) });
}
