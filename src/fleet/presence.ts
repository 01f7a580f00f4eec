import type { Logger } from "pino";
import {
  type Heartbeat,
  heartbeatSchema,
  type MemberInfo,
  memberInfoSchema,
  findIn,
  MAX_HEARTBEAT_BYTES,
  MAX_CARD_BYTES,
  NOT_DESCRIBED,
  type CandidateMachine,
  PROTOCOL,
} from "./members.ts";
import type { ServiceError } from "../errors/service-error.ts";
import { Departures, type Known, KnownMachines, notAsked, notBack, OwnBeats } from "./known-machines.ts";
import type { FleetConnection } from "./fleet-connection.ts";
import { OwnPauses } from "./speed-meter.ts";
import { readJson, writeJson } from "./wire-format.ts";

/** Between two beats of a machine. */
const BEAT_MS = 500;
/** A machine whose beats stay away for this long is gone: three of them may be late. */
export const SILENCE_MS = 2000;
/** After so long with a connection, the machines that were there before have come back. */
const RETURN_MS = 5000;
/** A machine that is gone for no longer is expected back: it restarts its daemon, or itself. */
const RESTART_MS = 60_000;
/** How long a machine may take to send its card. */
const CARD_MS = 2000;
/** Machines that are asked for their card at the same time; further ones are after their next beat. */
const MAX_ASKED = 256;
/** Machines of other versions, and of the same name, that are told of. */
const MAX_STRANGERS = 256;

/** Another machine of the fleet. */
export interface Machine {
  readonly card: MemberInfo;
  readonly beat: Heartbeat;
}

interface PresenceOptions {
  readonly connection: FleetConnection;
  readonly logger: Logger;
  /** What this machine tells of itself. */
  readonly self: { readonly card: MemberInfo; readonly beat: Heartbeat };
  /** Milliseconds since any origin. */
  readonly now?: () => number;
}

/** Tells the other machines that this one is there, and knows which of them are. */
export class Presence {
  readonly #options: PresenceOptions;
  readonly #now: () => number;
  readonly #known = new KnownMachines();
  /** Those that are asked for their card now. */
  readonly #asked = new Set<string>();
  readonly #listeners = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;
  #connectedAt: number;
  #lostAt: number;
  /** Of those that are known, until something changes. */
  #machines: readonly Machine[] | undefined;
  readonly #pauses: OwnPauses;
  readonly #strangers = new Set<string>();
  readonly #namesakes = new Set<string>();
  readonly #own = new OwnBeats();
  readonly #departures = new Departures();

