import { z } from "zod";
import { Watchdog } from "../../async/timers.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { templateTooDeep } from "./failure-text.ts";
import { DRAFT_NAME } from "./load-parameters.ts";
import { FailureLog, LoadEnding, OffloadLog, startLimitMs, tookTooLong } from "./load-watch.ts";
import type { BlobLike, EnginePlatform, LogLevel } from "./platform.ts";
import {
  type ActionResult,
  type LoadedInfo,
  type LoadParameters,
  Wllama,
  type WllamaInstance,
  type WorkerActions,
} from "./wllama-api.ts";
import { createWorkerClass } from "./wllama-worker.ts";
import { HELD, type TextPatch } from "./worker-patches.ts";
import { NO_SLOTS, NO_TOKENIZER } from "./worker-verbs.ts";

/** What wllama rejects with: an Error, a string, or an object from our patches. */
const failureSchema = z.union([
  z.object({ name: z.string().optional(), message: z.string() }),
  z.unknown().transform((thrown) => ({ name: undefined, message: String(thrown) })),
]);

/** The engine is lost: its WASM aborted or trapped, or its worker died. */
export class EngineFatalError extends Error {
  override readonly name = "EngineFatalError";
  /** The error for the call that caused this; other calls only learn that the engine died. */
  readonly blame: ServiceError | undefined;

  constructor(message: string, options: ErrorOptions & { readonly blame?: ServiceError | undefined } = {}) {
    super(message, options);
    this.blame = options.blame;
  }
}

/** One call failed in llama.cpp with a C++ exception; the engine is still usable. */
export class EngineCallError extends Error {
  override readonly name: string = "EngineCallError";
}

/** The engine runs the stock WASM, which does not export what was called: its tokenizer, or what saves slots. */
export class StockEngineError extends EngineCallError {
  override readonly name = "StockEngineError";
}

/** llama.cpp could not load the model. */
export class ModelLoadError extends Error {
  override readonly name = "ModelLoadError";
}

const DRAFT_REFUSED = /failed to initialize speculative decoding context/;

function unusableDraft(): ServiceError {
  return new ServiceError(
    "invalid_model_file",
    "The draft model has other tokens than the model; choose a small model of the same family.",
  );
}

interface SessionFiles {
  /** The model or all its shards in order, then the projector. */
  readonly blobs: readonly BlobLike[];
  /** Other files by their name in the load parameters, without the folder `models/`. */
  readonly extra: ReadonlyMap<string, BlobLike>;
  /** Patches of wllama's script for these. */
  readonly patches: readonly TextPatch[];
}

/** wllama with a loaded model, below its request API: calls actions of its worker and classifies their errors. */
export class WllamaSession {
  readonly #wllama: WllamaInstance;
  readonly #log: FailureLog;
  readonly #offload: OffloadLog;
  /** Rejects the calls that wait for the worker. */
  readonly #pending = new Set<(error: EngineFatalError) => void>();
  #lost: EngineFatalError | undefined;
  #memory: WebAssembly.Memory | undefined;

  private constructor(wllama: WllamaInstance, log: FailureLog, offload: OffloadLog) {
    this.#wllama = wllama;
    this.#log = log;
    this.#offload = offload;
  }

