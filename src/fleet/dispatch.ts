import { ServiceError } from "../errors/service-error.ts";
import type { Models } from "../models/models.ts";
import { isLost, mayWorkOnAnother, notContinued, toClient } from "./failover.ts";
import {
  type Heartbeat,
  type MemberModel,
  findIn,
  inOrder,
  isSame,
  type ModelKey,
  type Candidate,
  type CandidateMachine,
  candidatesFor,
} from "./members.ts";
import { type PrefixHash, PromptMemory } from "./prefix-affinity.ts";
import type { Presence } from "./presence.ts";
import type { SelfDescription } from "./self-description.ts";
import { WaitingLine } from "./wait-queue.ts";

/** How often those who wait try again when nothing is heard. */
const RETRY_MS = 250;
/** How often those who wait hear of what many machines have told. */
const NEWS_MS = 20;

/** More than any machine has. */
const ALL_SLOTS = 1024;

/** A model that other machines have too, or alone. */
export interface FoundModel extends ModelKey {
  /** Its name for the client. */
  readonly alias: string;
  /** The adapter that the request's name chose. */
  readonly adapter: string | undefined;
}

export interface DispatchOptions {
  readonly self: Pick<SelfDescription, "card" | "beat" | "model">;
  readonly presence: Pick<
    Presence,
    "isConnected" | "lostMs" | "machines" | "get" | "onChange" | "unreachable" | "missing"
  >;
  /** Of this machine alone. */
  readonly models: Pick<Models, "get" | "defaultAlias">;
  /** Requests for one model that may wait. */
  readonly queueSize: number;
  /** One more or one fewer request waits. */
  readonly onWaiting: (change: 1 | -1) => void;
}

export interface BeginOptions {
  readonly marks: readonly PrefixHash[];
  readonly signal: AbortSignal;
  /** False: it runs beside what has a slot. */
  readonly needsSlot?: boolean;
  /** It belongs to a request that was admitted: it may wait however many do. */
  readonly isFurther?: boolean;
  /** It continues an answer that has begun: on equal engines only, before all that wait. */
  readonly continues?: { readonly engine: string; readonly hasTold: boolean } | undefined;
}

/** Decides which machine works on a request. */
export class Dispatch {
  readonly #options: DispatchOptions;
  readonly #memory = new PromptMemory();
  readonly #lines = new Map<string, WaitingLine>();
  readonly #opened = new Map<
    string,
    { beat: Heartbeat | undefined; readonly byAlias: Map<string, number> }
  >();
  /** By model: requests that are about to begin on this machine. */
  readonly #beginning = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;
  readonly #newsTimer: NodeJS.Timeout;
  #hasNews = false;

