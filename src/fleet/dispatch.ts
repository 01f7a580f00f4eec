import { ServiceError } from "../errors/service-error.ts";
import type { Models } from "../models/models.ts";
import { isMachineLost, mayWorkOnAnother, notContinuedError, clientError } from "./failover.ts";
import {
  type Heartbeat,
  type MemberModel,
  findModel,
  rankCandidates,
  isSameModel,
  type ModelKey,
  type Candidate,
  candidatesFor,
} from "./members.ts";
import { type PrefixHash, PrefixAffinity } from "./prefix-affinity.ts";
import type { Presence } from "./presence.ts";
import type { SelfDescription } from "./self-description.ts";
import { RequestQueue } from "./wait-queue.ts";

/** Interval of retries of waiting requests without any change. */
const RETRY_INTERVAL_MS = 250;
/** Minimum interval of retries because of changes, which many machines may report. */
const CHANGE_INTERVAL_MS = 20;

/** More slots than any machine has. */
const ALL_SLOTS = 1024;

/** Model that other machines have. */
export interface FleetModel extends ModelKey {
  /** Alias shown to the client. */
  readonly alias: string;
  /** Adapter chosen by the request's model name. */
  readonly adapter: string | undefined;
}

export interface DispatchOptions {
  readonly self: Pick<SelfDescription, "info" | "heartbeat" | "model">;
  readonly presence: Pick<
    Presence,
    "isConnected" | "lostMs" | "machines" | "get" | "onChange" | "unreachableError" | "missingModelError"
  >;
  /** Models of this machine only. */
  readonly models: Pick<Models, "get" | "defaultAlias">;
  /** Maximum waiting requests of one model. */
  readonly queueSize: number;
  /** Called with the change in the number of waiting requests. */
  readonly onWaiting: (change: 1 | -1) => void;
}

export interface BeginOptions {
  readonly prefixHashes: readonly PrefixHash[];
  readonly signal: AbortSignal;
  /** False if the request needs no free slot. */
  readonly needsSlot?: boolean;
  /** True for a further choice of an admitted request, which may wait however many others do. */
  readonly isFurther?: boolean;
  /**
   * Set for an answer that has begun: it continues only on equal engines, and precedes waiting requests. `hasOutput` is
   * true if the client has received a part of it.
   */
  readonly continues?: { readonly engine: string; readonly hasOutput: boolean } | undefined;
}

/** Chooses the machine of each request. */
export class Dispatch {
  readonly #options: DispatchOptions;
  readonly #prefixes = new PrefixAffinity();
  readonly #queues = new Map<string, RequestQueue>();
  /** Open requests that the last heartbeat of a machine does not include; of this machine those about to begin. */
  readonly #openRequests = new Map<
    string,
    { heartbeat: Heartbeat | undefined; readonly byAlias: Map<string, number> }
  >();
  readonly #timer: NodeJS.Timeout;
  readonly #changeTimer: NodeJS.Timeout;
  #hasChanged = false;

