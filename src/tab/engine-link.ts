import type { EngineInfo } from "../engine/protocol/engine-spec.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { AnswerMessage, FetchMessage, StartMessage, TabGpu, WorkerMessage } from "./worker-messages.ts";

/** What a running engine says of itself. */
interface EngineReady {
  readonly alias: string;
  readonly info: EngineInfo;
  readonly gpu: TabGpu;
}

/** What a tab does with what comes from its engine. */
export interface LinkEvents {
  readonly onAnswer: (message: AnswerMessage) => void;
  readonly onProgress: (progress: number) => void;
  /** Requests in flight are lost, but the engine will be there again. */
  readonly onLost: (error: Error) => void;
  /** The engine has ended for good. */
  readonly onEnd: (error: Error) => void;
}

/** The way from a tab to an engine, wherever it runs. */
export interface EngineLink {
  /** Rejects when the engine cannot be started. */
  readonly ready: Promise<EngineReady>;
  send(message: FetchMessage): void;
  end(error: Error): void;
}

/** An engine in a worker of this tab. */
export class WorkerLink implements EngineLink {
  readonly #worker: Worker;
  readonly #ready = Promise.withResolvers<EngineReady>();
  readonly #onEnd: (error: Error) => void;

  constructor(script: string | URL, start: StartMessage, events: Omit<LinkEvents, "onLost">) {
    this.#onEnd = events.onEnd;
    this.#worker = new Worker(script, { type: "module" });
    this.#worker.addEventListener("error", ({ message }) =>
      this.end(
        new ServiceError(
          "engine_crashed",
          `The engine's worker failed: ${message || "it cannot be loaded"}.`,
        ),
      ),
    );
    this.#worker.addEventListener("message", ({ data }: MessageEvent<WorkerMessage | AnswerMessage>) => {
      if (data.type === "progress") events.onProgress(data.progress);
      else if (data.type === "ready") this.#ready.resolve(data);
      else if (data.type === "refused") this.end(new ServiceError(data.code, data.message));
      else events.onAnswer(data);
    });
    this.#worker.postMessage(start, []);
  }

  get ready(): Promise<EngineReady> {
    return this.#ready.promise;
  }

  send(message: FetchMessage): void {
    this.#worker.postMessage(message, []);
  }

  end(error: Error): void {
    this.#worker.terminate();
    this.#ready.reject(error);
    this.#onEnd(error);
  }
}

/** What the tabs that share an engine say to all. */
type SharedMessage =
  /** A tab looks for the engine. */
  | { readonly type: "join"; readonly tab: string }
  /** A tab begins to start the engine: another one has ended with its requests. */
  | { readonly type: "starting"; readonly leader: string }
  | { readonly type: "progress"; readonly progress: number }
  | { readonly type: "running"; readonly leader: string; readonly ready: EngineReady }
  | { readonly type: "ask"; readonly leader: string; readonly tab: string; readonly message: FetchMessage };

/**
 * One engine for all tabs of an origin. The tab that holds a lock runs it, and passes on what the others ask. When that
 * tab goes, another one gets the lock and starts the engine again; requests in flight fail.
 */
export class SharedLink implements EngineLink {
  readonly #key: string;
  readonly #tab = crypto.randomUUID();
  readonly #events: LinkEvents;
  readonly #all: BroadcastChannel;
  readonly #answers: BroadcastChannel;
  readonly #ready = Promise.withResolvers<EngineReady>();
  readonly #over = Promise.withResolvers<void>();
  readonly #closing = new AbortController();
  /** Messages for an engine that does not run yet. */
  readonly #waiting: FetchMessage[] = [];
  #isSeen = false;
  #leader: string | undefined;
  #own: LeadingEngine | undefined;

