import { abortable } from "../async/promises.ts";
import { Watchdog } from "../async/timers.ts";
import type { ServiceError } from "../errors/service-error.ts";
import { type EngineConnection, EngineHandle, type EngineReceiver } from "./engine-handle.ts";
import type { EngineInfo, EngineSpec } from "./protocol/engine-spec.ts";
import { type EngineMessage, toServiceError } from "./protocol/messages.ts";

interface LoadEngineOptions {
  /** Longest time without progress while loading, in milliseconds. */
  readonly loadTimeoutMs: number;
  /** Longest time without a message about a call in flight, in milliseconds. */
  readonly stallTimeoutMs: number;
  readonly onProgress: ((progress: number) => void) | undefined;
  readonly signal: AbortSignal | undefined;
}

/**
 * Starts an engine and waits until it has loaded its model. When that fails, the engine has ended.
 * @param start starts an engine whose messages go to the receiver
 */
export async function loadEngine(
  start: (receiver: EngineReceiver) => EngineConnection,
  spec: EngineSpec,
  { loadTimeoutMs, stallTimeoutMs, onProgress, signal }: LoadEngineOptions,
): Promise<EngineHandle> {
  const loading = new Loading(onProgress);
  let receiver: EngineReceiver = loading;
  const engine = start({
    receive: (message) => receiver.receive(message),
    end: (error) => receiver.end(error),
  });
  try {
    engine.post({ type: "load", spec });
    const info = await loading.result(engine, loadTimeoutMs, signal);
    const handle = new EngineHandle(engine, spec, info, stallTimeoutMs);
    receiver = handle;
    return handle;
  } catch (error) {
    engine.end("failed to load the model");
    await engine.exited;
    throw error;
  }
}

/** Receiver of an engine's messages until its model is loaded. */
class Loading implements EngineReceiver {
  readonly #onProgress: ((progress: number) => void) | undefined;
  readonly #info = Promise.withResolvers<EngineInfo>();
  #onMessage: () => void = () => undefined;

  constructor(onProgress: ((progress: number) => void) | undefined) {
    this.#onProgress = onProgress;
    // The engine may end before result() is called.
    this.#info.promise.catch(() => undefined);
  }

  receive(message: EngineMessage): boolean {
    this.#onMessage();
    if (message.type === "load-progress") this.#onProgress?.(message.progress);
    else if (message.type === "loaded") this.#info.resolve(message.info);
    else if (message.type === "load-failed") this.#info.reject(toServiceError(message.error));
    else return false;
    return true;
  }

  end(error: ServiceError): void {
    this.#info.reject(error);
  }

  /** Waits for the model; the caller ends the engine when this rejects. */
  async result(
    engine: EngineConnection,
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<EngineInfo> {
    const watchdog = new Watchdog(timeoutMs, () =>
      engine.end(`made no progress in loading for ${Math.round(timeoutMs / 1000)} s`, {
        code: "deadline_exceeded",
      }),
    );
    this.#onMessage = () => watchdog.reset();
    try {
      return await (signal ? abortable(this.#info.promise, signal) : this.#info.promise);
    } finally {
      watchdog.stop();
    }
  }
}
