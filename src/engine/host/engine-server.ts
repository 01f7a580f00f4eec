import { EngineCore } from "../core/engine-core.ts";
import { fromLoadFailure } from "../core/engine-failure.ts";
import { countReads, type EngineFiles, type EnginePlatform } from "../core/platform.ts";
import { deferredSteps, warmUpBeforeRequests } from "../core/warm-up.ts";
import { EngineFatalError } from "../core/wllama-session.ts";
import type { EngineSpec } from "../protocol/engine-spec.ts";
import type { GenerationEvent } from "../protocol/generation.ts";
import { type DaemonMessage, type EngineMessage, toReportedError } from "../protocol/messages.ts";
import { IdleWarmUp } from "./idle-warm-up.ts";
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
  #core: EngineCore | undefined;
  #calls: CallRunner | undefined;

  constructor(host: EngineHost) {
    this.#host = host;
  }

  receive(message: DaemonMessage): void {
    switch (message.type) {
      case "load":
        void this.#load(message.spec);
        return;
      case "cancel":
        this.#calls?.cancel(message.call);
        return;
      case "memory":
        this.#host.send({ type: "memory", call: message.call, result: this.#host.memoryUsage() });
        return;
      default:
        if (this.#calls) void this.#calls.run(message);
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
      const outbox = new Outbox((message, written) => host.send(message, written));
      const onFatal = (reason: string): void => this.fail(reason);
      const { sharedContext } = spec;
      const idle = usesGpu
        ? new IdleWarmUp(core, deferredSteps(core, spec), { sharedContext, onFatal })
        : undefined;
      this.#calls = new CallRunner(core, outbox, onFatal, idle);
      host.send({ type: "loaded", info: { ...core.info, ...(stepMs !== undefined && { stepMs }) } });
      idle?.schedule();
    } catch (error) {
      // Includes a GPU that fails while its shaders are compiled.
      const failure = toReportedError(fromLoadFailure(error));
      host.send({ type: "load-failed", error: failure }, () => host.kill());
    }
  }
}

type CallMessage = Extract<
  DaemonMessage,
  { type: "generate" | "embed" | "rerank" | "tokenize" | "pieces" | "slots" }
>;

/** Runs the daemon's calls and answers each of them exactly once. */
class CallRunner {
  readonly #engine: EngineCore;
  readonly #outbox: Outbox;
  readonly #onFatal: (reason: string) => void;
  readonly #idle: IdleWarmUp | undefined;
  readonly #calls = new Map<number, AbortController>();

  /** @param idle deferred warm-up, which runs while there are no calls */
  constructor(engine: EngineCore, outbox: Outbox, onFatal: (reason: string) => void, idle?: IdleWarmUp) {
    this.#engine = engine;
    this.#outbox = outbox;
    this.#onFatal = onFatal;
    this.#idle = idle;
  }

  async run(message: CallMessage): Promise<void> {
    const { call } = message;
    const controller = new AbortController();
    this.#calls.set(call, controller);
    try {
      await this.#idle?.callStarted();
      await this.#answer(message, controller.signal);
    } catch (error) {
      if (error instanceof EngineFatalError) {
        if (error.blame)
          this.#outbox.push({ type: "call-failed", call, error: toReportedError(error.blame) });
        this.#onFatal(error.message.split("\n", 1)[0] ?? "unknown");
      } else if (controller.signal.aborted) this.#outbox.push({ type: "cancelled", call });
      else this.#outbox.push({ type: "call-failed", call, error: toReportedError(error) });
    } finally {
      this.#idle?.callEnded();
      this.#calls.delete(call);
    }
  }

  /** Ignores a call that has already ended, because its answer has been sent. */
  cancel(call: number): void {
    this.#calls.get(call)?.abort();
  }

  async #answer(message: CallMessage, signal: AbortSignal): Promise<void> {
    const { call } = message;
    const engine = this.#engine;
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