  /** @param start is used if this tab runs the engine */
  constructor(key: string, script: string | URL, start: StartMessage, events: LinkEvents) {
    this.#key = `daybreak engine ${key}`;
    this.#events = events;
    this.#all = new BroadcastChannel(this.#key);
    this.#answers = new BroadcastChannel(`${this.#key} ${this.#tab}`);
    this.#all.addEventListener("message", ({ data }: MessageEvent<SharedMessage>) => this.#receive(data));
    this.#answers.addEventListener("message", ({ data }: MessageEvent<AnswerMessage>) =>
      events.onAnswer(data),
    );
    // Others see by this lock that the tab lives: it asks nothing before it has it.
    void this.#hold(`${this.#key} ${this.#tab}`, () => {
      this.#isSeen = true;
      this.#tell({ type: "join", tab: this.#tab });
    });
    void this.#hold(this.#key, () => this.#lead(script, start));
  }

  get ready(): Promise<EngineReady> {
    return this.#ready.promise;
  }

  send(message: FetchMessage): void {
    if (this.#leader === undefined) this.#waiting.push(message);
    else if (this.#own) this.#own.ask(this.#tab, message);
    else this.#tell({ type: "ask", leader: this.#leader, tab: this.#tab, message });
  }

  end(error: Error): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(error);
    this.#own?.link.end(error);
    this.#all.close();
    this.#answers.close();
    this.#over.resolve();
    this.#ready.reject(error);
    this.#events.onEnd(error);
  }

  /** Holds a lock, once it is free, until this link ends. */
  async #hold(name: string, then: () => void): Promise<void> {
    try {
      await navigator.locks.request(name, { signal: this.#closing.signal }, async () => {
        then();
        await this.#over.promise;
      });
    } catch {
      // Closed before its turn came.
    }
  }

  #tell(message: SharedMessage): void {
    broadcast(this.#all, message);
  }

  #lead(script: string | URL, start: StartMessage): void {
    const leader = crypto.randomUUID();
    this.#begin();
    this.#tell({ type: "starting", leader });
    this.#own = new LeadingEngine(
      this.#key,
      (answers) =>
        new WorkerLink(script, start, {
          onAnswer: answers,
          onProgress: (progress) => {
            this.#events.onProgress(progress);
            this.#tell({ type: "progress", progress });
          },
          onEnd: (error) => this.end(error),
        }),
      { tab: this.#tab, onAnswer: this.#events.onAnswer },
    );
    void this.#announce(leader, this.#own.link);
  }

  /** Says that the engine runs, once it does. */
  async #announce(leader: string, link: WorkerLink): Promise<void> {
    try {
      const ready = await link.ready;
      this.#run(leader, ready);
      this.#tell({ type: "running", leader, ready });
    } catch {
      // onEnd has said why.
    }
  }

  /** Ends the requests of a tab when it is gone. */
  async #watch(tab: string): Promise<void> {
    try {
      await navigator.locks.request(`${this.#key} ${tab}`, { signal: this.#closing.signal }, () => undefined);
      this.#own?.forget(tab);
    } catch {
      // This tab went first.
    }
  }

  #receive(message: SharedMessage): void {
    switch (message.type) {
      case "join":
        if (this.#own && this.#leader !== undefined) void this.#announce(this.#leader, this.#own.link);
        return;
      case "starting":
        this.#begin();
        return;
      case "progress":
        if (this.#leader === undefined) this.#events.onProgress(message.progress);
        return;
      case "running":
        if (!this.#own && this.#isSeen) this.#run(message.leader, message.ready);
        return;
      case "ask":
        if (!this.#own || message.leader !== this.#leader) return;
        if (!this.#own.knows(message.tab)) void this.#watch(message.tab);
        this.#own.ask(message.tab, message.message);
    }
  }

  /** Nobody runs the engine yet, or no longer. */
  #begin(): void {
    if (this.#leader === undefined) return;
    this.#leader = undefined;
    this.#events.onLost(
      new ServiceError(
        "engine_crashed",
        "The tab that ran the engine was closed. Another one starts it again: repeat the request.",
      ),
    );
  }

  #run(leader: string, ready: EngineReady): void {
    if (this.#leader === leader) return;
    this.#begin();
    this.#leader = leader;
    this.#ready.resolve(ready);
    for (const message of this.#waiting.splice(0)) this.send(message);
  }
}

interface Exchange {
  readonly tab: string;
  /** The number that the tab gave to its request. */
  readonly id: number;
}

/** The engine that this tab runs for all: numbers of requests are its own, since tabs choose the same ones. */
class LeadingEngine {
  readonly link: WorkerLink;
  readonly #key: string;
  readonly #home: { readonly tab: string; readonly onAnswer: (message: AnswerMessage) => void };
  readonly #exchanges = new Map<number, Exchange>();
  readonly #channels = new Map<string, BroadcastChannel>();
  #lastId = 0;

  constructor(
    key: string,
    start: (onAnswer: (message: AnswerMessage) => void) => WorkerLink,
    home: { readonly tab: string; readonly onAnswer: (message: AnswerMessage) => void },
  ) {
    this.#key = key;
    this.#home = home;
    this.link = start((message) => this.#answer(message));
  }

  /** Whether a tab has asked before. */
  knows(tab: string): boolean {
    return this.#channels.has(tab);
  }

  /** Passes on what a tab asks. */
  ask(tab: string, message: FetchMessage): void {
    if (tab !== this.#home.tab && !this.knows(tab)) {
      this.#channels.set(tab, new BroadcastChannel(`${this.#key} ${tab}`));
    }
    if (message.type === "request") {
      const id = ++this.#lastId;
      this.#exchanges.set(id, { tab, id: message.id });
      this.link.send({ ...message, id });
      return;
    }
    const own = [...this.#exchanges].find(([, each]) => each.tab === tab && each.id === message.id);
    if (!own) return;
    const [id] = own;
    if (message.type === "abort") this.#exchanges.delete(id);
    this.link.send({ ...message, id });
  }

  /** A tab is gone. */
  forget(tab: string): void {
    const exchanges = [...this.#exchanges.values()].filter((exchange) => exchange.tab === tab);
    for (const { id } of exchanges) this.ask(tab, { type: "abort", id });
    this.#channels.get(tab)?.close();
    this.#channels.delete(tab);
  }

  #answer(message: AnswerMessage): void {
    const exchange = this.#exchanges.get(message.id);
    if (!exchange) return;
    if (message.type === "end" || message.type === "failed") this.#exchanges.delete(message.id);
    const answer = { ...message, id: exchange.id };
    const channel = this.#channels.get(exchange.tab);
    if (channel) broadcast(channel, answer);
    else this.#home.onAnswer(answer);
  }
}

function broadcast(channel: BroadcastChannel, message: SharedMessage | AnswerMessage): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has no other origin
  channel.postMessage(message);
}