  constructor(options: PresenceOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#pauses = new OwnPauses(BEAT_MS, this.#now());
    this.#connectedAt = this.#lostAt = this.#now();
    const { connection, self } = options;
    connection.listen(connection.subject("presence"), (data) => this.#read(data));
    connection.listen(connection.subject("card", self.card.id), (_data, _subject, reply) =>
      reply?.(fittingCard(self.card, Math.min(MAX_CARD_BYTES, connection.maxPayload))),
    );
    connection.onChange(() => {
      if (connection.isConnected) {
        this.#connectedAt = this.#now();
        this.beat();
      } else this.#lostAt = this.#now();
      this.#changed();
    });
    this.#timer = setInterval(() => this.#tick(), BEAT_MS);
    this.#timer.unref();
  }

  get isConnected(): boolean {
    return this.#options.connection.isConnected;
  }

  /** Milliseconds since the connection was lost, also when it is back. */
  get lostMs(): number {
    return this.#now() - this.#lostAt;
  }

  /** Those that are there now, apart from this one; none while there is no connection. */
  get machines(): readonly Machine[] {
    if (!this.#options.connection.isConnected) return [];
    this.#machines ??= [...this.#known.values()].flatMap(({ card, beat }) => (card ? [{ card, beat }] : []));
    return this.#machines;
  }

  /** Those that have left or fallen silent within the last hour, and are not back. */
  get departed(): readonly CandidateMachine[] {
    return this.#departures.lately(this.#now());
  }

  /** One that is there now. */
  get(id: string): Machine | undefined {
    const known = this.#options.connection.isConnected ? this.#known.get(id) : undefined;
    return known?.card && { card: known.card, beat: known.beat };
  }

  /** Whether a machine is there. */
  has(id: string): boolean {
    return this.#options.connection.isConnected && this.#known.get(id)?.card !== undefined;
  }

  /** Why a model that this machine lacks may be on another one although none can be asked; undefined: all can. */
  unreachable(name: string | undefined): ServiceError | undefined {
    if (this.isConnected && this.#now() - this.#connectedAt >= RETURN_MS) return undefined;
    return notAsked(name, this.#options.connection);
  }

  /** Why a model that no machine can answer with may be there soon; undefined: nobody has it. */
  missing(name: string | undefined): ServiceError | undefined {
    const unreachable = this.unreachable(name);
    if (unreachable) return unreachable;
    const pausing = this.machines.filter(({ beat }) => beat.state !== "ready");
    const machine = [...pausing, ...this.#departures.lately(this.#now(), RESTART_MS)].find((each) =>
      findIn([each], name),
    );
    return machine && notBack(name, machine.card.name);
  }

  /** Calls back when machines come, go, or tell something new. Returns a function that ends this. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Sends a beat now: something has changed. */
  beat(): void {
    const { connection, self } = this.#options;
    const data = writeJson(self.beat);
    this.#own.sent(data, this.#now());
    connection.publish(connection.subject("presence"), data);
  }

  /** A machine does not answer: it is gone until its next beat. */
  forget(id: string): void {
    this.#forget(id, "fleet: a machine is gone");
  }

  /** Sends no more beats; the last one should have said that this machine is gone. */
  close(): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    this.beat();
    const now = this.#now();
    if (this.#pauses.isAfterPause(now)) return;
    const silent = this.#known.forgetSilent(now - SILENCE_MS);
    for (const each of silent) this.#left(each, "fleet: a machine is gone");
    if (silent.length > 0) this.#changed();
  }

  #read(data: Uint8Array): void {
    const beat = data.length <= MAX_HEARTBEAT_BYTES ? readJson(heartbeatSchema, data) : undefined;
    if (!beat) return;
    if (beat.id === this.#options.self.card.id) return this.#readOwn(data);
    if (beat.protocol !== PROTOCOL) return this.#meetStranger(beat);
    if (beat.state === "gone") return this.#forget(beat.id, "fleet: a machine has left");
    this.#known.heard(beat, data.length, this.#now());
    if (this.#known.get(beat.id)?.card?.revision !== beat.revision) void this.#askForCard(beat.id);
    this.#changed();
    return undefined;
  }

  /** What others say in this machine's name, such as that it is gone, must not last. */
  #readOwn(data: Uint8Array): void {
    const { answers, tells } = this.#own.heard(data, this.#now());
    if (answers) this.beat();
    if (tells)
      this.#options.logger.warn(
        "fleet: somebody else sends messages in this machine's name: a copy of it that was made while it ran, or whoever may use the NATS server",
      );
  }

  async #askForCard(id: string): Promise<void> {
    if (this.#asked.has(id) || this.#asked.size >= MAX_ASKED) return;
    this.#asked.add(id);
    const { connection, logger } = this.#options;
    try {
      const answer = await connection.ask(connection.subject("card", id), new Uint8Array(), CARD_MS);
      const card = answer.length <= MAX_CARD_BYTES ? readJson(memberInfoSchema, answer) : undefined;
      if (card?.id !== id) throw new Error("its card is not valid");
      const known = this.#known.get(id);
      // It has left meanwhile.
      if (!known) return;
      const isNew = known.card === undefined;
      this.#known.describe(card, answer.length);
      this.#departures.came(card);
      if (isNew)
        logger.info({ machine: card.name, id, version: card.version }, "fleet: a machine has joined");
      this.#compareNames(card);
      this.#changed();
    } catch (error) {
      // Its next beat is another occasion.
      logger.debug({ err: error, id }, "fleet: a machine does not tell what it is");
    } finally {
      this.#asked.delete(id);
    }
  }

  #forget(id: string, text: string): void {
    const known = this.#known.get(id);
    if (!known) return;
    this.#known.forget(id);
    this.#left(known, text);
    this.#changed();
  }

  #left({ card, beat }: Known, text: string): void {
    if (!card) return;
    // One that is started again at once is back, under another id, before it is missed.
    const isBack = [...this.#known.values()].some(
      (each) => each.card?.name === card.name && each.card.revision !== NOT_DESCRIBED,
    );
    if (!isBack) this.#departures.left({ card, beat }, this.#now());
    // Without a connection all are silent, and that has been told already.
    if (this.isConnected) this.#options.logger.info({ machine: card.name, id: card.id }, text);
  }

  /** Lists of machines and their measurements tell them apart by their names. */
  #compareNames({ id, name }: MemberInfo): void {
    const { self, logger } = this.#options;
    if (name !== self.card.name || this.#namesakes.has(id) || this.#namesakes.size >= MAX_STRANGERS) return;
    this.#namesakes.add(id);
    logger.warn(
      { machine: name, id },
      `fleet: another machine of the fleet has the same name, ${name}: set fleet.name on one of them`,
    );
  }

  /** A machine whose version works differently is told of once. */
  #meetStranger({ id, protocol }: Heartbeat): void {
    if (this.#strangers.has(id) || this.#strangers.size >= MAX_STRANGERS) return;
    this.#strangers.add(id);
    this.#options.logger.warn(
      { id, protocol },
      "fleet: a machine runs a version that does not work with this one; update the older of the two",
    );
  }

  #changed(): void {
    this.#machines = undefined;
    for (const listener of this.#listeners) listener();
  }
}

/** A card that others take: the last models are left out when there are too many. */
function fittingCard(card: MemberInfo, maxBytes: number): Uint8Array {
  const whole = writeJson(card);
  if (whole.length <= maxBytes) return whole;
  let left = maxBytes - writeJson({ ...card, models: [] }).length;
  const fits = card.models.findIndex((model) => (left -= writeJson(model).length + 1) < 0);
  return writeJson({ ...card, models: card.models.slice(0, fits) });
}
