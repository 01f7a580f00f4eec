import type { EngineInfo } from "../engine/protocol/engine-spec.ts";
import { ServiceError } from "../errors/service-error.ts";
import type { AnswerMessage, FetchMessage, StartMessage, TabGpu, WorkerMessage } from "./worker-messages.ts";

/** Description of a running engine. */
interface EngineReady {
  readonly alias: string;
  readonly info: EngineInfo;
  readonly gpu: TabGpu;
}

/** Handlers of messages from an engine. */
export interface LinkEvents {
  readonly onAnswer: (message: AnswerMessage) => void;
  readonly onProgress: (progress: number) => void;
  /** Called if requests in flight are lost, but the engine will be started again. */
  readonly onInterrupted: (error: Error) => void;
  /** Called when the engine has ended permanently. */
  readonly onEnd: (error: Error) => void;
}

/** Connection from a tab to an engine in this tab or in another one. */
export interface EngineLink {
  /** Rejects if the engine cannot be started. */
  readonly ready: Promise<EngineReady>;
  send(message: FetchMessage): void;
  end(error: Error): void;
}

/** An engine in a worker of this tab. */
export class WorkerLink implements EngineLink {
  readonly #worker: Worker;
  readonly #ready = Promise.withResolvers<EngineReady>();
  readonly ready = this.#ready.promise;
  readonly #onEnd: (error: Error) => void;

  constructor(script: string | URL, start: StartMessage, events: Omit<LinkEvents, "onInterrupted">) {
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

  send(message: FetchMessage): void {
    this.#worker.postMessage(message, []);
  }

  end(error: Error): void {
    this.#worker.terminate();
    this.#ready.reject(error);
    this.#onEnd(error);
  }
}

/** Messages that tabs sharing an engine broadcast. */
type SharedMessage =
  /** Sent by a new tab that looks for the engine. */
  | { readonly type: "join"; readonly tab: string }
  /** Sent by a tab that starts the engine. An earlier engine has ended, and its requests are lost. */
  | { readonly type: "starting"; readonly leader: string }
  | { readonly type: "progress"; readonly progress: number }
  | { readonly type: "running"; readonly leader: string; readonly ready: EngineReady }
  | { readonly type: "ask"; readonly leader: string; readonly tab: string; readonly message: FetchMessage };

/**
 * Connection to an engine that all tabs of an origin share. The tab that holds a Web Lock (the leader) runs the engine
 * and forwards requests of the other tabs. When it is closed, another tab gets the lock and starts the engine again;
 * requests in flight fail.
 */
export class SharedLink implements EngineLink {
  readonly #key: string;
  readonly #tab = crypto.randomUUID();
  readonly #events: LinkEvents;
  readonly #channel: BroadcastChannel;
  readonly #answerChannel: BroadcastChannel;
  readonly #ready = Promise.withResolvers<EngineReady>();
  readonly ready = this.#ready.promise;
  readonly #ended = Promise.withResolvers<void>();
  readonly #closing = new AbortController();
  /** Messages queued until the engine is running. */
  readonly #waiting: FetchMessage[] = [];
  #hasTabLock = false;
  #leader: string | undefined;
  #leading: LeadingEngine | undefined;