  constructor(options: DispatchOptions) {
    this.#options = options;
    options.presence.onChange(() => {
      this.#hasNews = true;
    });
    this.#newsTimer = setInterval(() => {
      if (this.#hasNews) this.wake();
    }, NEWS_MS);
    this.#newsTimer.unref();
    this.#timer = setInterval(() => this.wake(), RETRY_MS);
    this.#timer.unref();
  }

  get selfId(): string {
    return this.#options.self.card.id;
  }

  /** Requests that wait for a machine. */
  get waiting(): number {
    return [...this.#lines.values()].reduce((sum, { length }) => sum + length, 0);
  }

  /** Whether requests wait for a model, by its name on this machine. */
  isAwaited(alias: string): boolean {
    const model = this.#options.self.model(alias);
    return model !== undefined && (this.#lines.get(keyText(model))?.length ?? 0) > 0;
  }

  /** Whether this machine has a model itself. */
  isHere(model: ModelKey): boolean {
    return this.#options.self.card.models.some((each) => isSame(each, model));
  }

  /** Why a model that no machine can answer with may be there soon; undefined: nobody has it. */
  missing(name: string | undefined): ServiceError | undefined {
    return this.#options.presence.missing(name);
  }

  /** A slot may be free, here or elsewhere. */
  wake(): void {
    this.#hasNews = false;
    for (const [key, line] of this.#lines) {
      if (line.isUsed) line.wake();
      else this.#lines.delete(key);
    }
  }

  close(): void {
    clearInterval(this.#timer);
    clearInterval(this.#newsTimer);
  }

  /** The model of a name; undefined if no other machine has it, so that this one decides alone. */
  async find(name: string | undefined): Promise<FoundModel | undefined> {
    const { self, presence, models } = this.#options;
    const others = presence.machines;
    if (others.length === 0) return undefined;
    const wanted = name || models.defaultAlias;
    const exact = wanted === undefined ? undefined : self.model(wanted);
    const found = exact ? undefined : findIn(others, wanted);
    // A name of another machine's model is not looked for on this disk, which takes milliseconds.
    const isElsewhere = found !== undefined && found.alias === wanted && found.adapter === undefined;
    const own = exact ?? (wanted === undefined || isElsewhere ? undefined : await this.#ownModel(wanted));
    if (own === "busy") return undefined;
    const isShared = (model: MemberModel): boolean =>
      others.some(({ card }) => card.models.some((each) => isSame(each, model)));
    if (own) return isShared(own) ? { ...keyOf(own), alias: own.alias, adapter: undefined } : undefined;
    return found && { ...keyOf(found.model), alias: found.alias, adapter: found.adapter };
  }

  /**
   * Has a machine begin with a request: the best one that can begin at once, as soon as there is one.
   * @param work throws `overloaded` if the machine cannot begin at once
   * @throws ServiceError of the request, or of the machines when none can work on it
   */
  async begin<Result extends object>(
    model: FoundModel,
    work: (place: Candidate) => Promise<Result>,
    options: BeginOptions,
  ): Promise<{ readonly place: Candidate; readonly result: Result }> {
    const { signal, isFurther = false, continues } = options;
    const { presence } = this.#options;
    const patience = new Patience(continues, presence);
    const attempt = async () => await this.#attempt(model, work, options, patience);
    return await this.#line(model).run(attempt, signal, {
      isFirst: continues !== undefined,
      isUnlimited: isFurther,
    });
  }

  /** A request that was begun on another machine is over. */
  ended({ machine, name }: Candidate): void {
    this.#count(machine, name, -1);
    this.wake();
  }

  async #attempt<Result extends object>(
    model: FoundModel,
    work: (place: Candidate) => Promise<Result>,
    { marks, signal, needsSlot = true, continues }: BeginOptions,
    patience: Patience,
  ): Promise<{ place: Candidate; result: Result } | undefined> {
    const { presence } = this.#options;
    const places = this.#places(model).filter(({ engine }) => !continues || engine === continues.engine);
    const free = places.filter(({ isFree }) => isFree || !needsSlot);
    let mayWait = free.length < places.length;
    let failure: unknown;
    for (const place of inOrder(free, this.#memory.known(marks))) {
      signal.throwIfAborted();
      // Other requests may have taken its slots while this one asked others.
      if (needsSlot && !this.#isFree(place)) {
        mayWait = true;
        continue;
      }
      if (place.isLocal) this.#begin(place.name, 1);
      else this.#count(place.machine, place.name, 1);
      try {
        const result = await work(place).finally(() => {
          if (place.isLocal) this.#begin(place.name, -1);
        });
        this.#memory.remember(marks, place.machine);
        return { place, result };
      } catch (error) {
        const isBusy = error instanceof ServiceError && error.code === "overloaded";
        // One that refuses counts as full until its next beat.
        if (!place.isLocal) this.#count(place.machine, place.name, isBusy ? ALL_SLOTS : -1);
        signal.throwIfAborted();
        if (!mayWorkOnAnother(error)) throw error;
        if (isLost(error)) patience.hasLost = true;
        if (isBusy) mayWait = true;
        else failure ??= error;
      }
    }
    const unreachable = places.length === 0 ? presence.unreachable(model.alias) : undefined;
    if (mayWait || patience.isLeft(unreachable !== undefined)) return undefined;
    if (unreachable) throw unreachable;
    if (patience.hasLost) throw notContinued(failure);
    throw toClient(failure ?? this.missing(model.alias) ?? gone(model.alias));
  }

  #places(key: ModelKey): Candidate[] {
    const { self, presence } = this.#options;
    const machines: CandidateMachine[] = [self, ...presence.machines];
    for (const [id, { beat }] of this.#opened) {
      // The machine has counted for itself.
      if (beat !== presence.get(id)?.beat) this.#opened.delete(id);
    }
    return candidatesFor(key, machines, self.card.id, (machine, alias) => this.#openedAt(machine, alias));
  }

  #isFree({ machine, name, unused }: Candidate): boolean {
    return this.#openedAt(machine, name) < unused;
  }

  /** What a machine has not told of yet; of this one, what is about to begin. */
  #openedAt(machine: string, alias: string): number {
    if (machine === this.selfId) return this.#beginning.get(alias) ?? 0;
    return this.#opened.get(machine)?.byAlias.get(alias) ?? 0;
  }

  #begin(alias: string, change: 1 | -1): void {
    this.#beginning.set(alias, (this.#beginning.get(alias) ?? 0) + change);
  }

  #count(machine: string, alias: string, change: number): void {
    const beat = this.#options.presence.get(machine)?.beat;
    const known = this.#opened.get(machine);
    const opened = known?.beat === beat && known ? known : { beat, byAlias: new Map<string, number>() };
    this.#opened.set(machine, opened);
    opened.byAlias.set(alias, (opened.byAlias.get(alias) ?? 0) + change);
  }

  #line(key: ModelKey): WaitingLine {
    const text = keyText(key);
    const { queueSize, onWaiting } = this.#options;
    const line = this.#lines.get(text) ?? new WaitingLine(queueSize, onWaiting);
    this.#lines.set(text, line);
    return line;
  }

  /** The model of this machine with another name; "busy" while it is being downloaded. */
  async #ownModel(name: string): Promise<MemberModel | "busy" | undefined> {
    const { models, self } = this.#options;
    try {
      const { alias } = await models.get(name);
      // A model that is not described yet is of no use to others.
      return self.model(alias) ?? "busy";
    } catch (error) {
      return error instanceof ServiceError && error.code === "model_not_found" ? undefined : "busy";
    }
  }
}

