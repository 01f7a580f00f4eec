import { abortable } from "../async/promises.ts";
import { Watchdog } from "../async/timers.ts";
import { type EngineConnection, EngineHandle, type EngineReceiver } from "./engine-handle.ts";
import type { EngineInfo, EngineSpec } from "./protocol/engine-spec.ts";
import { toServiceError } from "./protocol/messages.ts";

export interface LoadEngineOptions {
  /** Longest time without progress while loading, in milliseconds. */
  readonly loadTimeoutMs: number;
  /** Longest time without a message about a call in flight, in milliseconds. */
  readonly stallTimeoutMs: number;
  /** Called with 0..1 while the files are read. */
  readonly onProgress?: ((progress: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
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
  const loaded = Promise.withResolvers<EngineInfo>();
  // The engine may end before this is awaited.
  loaded.promise.catch(() => undefined);
  let receiver: EngineReceiver = {
    receive(message) {
      watchdog.reset();
      if (message.type === "load-progress") onProgress?.(message.progress);
      else if (message.type === "loaded") loaded.resolve(message.info);
      else if (message.type === "load-failed") loaded.reject(toServiceError(message.error));
      else return false;
      return true;
    },
    end: (error) => loaded.reject(error),
  };
  const engine = start({
    receive: (message) => receiver.receive(message),
    end: (error) => receiver.end(error),
  });
  const watchdog = new Watchdog(loadTimeoutMs, () =>
    engine.end(`made no progress in loading for ${Math.round(loadTimeoutMs / 1000)} s`, {
      code: "deadline_exceeded",
    }),
  );
  try {
    engine.post({ type: "load", spec });
    const info = await (signal ? abortable(loaded.promise, signal) : loaded.promise);
    const handle = new EngineHandle(engine, spec, info, stallTimeoutMs);
    receiver = handle;
    return handle;
  } catch (error) {
    engine.end("failed to load the model");
    await engine.exited;
    throw error;
  } finally {
    watchdog.stop();
  }
}
