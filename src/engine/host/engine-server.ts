import { EngineCore } from "../core/engine-core.ts";
import { fromLoadFailure } from "../core/engine-failure.ts";
import { countReads, type EngineFiles, type EnginePlatform } from "../core/platform.ts";
import { type DeferredStep, deferredSteps, warmUpBeforeRequests } from "../core/warm-up.ts";
import { EngineFatalError } from "../core/wllama-session.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";
import type { GenerationEvent } from "../protocol/generation.ts";
import { type DaemonMessage, type EngineMessage, toReportedError } from "../protocol/messages.ts";
import { Outbox } from "./outbox.ts";

/** Progress between two messages. */
const PROGRESS_STEP = 0.01;

/** The environment of an engine: a process of its own or a page. */
interface EngineHost {
  /** Opens the files of a model. */
  open(spec: EngineSpec): { readonly platform: EnginePlatform; readonly files: EngineFiles };
  /** Sends a message, and calls `written` when it has been written. */
  send(message: EngineMessage, written?: () => void): void;
  /** Resident bytes of the engine. */
  memoryUsage(): number;
  /** Ends the engine, which can no longer work. */
  kill(): void;
}

/** Handles the messages to an engine: loads a model, then runs calls. */
export class EngineServer {
  readonly #host: EngineHost;
  readonly #outbox: Outbox;
  readonly #calls = new Map<number, AbortController>();
  #core: EngineCore | undefined;
  #isLoaded = false;
  /** Deferred warm-up, which runs while there are no calls. */
  #idle: IdleWarmUp | undefined;

  constructor(host: EngineHost) {
    this.#host = host;
    this.#outbox = new Outbox((message, written) => host.send(message, written));
  }

  receive(message: DaemonMessage): void {
    switch (message.type) {
      case "load":
        void this.#load(message.spec);
        return;
      case "cancel":
        // A call that has ended has been answered.
        this.#calls.get(message.call)?.abort();
        return;
      case "memory":
        this.#host.send({ type: "memory", call: message.call, result: this.#host.memoryUsage() });
        return;
      default:
        if (this.#core && this.#isLoaded) void this.#run(this.#core, message);
        else this.fail("received a call before the model was loaded");
    }
  }

  /** Reports a fatal error, then ends the engine. The daemon starts a new one. */
  fail(reason: string): void {
    this.#host.send({ type: "fatal", reason }, () => this.#host.kill());
  }

  /** Bytes of WebAssembly memory of the loaded model. */
  get heapBytes(): number {
    return this.#core?.heapBytes ?? 0;
  }

  async #load(spec: EngineSpec): Promise<void> {
    const host = this.#host;
    let reported = 0;
    const reportProgress = (progress: number): void => {
      if (progress === reported || (progress < reported + PROGRESS_STEP && progress < 1)) return;
      reported = progress;
      host.send({ type: "load-progress", progress });
    };
    try {
      const { platform, files } = host.open(spec);
      const core = await EngineCore.load(platform, spec, countReads(files, reportProgress));
      this.#core = core;
      // All files are read, but without messages the daemon would consider the load stalled.
      const reportAlive = (): void => host.send({ type: "load-progress", progress: reported });
      const usesGpu = core.info.gpuLayers > 0;
      const stepMs = usesGpu ? await warmUpBeforeRequests(core, spec, reportAlive) : undefined;
      if (usesGpu) {
        const { sharedContext } = spec;
        const onFatal = (reason: string): void => this.fail(reason);
        this.#idle = new IdleWarmUp(core, deferredSteps(core, spec), { sharedContext, onFatal });
      }
      this.#isLoaded = true;
      host.send({ type: "loaded", info: { ...core.info, ...(stepMs !== undefined && { stepMs }) } });
      this.#idle?.schedule();
    } catch (error) {
      // Includes a GPU that fails while its shaders are compiled.
      const failure = toReportedError(fromLoadFailure(error));
      host.send({ type: "load-failed", error: failure }, () => host.kill());
    }
  }