  /** @param start message to the engine's worker if this tab becomes the leader */
  constructor(key: string, script: string | URL, start: StartMessage, events: LinkEvents) {
    this.#key = `daybreak engine ${key}`;
    this.#events = events;
    this.#channel = new BroadcastChannel(this.#key);
    this.#answerChannel = new BroadcastChannel(`${this.#key} ${this.#tab}`);
    this.#channel.addEventListener("message", ({ data }: MessageEvent<SharedMessage>) => this.#receive(data));
    this.#answerChannel.addEventListener("message", ({ data }: MessageEvent<AnswerMessage>) =>
      events.onAnswer(data),
    );
    // Each tab holds a lock of its own, by which the leader notices that the tab was closed. The tab must hold it
    // before it sends requests: otherwise the leader would get the lock immediately and end the requests of a live tab.
    void this.#withLock(`${this.#key} ${this.#tab}`, () => {
      this.#hasTabLock = true;
      this.#broadcast({ type: "join", tab: this.#tab });
    });
    void this.#withLock(this.#key, () => this.#startLeading(script, start));
  }

  send(message: FetchMessage): void {
    if (this.#leader === undefined) this.#waiting.push(message);
    else if (this.#leading) this.#leading.forward(this.#tab, message);
    else this.#broadcast({ type: "ask", leader: this.#leader, tab: this.#tab, message });
  }

  end(error: Error): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(error);
    this.#leading?.link.end(error);
    this.#channel.close();
    this.#answerChannel.close();
    this.#ended.resolve();
    this.#ready.reject(error);
    this.#events.onEnd(error);
  }

  /** Acquires a lock and holds it until this link ends. */
  async #withLock(name: string, onLocked: () => void): Promise<void> {
    try {
      await navigator.locks.request(name, { signal: this.#closing.signal }, async () => {
        onLocked();
        await this.#ended.promise;
      });
    } catch {
      // The link ended before it got the lock.
    }
  }

  #broadcast(message: SharedMessage): void {
    broadcast(this.#channel, message);
  }

  #startLeading(script: string | URL, start: StartMessage): void {
    const leader = crypto.randomUUID();
    this.#loseLeader();
    this.#broadcast({ type: "starting", leader });
    this.#leading = new LeadingEngine(
      this.#key,
      (onAnswer) =>
        new WorkerLink(script, start, {
          onAnswer,
          onProgress: (progress) => {
            this.#events.onProgress(progress);
            this.#broadcast({ type: "progress", progress });
          },
          onEnd: (error) => this.end(error),
        }),
      { tab: this.#tab, onAnswer: this.#events.onAnswer },
    );
    void this.#announceReady(leader, this.#leading.link);
  }

  /** Broadcasts that the engine is running, once it is. */
  async #announceReady(leader: string, link: WorkerLink): Promise<void> {
    try {
      const ready = await link.ready;
      this.#setLeader(leader, ready);
      this.#broadcast({ type: "running", leader, ready });
    } catch {
      // onEnd has reported the error.
    }
  }

  /** Waits for the lock of a tab, which is free once the tab is closed, and aborts its requests. */
  async #removeTabWhenGone(tab: string): Promise<void> {
    try {
      await navigator.locks.request(`${this.#key} ${tab}`, { signal: this.#closing.signal }, () => undefined);
      this.#leading?.removeTab(tab);
    } catch {
      // This link ended first.
    }
  }

  #receive(message: SharedMessage): void {
    switch (message.type) {
      case "join":
        if (this.#leading && this.#leader !== undefined)
          void this.#announceReady(this.#leader, this.#leading.link);
        return;
      case "starting":
        this.#loseLeader();
        return;
      case "progress":
        if (this.#leader === undefined) this.#events.onProgress(message.progress);
        return;
      case "running":
        if (!this.#leading && this.#hasTabLock) this.#setLeader(message.leader, message.ready);
        return;
      case "ask":
        if (!this.#leading || message.leader !== this.#leader) return;
        if (!this.#leading.hasTab(message.tab)) void this.#removeTabWhenGone(message.tab);
        this.#leading.forward(message.tab, message.message);
    }
  }

  /** Resets the leader, and reports that requests in flight are lost. */
  #loseLeader(): void {
    if (this.#leader === undefined) return;
    this.#leader = undefined;
    this.#events.onInterrupted(
      new ServiceError(
        "engine_crashed",
        "The tab that ran the engine was closed. Another one starts it again: repeat the request.",
      ),
    );
  }

  #setLeader(leader: string, ready: EngineReady): void {
    if (this.#leader === leader) return;
    this.#loseLeader();
    this.#leader = leader;
    this.#ready.resolve(ready);
    for (const message of this.#waiting.splice(0)) this.send(message);
  }
}

interface Exchange {
  readonly tab: string;
  /** Request ID chosen by the tab. */
  readonly id: number;
}

/** The engine of the leader. Maps request IDs, since all tabs count from 1. */
class LeadingEngine {
  readonly link: WorkerLink;
  readonly #key: string;
  readonly #localTab: { readonly tab: string; readonly onAnswer: (message: AnswerMessage) => void };
  readonly #exchanges = new Map<number, Exchange>();
  readonly #channels = new Map<string, BroadcastChannel>();
  #lastId = 0;

  constructor(
    key: string,
    start: (onAnswer: (message: AnswerMessage) => void) => WorkerLink,
    localTab: { readonly tab: string; readonly onAnswer: (message: AnswerMessage) => void },
  ) {
    this.#key = key;
    this.#localTab = localTab;
    this.link = start((message) => this.#answer(message));
  }

  /** True if the tab has sent a request before. */
  hasTab(tab: string): boolean {
    return this.#channels.has(tab);
  }

  /** Forwards a message of a tab to the engine. */
  forward(tab: string, message: FetchMessage): void {
    if (tab !== this.#localTab.tab && !this.hasTab(tab)) {
      this.#channels.set(tab, new BroadcastChannel(`${this.#key} ${tab}`));
    }
    if (message.type === "request") {
      const id = ++this.#lastId;
      this.#exchanges.set(id, { tab, id: message.id });
      this.link.send({ ...message, id });
      return;
    }
    const exchangeEntry = [...this.#exchanges].find(([, each]) => each.tab === tab && each.id === message.id);
    if (!exchangeEntry) return;
    const [id] = exchangeEntry;
    if (message.type === "abort") this.#exchanges.delete(id);
    this.link.send({ ...message, id });
  }

  /** Aborts the requests of a closed tab. */
  removeTab(tab: string): void {
    const exchanges = [...this.#exchanges.values()].filter((exchange) => exchange.tab === tab);
    for (const { id } of exchanges) this.forward(tab, { type: "abort", id });
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
    else this.#localTab.onAnswer(answer);
  }
}

function broadcast(channel: BroadcastChannel, message: SharedMessage | AnswerMessage): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has no other origin
  channel.postMessage(message);
}