function keyOf({ files, settings }: ModelKey): ModelKey {
  return { files, settings };
}

function keyText({ files, settings }: ModelKey): string {
  return `${files} ${settings}`;
}

function gone(alias: string): ServiceError {
  return new ServiceError("model_not_found", `No machine of the fleet has the model "${alias}" any more.`);
}

/** How long what was lost with its machine waits for another one. */
const PATIENCE_MS = 30_000;
/** How long what has told its client nothing waits for the NATS server: the client may rather ask elsewhere, or again. */
const CUT_OFF_MS = 3000;

/** How long a request that no machine can begin with waits for one. */
class Patience {
  readonly #continues: { readonly hasTold: boolean } | undefined;
  readonly #presence: Pick<Presence, "isConnected" | "lostMs">;
  readonly #since = performance.now();
  /** A request whose machine is gone waits for another one, as an answer does. */
  hasLost: boolean;

  /** @param continues it is an answer that has begun; whether it has told its client anything */
  constructor(
    continues: { readonly hasTold: boolean } | undefined,
    presence: Pick<Presence, "isConnected" | "lostMs">,
  ) {
    this.#continues = continues;
    this.#presence = presence;
    this.hasLost = continues !== undefined;
  }

  /** @param isCutOff machines that may have the model cannot be asked */
  isLeft(isCutOff: boolean): boolean {
    const waitedMs = performance.now() - this.#since;
    if (isCutOff && !this.#continues?.hasTold) {
      const { isConnected, lostMs } = this.#presence;
      // Not since it was tried: those before it in the line have been waiting for the same.
      if (Math.min(waitedMs, lostMs) < CUT_OFF_MS) return true;
      if (!isConnected) return false;
    }
    return this.hasLost && waitedMs < PATIENCE_MS;
  }
}
