import { z } from "zod";
import { Watchdog } from "../../async/timers.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { templateTooDeep } from "./failure-text.ts";
import { DRAFT_NAME, type LoadParameters } from "./load-parameters.ts";
import { FailureLog, LoadEndWatchdog, OffloadLog, acceptLimitMs, acceptTimeout } from "./load-watch.ts";
import type { BlobLike, EnginePlatform, LogLevel } from "./platform.ts";
import {
  type ActionResult,
  type LoadedInfo,
  Wllama,
  type WllamaInstance,
  type WorkerActions,
} from "./wllama-api.ts";
import { createWorkerClass } from "./wllama-worker.ts";
import { WITHOUT_STEP_SUFFIX, type TextPatch } from "./worker-patches.ts";
import { STOCK_WASM_ERROR } from "./worker-verbs.ts";

/** Errors with which wllama rejects: an Error, a string, or an object from our patches. */
const failureSchema = z.union([
  z.object({ name: z.string().optional(), message: z.string() }),
  z.unknown().transform((thrown) => ({ name: undefined, message: String(thrown) })),
]);

/** The engine can no longer work: its WASM has aborted or trapped, or its worker has ended. */
export class EngineFatalError extends Error {
  override readonly name = "EngineFatalError";
  /** Error for the call that caused this. Other calls fail with a general error. */
  readonly blame: ServiceError | undefined;

  constructor(message: string, options: ErrorOptions & { readonly blame?: ServiceError | undefined } = {}) {
    super(message, options);
    this.blame = options.blame;
  }
}

/** A call failed in llama.cpp with a C++ exception. The engine is still usable. */
export class EngineCallError extends Error {
  override readonly name: string = "EngineCallError";
}

/**
 * The engine runs the stock WASM, which does not export the called function: the tokenizer, or those that save slots.
 */
export class StockEngineError extends EngineCallError {
  override readonly name = "StockEngineError";
}

/** llama.cpp could not load the model. */
export class ModelLoadError extends Error {
  override readonly name = "ModelLoadError";
}

const DRAFT_REFUSED = /failed to initialize speculative decoding context/;

interface SessionFiles {
  /** The model or all its shards in order, then the projector. */
  readonly blobs: readonly BlobLike[];
  /** Other files by their name in the load parameters, without the folder `models/`. */
  readonly extra: ReadonlyMap<string, BlobLike>;
  readonly patches: readonly TextPatch[];
}

/**
 * wllama with a loaded model. Calls actions of its worker directly, instead of its request API, and classifies errors.
 */
export class WllamaSession {
  readonly #wllama: WllamaInstance;
  readonly #log: FailureLog;
  readonly #offload: OffloadLog;
  /** Rejects the calls that wait for the worker. */
  readonly #pending = new Set<(error: EngineFatalError) => void>();
  #lost: EngineFatalError | undefined;
  /** Memory of the WASM; undefined if it is not shared with this thread. */
  memory: WebAssembly.Memory | undefined;

  private constructor(wllama: WllamaInstance, log: FailureLog, offload: OffloadLog) {
    this.#wllama = wllama;
    this.#log = log;
    this.#offload = offload;
  }