  /** Runs a call and answers it exactly once. */
  async #run(core: EngineCore, message: CallMessage): Promise<void> {
    const { call } = message;
    const controller = new AbortController();
    this.#calls.set(call, controller);
    try {
      await this.#idle?.callStarted();
      await this.#answer(core, message, controller.signal);
    } catch (error) {
      if (error instanceof EngineFatalError) {
        if (error.blame)
          this.#outbox.push({ type: "call-failed", call, error: toReportedError(error.blame) });
        this.fail(error.message.split("\n", 1)[0] ?? "unknown");
      } else if (controller.signal.aborted) this.#outbox.push({ type: "cancelled", call });
      else this.#outbox.push({ type: "call-failed", call, error: toReportedError(error) });
    } finally {
      this.#idle?.callEnded();
      this.#calls.delete(call);
    }
  }

  async #answer(engine: EngineCore, message: CallMessage, signal: AbortSignal): Promise<void> {
    const { call } = message;
    const push = (answer: EngineMessage): void => this.#outbox.push(answer);
    switch (message.type) {
      case "generate": {
        const onEvent = (event: GenerationEvent): void => this.#outbox.pushEvent(call, event);
        return await engine.generate(message.request, onEvent, signal);
      }
      case "embed":
        return push({ type: "embedded", call, result: await engine.embed(message.text, signal) });
      case "rerank": {
        const { query, document } = message;
        return push({ type: "reranked", call, result: await engine.rerank(query, document, signal) });
      }
      case "tokenize": {
        const { text, options } = message;
        return push({ type: "tokenized", call, result: await engine.tokenize(text, options, signal) });
      }
      case "pieces":
        return push({ type: "pieces", call, result: await engine.pieces(message.tokens, signal) });
      case "slots":
        return push({ type: "slots", call, result: await engine.slots(message.request, signal) });
    }
  }
}

type CallMessage = Exclude<DaemonMessage, { type: "load" | "cancel" | "memory" }>;

/** Delay before idle work starts. Requests that waited for the load arrive sooner. */
const IDLE_MS = 250;

/** A slot with this many cached tokens or fewer counts as unused: reading them again costs nearly nothing. */
const MAX_UNUSED_SLOT_TOKENS = 8;

interface IdleWarmUpOptions {
  /** In a shared context, a prompt of the warm-up could evict other slots. */
  readonly sharedContext: boolean;
  readonly onFatal: (reason: string) => void;
}

/**
 * Runs the deferred steps of the warm-up while an engine has no calls. A call cancels the current step, which is
 * repeated later. Only unused slots are used, so that no conversation loses its KV cache.
 */
export class IdleWarmUp {
  readonly #engine: Pick<EngineCore, "slots">;
  readonly #options: IdleWarmUpOptions;
  #steps: readonly DeferredStep[];
  #calls = 0;
  #wasCalled = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running: { readonly controller: AbortController; readonly ended: Promise<void> } | undefined;

  constructor(engine: Pick<EngineCore, "slots">, steps: readonly DeferredStep[], options: IdleWarmUpOptions) {
    this.#engine = engine;
    this.#steps = steps;
    this.#options = options;
  }

  /** Starts the next step after a delay, unless calls are in flight. */
  schedule(): void {
    if (this.#steps.length === 0 || this.#calls > 0) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const controller = new AbortController();
      this.#running = { controller, ended: this.#run(controller.signal) };
    }, IDLE_MS);
  }

  /** Cancels the current step; resolves when the call may begin. */
  async callStarted(): Promise<void> {
    this.#calls += 1;
    this.#wasCalled = true;
    clearTimeout(this.#timer);
    this.#running?.controller.abort();
    await this.#running?.ended;
  }

  /** Continues the warm-up if no other call is in flight. */
  callEnded(): void {
    this.#calls -= 1;
    this.schedule();
  }

  async #run(signal: AbortSignal): Promise<void> {
    try {
      for (let step = this.#steps[0]; step && !signal.aborted; [step] = this.#steps) {
        const slot = this.#wasCalled ? await this.#findUnusedSlot(signal) : undefined;
        if (this.#wasCalled && slot === undefined) this.#steps = [];
        else {
          await step({ signal, slot });
          this.#steps = this.#steps.slice(1);
        }
      }
    } catch (error) {
      // A shader that the driver cannot compile is reported by the request that needs it.
      if (!signal.aborted) this.#steps = [];
      if (error instanceof EngineFatalError)
        this.#options.onFatal(error.message.split("\n", 1)[0] ?? "unknown");
    } finally {
      this.#running = undefined;
    }
  }

  /** Returns the number of a slot without a conversation, if there is one. */
  async #findUnusedSlot(signal: AbortSignal): Promise<number | undefined> {
    if (this.#options.sharedContext) return undefined;
    const result = await this.#engine.slots({ action: "list" }, signal);
    const slots = result.action === "list" ? result.slots : [];
    const unused = slots.findIndex(({ tokens, isBusy }) => !isBusy && tokens <= MAX_UNUSED_SLOT_TOKENS);
    return unused < 0 ? undefined : unused;
  }
}