  /**
   * Starts wllama on a platform and loads a model. Only one load at a time: wllama takes its Worker class from the
   * global scope.
   * @throws ModelLoadError when llama.cpp rejects the model, EngineFatalError when it crashes
   */
  static async start(
    platform: EnginePlatform,
    files: SessionFiles,
    parameters: LoadParameters,
  ): Promise<WllamaSession> {
    const log = new FailureLog();
    const offload = new OffloadLog();
    const ending = new LoadEnding(files.blobs, parameters.n_gpu_layers > 0, (blame) =>
      session.#lose(new EngineFatalError("the load did not finish", { blame })),
    );
    const wllama = createWllama(platform, (level, line) => {
      log.add(level, line);
      offload.add(line);
      ending.add(line);
    });
    const session: WllamaSession = new WllamaSession(wllama, log, offload);
    const scope = globalThis as { Worker?: unknown };
    const originalWorker = scope.Worker;
    scope.Worker = createWorkerClass(platform, files.extra, {
      patches: files.patches,
      onFatal: (error) => session.#lose(error),
      onMemory: (memory) => (session.#memory = memory),
    });
    try {
      await session.#answered(() => session.#wllama.loadModel(files.blobs, parameters));
      // loadModel() also resolves for a model that was rejected.
      if (!session.info.success) throw new ModelLoadError(log.reason ?? "llama.cpp does not say why");
      // Nor does llama.cpp reject a model whose draft model it cannot use.
      if (files.extra.has(DRAFT_NAME) && DRAFT_REFUSED.test(log.reason ?? "")) throw unusableDraft();
    } catch (error) {
      // If a failed worker is still using the GPU, ending it makes Dawn abort the whole process before the error is
      // reported. The caller ends the process instead.
      if (!session.#lost) session.close();
      if (error instanceof EngineFatalError && error.blame) throw error.blame;
      throw error instanceof EngineCallError ? new ModelLoadError(error.message, { cause: error }) : error;
    } finally {
      ending.over();
      scope.Worker = originalWorker;
    }
    return session;
  }

  get info(): LoadedInfo {
    return this.#wllama.getLoadedContextInfo();
  }

  /** Memory of the WASM; undefined when it is not shared. */
  get memory(): WebAssembly.Memory | undefined {
    return this.#memory;
  }

  /** Layers that llama.cpp has offloaded to a GPU. */
  get gpuLayers(): number {
    return this.#offload.layers;
  }

  /**
   * @param isHeld return what has been computed without computing another step; the stock WASM ignores this
   * @throws EngineCallError when only this action failed, EngineFatalError when the engine is lost
   */
  act<Name extends keyof WorkerActions>(
    name: Name,
    body: WorkerActions[Name],
    isHeld = false,
  ): Promise<ActionResult> {
    this.#log.clear();
    const ask = (): Promise<ActionResult> =>
      this.#answered(() => this.#wllama.proxy.wllamaAction(isHeld ? `${name}${HELD}` : name, body));
    return "data_json" in body
      ? this.#accepted(ask, "is_chat" in body && body.is_chat, body.data_json)
      : ask();
  }

  /**
   * Waits until llama.cpp has accepted a request. For that it renders the chat template and tokenizes the result,
   * neither of which is guaranteed to finish.
   */
  async #accepted(ask: () => Promise<ActionResult>, isChat: boolean, json: string): Promise<ActionResult> {
    const limitMs = startLimitMs(json);
    const watchdog = new Watchdog(limitMs, () => {
      const blame = tookTooLong(isChat, limitMs);
      this.#lose(new EngineFatalError("a request was not accepted in time", { blame }));
    });
    try {
      return await ask();
    } catch (error) {
      const blame = error instanceof EngineFatalError && isChat ? templateTooDeep(error.message) : undefined;
      throw blame
        ? new EngineFatalError("a chat template was nested too deeply", { cause: error, blame })
        : error;
    } finally {
      watchdog.stop();
    }
  }

  /** Calls a verb that our patches add to the worker; throws like {@link act}. */
  call(verb: string, ...args: readonly unknown[]): Promise<unknown> {
    const { proxy } = this.#wllama;
    return this.#answered(() => proxy.pushTask({ verb, args, callbackId: proxy.taskId++ }));
  }

  /** Ends the worker; calls in flight are not answered. */
  close(): void {
    void this.#wllama.exit();
  }

  /** Waits for an answer of the worker, or for its end. */
  async #answered<Result>(ask: () => Promise<Result>): Promise<Result> {
    if (this.#lost) throw this.#lost;
    const ended = Promise.withResolvers<never>();
    this.#pending.add(ended.reject);
    try {
      return await Promise.race([ask(), ended.promise]);
    } catch (error) {
      throw error === this.#lost ? error : this.#classify(error);
    } finally {
      this.#pending.delete(ended.reject);
    }
  }

  /** The WASM is only usable after a C++ exception. */
  #classify(error: unknown): EngineCallError | EngineFatalError {
    const { name, message } = failureSchema.parse(error);
    if (name === "CppException") return new EngineCallError(message);
    if (name === NO_TOKENIZER || name === NO_SLOTS) return new StockEngineError(message);
    const reason = [this.#log.reason, message].filter(Boolean).join("\n");
    this.#lost ??= new EngineFatalError(reason, { cause: error });
    return this.#lost;
  }

  /** The worker is gone: fails all pending calls. */
  #lose(error: Error): void {
    this.#lost ??=
      error instanceof EngineFatalError ? error : new EngineFatalError(error.message, { cause: error });
    for (const fail of this.#pending) fail(this.#lost);
  }
}

/**
 * wllama on a platform, without anything loaded.
 * @param onLine called with each line that it logs
 */
function createWllama(
  platform: EnginePlatform,
  onLine: (level: LogLevel, line: string) => void,
): WllamaInstance {
  const log =
    (level: LogLevel) =>
    (...parts: unknown[]) => {
      const line = parts.map(describe).join(" ").trimEnd();
      onLine(level, line);
      platform.log(level, line);
    };
  const unused = {}; // files come from our platform, so wllama's managers are not used
  const wllama = new Wllama(
    { default: platform.wasmUrl },
    {
      cacheManager: unused,
      modelManager: unused,
      logger: { debug: log("debug"), log: log("info"), warn: log("warn"), error: log("error") },
    },
  );
  const { wasmUrl: wasm, scriptUrl: worker } = platform;
  // Without this, wllama would fetch code from a CDN when a WASM feature is missing.
  wllama.setCompat(worker === undefined ? null : { worker, wasm });
  return wllama;
}

function describe(part: unknown): string {
  if (typeof part === "string") return part;
  if (part instanceof Error) return part.message;
  try {
    return JSON.stringify(part) ?? String(part);
  } catch {
    return String(part);
  }
}