  /**
   * Starts wllama on a platform and loads a model. Only one load at a time: wllama takes its Worker class from the
   * global scope.
   * @throws ModelLoadError if llama.cpp rejects the model, EngineFatalError if it crashes
   */
  static async start(
    platform: EnginePlatform,
    files: SessionFiles,
    parameters: LoadParameters,
  ): Promise<WllamaSession> {
    const log = new FailureLog();
    const offload = new OffloadLog();
    const bytes = files.blobs.reduce((sum, { size }) => sum + size, 0);
    const endWatchdog = new LoadEndWatchdog(bytes, parameters.n_gpu_layers > 0, (blame) =>
      session.#markLost(new EngineFatalError("the load did not finish", { blame })),
    );
    const wllama = createWllama(platform, (level, line) => {
      log.add(level, line);
      offload.add(line);
      endWatchdog.add(line);
    });
    const session: WllamaSession = new WllamaSession(wllama, log, offload);
    const scope = globalThis as { Worker?: unknown };
    const originalWorker = scope.Worker;
    scope.Worker = createWorkerClass(platform, files.extra, {
      patches: files.patches,
      onFatal: (error) => session.#markLost(error),
      onMemory: (memory) => (session.memory = memory),
    });
    try {
      await session.#waitForAnswer(() => session.#wllama.loadModel(files.blobs, parameters));
      // loadModel() also resolves for a model that was rejected.
      if (!session.info.success) throw new ModelLoadError(log.reason ?? "llama.cpp does not say why");
      // llama.cpp does not reject a model if only its draft model is unusable.
      if (files.extra.has(DRAFT_NAME) && DRAFT_REFUSED.test(log.reason ?? "")) {
        throw new ServiceError(
          "invalid_model_file",
          "The draft model has other tokens than the model; choose a small model of the same family.",
        );
      }
    } catch (error) {
      // If a failed worker is still using the GPU, ending it makes Dawn abort the whole process before the error is
      // reported. The caller ends the process instead.
      if (!session.#lost) session.close();
      if (error instanceof EngineFatalError && error.blame) throw error.blame;
      throw error instanceof EngineCallError ? new ModelLoadError(error.message, { cause: error }) : error;
    } finally {
      endWatchdog.stop();
      scope.Worker = originalWorker;
    }
    return session;
  }

  get info(): LoadedInfo {
    return this.#wllama.getLoadedContextInfo();
  }

  get gpuLayers(): number {
    return this.#offload.layers;
  }

  /**
   * Runs an action of the worker.
   * @param withoutStep true: return results that exist, without computing another step. The stock WASM ignores this
   * @throws EngineCallError if only this action failed, EngineFatalError if the engine is lost
   */
  act<Name extends keyof WorkerActions>(
    name: Name,
    body: WorkerActions[Name],
    withoutStep = false,
  ): Promise<ActionResult> {
    this.#log.clear();
    const send = (): Promise<ActionResult> =>
      this.#waitForAnswer(() =>
        this.#wllama.proxy.wllamaAction(withoutStep ? `${name}${WITHOUT_STEP_SUFFIX}` : name, body),
      );
    return "data_json" in body
      ? this.#waitUntilAccepted(send, "is_chat" in body && body.is_chat, body.data_json)
      : send();
  }

  /**
   * Waits until llama.cpp has accepted a request. Limits the time, because neither rendering the chat template nor
   * tokenizing the prompt is guaranteed to finish.
   */
  async #waitUntilAccepted(
    send: () => Promise<ActionResult>,
    isChat: boolean,
    json: string,
  ): Promise<ActionResult> {
    const limitMs = acceptLimitMs(json);
    const watchdog = new Watchdog(limitMs, () => {
      const blame = acceptTimeout(isChat, limitMs);
      this.#markLost(new EngineFatalError("a request was not accepted in time", { blame }));
    });
    try {
      return await send();
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
    return this.#waitForAnswer(() => proxy.pushTask({ verb, args, callbackId: proxy.taskId++ }));
  }

  /** Ends the worker. Calls in flight never settle. */
  close(): void {
    void this.#wllama.exit();
  }

  /** Waits for an answer of the worker. Rejects if the worker ends. */
  async #waitForAnswer<Result>(send: () => Promise<Result>): Promise<Result> {
    if (this.#lost) throw this.#lost;
    const ended = Promise.withResolvers<never>();
    this.#pending.add(ended.reject);
    try {
      return await Promise.race([send(), ended.promise]);
    } catch (error) {
      throw error === this.#lost ? error : this.#classify(error);
    } finally {
      this.#pending.delete(ended.reject);
    }
  }

  /** Classifies an error. The WASM is unusable after any error other than a C++ exception. */
  #classify(error: unknown): EngineCallError | EngineFatalError {
    const { name, message } = failureSchema.parse(error);
    if (name === "CppException") return new EngineCallError(message);
    if (name === STOCK_WASM_ERROR) return new StockEngineError(message);
    const reason = [this.#log.reason, message].filter(Boolean).join("\n");
    this.#lost ??= new EngineFatalError(reason, { cause: error });
    return this.#lost;
  }

  /** Marks the engine as lost and fails all pending calls. */
  #markLost(error: Error): void {
    this.#lost ??=
      error instanceof EngineFatalError ? error : new EngineFatalError(error.message, { cause: error });
    for (const fail of this.#pending) fail(this.#lost);
  }
}

/**
 * Creates a wllama instance without a model.
 * @param onLine called with each line that wllama logs
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
  const unused = {}; // files come from our platform, not from wllama's managers
  const wllama = new Wllama(
    { default: platform.wasmUrl },
    {
      cacheManager: unused,
      modelManager: unused,
      logger: { debug: log("debug"), log: log("info"), warn: log("warn"), error: log("error") },
    },
  );
  const { wasmUrl: wasm, scriptUrl: worker } = platform;
  // Without this, wllama would fetch code from a CDN if a WASM feature is missing.
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