  constructor(options: DispatchOptions) {
    this.#options = options;
    options.presence.onChange(() => {
      this.#hasChanged = true;
    });
    this.#changeTimer = setInterval(() => {
      if (this.#hasChanged) this.wake();
    }, CHANGE_INTERVAL_MS).unref();
    this.#timer = setInterval(() => this.wake(), RETRY_INTERVAL_MS).unref();
  }

  /** Number of requests that wait for a machine. */
  get waiting(): number {
    return [...this.#queues.values()].reduce((sum, { length }) => sum + length, 0);
  }

  /** Returns true if requests wait for a model, given by its alias on this machine. */
  hasWaiting(alias: string): boolean {
    const model = this.#options.self.model(alias);
    return model !== undefined && (this.#queues.get(keyString(model))?.length ?? 0) > 0;
  }

  /** Returns true if this machine has a model. */
  isLocal(model: ModelKey): boolean {
    return this.#options.self.info.models.some((each) => isSameModel(each, model));
  }

  /** Returns an error if a machine that has the model is expected soon; undefined if no machine has it. */
  missingModelError(name: string | undefined): ServiceError | undefined {
    return this.#options.presence.missingModelError(name);
  }

  /** Retries waiting requests, because a slot may be free. */
  wake(): void {
    this.#hasChanged = false;
    for (const [key, line] of this.#queues) {
      if (line.isUsed) line.wake();
      else this.#queues.delete(key);
    }
  }

  close(): void {
    clearInterval(this.#timer);
    clearInterval(this.#changeTimer);
  }

  /**
   * Finds the model of a name; undefined if no other machine has it, so that this machine handles the request alone.
   */
  async find(name: string | undefined): Promise<FleetModel | undefined> {
    const { self, presence, models } = this.#options;
    const others = presence.machines;
    if (others.length === 0) return undefined;
    const requestedName = name || models.defaultAlias;
    const exact = requestedName === undefined ? undefined : self.model(requestedName);
    const found = exact ? undefined : findModel(others, requestedName);
    // The local lookup of a remote model's alias is skipped, since it takes milliseconds of disk access.
    const isRemoteAlias = found !== undefined && found.alias === requestedName && found.adapter === undefined;
    const localModel =
      exact ??
      (requestedName === undefined || isRemoteAlias ? undefined : await this.#localModel(requestedName));
    if (localModel === "busy") return undefined;
    const isShared = (model: MemberModel): boolean =>
      others.some(({ info }) => info.models.some((each) => isSameModel(each, model)));
    if (localModel)
      return isShared(localModel)
        ? { ...keyOf(localModel), alias: localModel.alias, adapter: undefined }
        : undefined;
    return found && { ...keyOf(found.model), alias: found.alias, adapter: found.adapter };
  }

  /**
   * Begins a request on the best machine that can begin at once, waiting until there is one.
   * @param work begins on a machine; throws `overloaded` if it cannot begin at once
   * @throws ServiceError of the request, or of the machines if none can run it
   */
  async begin<Result extends object>(
    model: FleetModel,
    work: (candidate: Candidate) => Promise<Result>,
    options: BeginOptions,
  ): Promise<{ readonly candidate: Candidate; readonly result: Result }> {
    const { signal, isFurther = false, continues } = options;
    const budget = new RetryBudget(continues, this.#options.presence);
    const attempt = async () => await this.#attempt(model, work, options, budget);
    return await this.#queue(model).run(attempt, signal, {
      isFirst: continues !== undefined,
      isUnlimited: isFurther,
    });
  }

  /** Records the end of a request that was begun on another machine. */
  ended(candidate: Candidate): void {
    this.#countOpen(candidate, -1);
    this.wake();
  }

  async #attempt<Result extends object>(
    model: FleetModel,
    work: (candidate: Candidate) => Promise<Result>,
    { prefixHashes, signal, needsSlot = true, continues }: BeginOptions,
    budget: RetryBudget,
  ): Promise<{ candidate: Candidate; result: Result } | undefined> {
    const { presence } = this.#options;
    const candidates = this.#candidates(model).filter(
      ({ engine }) => !continues || engine === continues.engine,
    );
    const free = candidates.filter(({ isFree }) => isFree || !needsSlot);
    let mayWait = free.length < candidates.length;
    let failure: unknown;
    for (const candidate of rankCandidates(free, this.#prefixes.known(prefixHashes))) {
      signal.throwIfAborted();
      // Other requests may have taken its slots during the awaited attempts.
      if (needsSlot && !this.#isFree(candidate)) {
        mayWait = true;
        continue;
      }
      this.#countOpen(candidate, 1);
      try {
        const result = await work(candidate);
        if (candidate.isLocal) this.#countOpen(candidate, -1);
        this.#prefixes.record(prefixHashes, candidate.machine);
        return { candidate, result };
      } catch (error) {
        const isBusy = error instanceof ServiceError && error.code === "overloaded";
        // A machine that refuses counts as full until its next heartbeat.
        this.#countOpen(candidate, isBusy && !candidate.isLocal ? ALL_SLOTS : -1);
        signal.throwIfAborted();
        if (!mayWorkOnAnother(error)) throw error;
        if (isMachineLost(error)) budget.hasLostMachine = true;
        if (isBusy) mayWait = true;
        else failure ??= error;
      }
    }
    const unreachable = candidates.length === 0 ? presence.unreachableError(model.alias) : undefined;
    if (mayWait || budget.isRemaining(unreachable !== undefined)) return undefined;
    if (unreachable) throw unreachable;
    if (budget.hasLostMachine) throw notContinuedError(failure);
    throw clientError(failure ?? this.missingModelError(model.alias) ?? modelGoneError(model.alias));
  }

  #candidates(key: ModelKey): Candidate[] {
    const { self, presence } = this.#options;
    for (const [id, { heartbeat }] of this.#openRequests) {
      // The new heartbeat includes these requests.
      if (heartbeat !== presence.get(id)?.heartbeat) this.#openRequests.delete(id);
    }
    return candidatesFor(key, [self, ...presence.machines], self.info.id, (machine, alias) =>
      this.#openRequestsAt(machine, alias),
    );
  }

  #isFree({ machine, name, unusedSlots }: Candidate): boolean {
    return this.#openRequestsAt(machine, name) < unusedSlots;
  }

  #openRequestsAt(machine: string, alias: string): number {
    return this.#openRequests.get(machine)?.byAlias.get(alias) ?? 0;
  }

  #countOpen({ machine, name }: Candidate, change: number): void {
    const heartbeat = this.#options.presence.get(machine)?.heartbeat;
    const known = this.#openRequests.get(machine);
    const opened =
      known?.heartbeat === heartbeat && known ? known : { heartbeat, byAlias: new Map<string, number>() };
    this.#openRequests.set(machine, opened);
    opened.byAlias.set(name, (opened.byAlias.get(name) ?? 0) + change);
  }

  #queue(key: ModelKey): RequestQueue {
    const text = keyString(key);
    const { queueSize, onWaiting } = this.#options;
    const line = this.#queues.get(text) ?? new RequestQueue(queueSize, onWaiting);
    this.#queues.set(text, line);
    return line;
  }

  /** Finds this machine's model by another name; "busy" while it is being downloaded. */
  async #localModel(name: string): Promise<MemberModel | "busy" | undefined> {
    const { models, self } = this.#options;
    try {
      const { alias } = await models.get(name);
      // Other machines do not know a model that is not described yet.
      return self.model(alias) ?? "busy";
    } catch (error) {
      return error instanceof ServiceError && error.code === "model_not_found" ? undefined : "busy";
    }
  }
}

function keyOf({ files, settings }: ModelKey): ModelKey {
  return { files, settings };
}

function keyString({ files, settings }: ModelKey): string {
  return `${files} ${settings}`;
}

function modelGoneError(alias: string): ServiceError {
  return new ServiceError("model_not_found", `No machine of the fleet has the model "${alias}" any more.`);
}

/** Time that a request which lost its machine waits for another one. */
const RETRY_BUDGET_MS = 30_000;
/** Time that a request without output waits for the NATS server: its client can also retry. */
const UNREACHABLE_BUDGET_MS = 3000;

/** Limits how long a request waits for a machine. */
class RetryBudget {
  readonly #continues: BeginOptions["continues"];
  readonly #presence: DispatchOptions["presence"];
  readonly #since = performance.now();
  /** True if the machine of the request was lost: it then waits for another one, as an answer does. */
  hasLostMachine: boolean;

  constructor(continues: BeginOptions["continues"], presence: DispatchOptions["presence"]) {
    this.#continues = continues;
    this.#presence = presence;
    this.hasLostMachine = continues !== undefined;
  }

  /** @param isUnreachable true if machines that may have the model cannot be reached */
  isRemaining(isUnreachable: boolean): boolean {
    const waitedMs = performance.now() - this.#since;
    if (isUnreachable && !this.#continues?.hasOutput) {
      const { isConnected, lostMs } = this.#presence;
      // Measured from the disconnection, too: earlier requests in the queue have waited for the same.
      if (Math.min(waitedMs, lostMs) < UNREACHABLE_BUDGET_MS) return true;
      if (!isConnected) return false;
    }
    return this.hasLostMachine && waitedMs < RETRY_BUDGET_MS;
  }
}
