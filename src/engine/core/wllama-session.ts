import type { BlobLike, EnginePlatform } from "./platform.ts";
import {
  type ActionResult,
  type LoadedInfo,
  type LoadParameters,
  Wllama,
  type WllamaInstance,
  type WorkerActions,
} from "./wllama-api.ts";
import { createWorkerClass } from "./wllama-worker.ts";

/** The engine is beyond use: its WASM aborted, trapped, or its worker died. Only a new engine helps. */
export class EngineFatalError extends Error {
  override readonly name = "EngineFatalError";
}

/** One call failed inside llama.cpp (a C++ exception); the engine goes on. */
export class EngineCallError extends Error {
  override readonly name = "EngineCallError";
}

/** llama.cpp said that it could not load the model. */
export class ModelLoadError extends Error {
  override readonly name = "ModelLoadError";
}

export interface SessionFiles {
  /** The model or all its shards in order, and the projector. */
  readonly blobs: readonly BlobLike[];
  /** Further files, by the name under which load parameters refer to them, without the folder `models/`. */
  readonly extra: ReadonlyMap<string, BlobLike>;
}

/** A loaded wllama below its request API: the calls of llama.cpp's server, one at a time, with errors told apart. */
export interface WllamaSession {
  readonly info: LoadedInfo;
  /** @throws EngineCallError when only this call failed, EngineFatalError when the engine is lost */
  act<Name extends keyof WorkerActions>(name: Name, body: WorkerActions[Name]): Promise<ActionResult>;
  close(): void;
}

/** Log lines of llama.cpp kept to explain a failure; more than one since the first often is the reason. */
const KEPT_ERROR_LINES = 8;

/**
 * Starts wllama on a platform and loads a model. One load at a time in a realm: wllama takes its Worker class
 * from the global scope.
 * @throws ModelLoadError when llama.cpp refuses the model, EngineFatalError when it dies of it
 */
export async function startSession(
  platform: EnginePlatform,
  files: SessionFiles,
  parameters: LoadParameters,
): Promise<WllamaSession> {
  const errorLines: string[] = [];
  let loseSession: (error: Error) => void = () => {};
  const lost = new Promise<never>((_, reject) => {
    loseSession = (error) => reject(new EngineFatalError(error.message, { cause: error }));
  });
  lost.catch(() => {}); // every use races against it

  const wllama = createWllama(platform, errorLines);
  const withGlobalWorker = globalThis as { Worker?: unknown };
  const originalWorker = withGlobalWorker.Worker;
  withGlobalWorker.Worker = createWorkerClass(platform, files.extra, (error) => loseSession(error));
  try {
    await Promise.race([wllama.loadModel(files.blobs, parameters), lost]);
  } catch (error) {
    await wllama.exit();
    throw loadError(error, errorLines);
  } finally {
    withGlobalWorker.Worker = originalWorker;
  }
  const info = wllama.getLoadedContextInfo();
  if (!info.success) {
    await wllama.exit();
    throw new ModelLoadError(errorLines.join("\n") || "llama.cpp does not say why");
  }
  const { proxy } = wllama;
  return {
    info,
    act: async (name, body) => {
      try {
        return await Promise.race([proxy.wllamaAction(name, body), lost]);
      } catch (error) {
        throw callError(error);
      }
    },
    close: () => void proxy.wllamaExit(),
  };
}

function createWllama(platform: EnginePlatform, errorLines: string[]): WllamaInstance {
  const log =
    (level: "debug" | "info" | "warn" | "error") =>
    (...parts: unknown[]) => {
      const line = parts
        .map((part) => (typeof part === "string" ? part : describe(part)))
        .join(" ")
        .trimEnd();
      if (level === "error" && errorLines.length < KEPT_ERROR_LINES) errorLines.push(line);
      platform.log(level, line);
    };
  const unused = {}; // files come from our platform, so wllama's own stores are never touched
  const wllama = new Wllama(
    { default: platform.wasmUrl },
    {
      cacheManager: unused,
      modelManager: unused,
      logger: { debug: log("debug"), log: log("info"), warn: log("warn"), error: log("error") },
    },
  );
  wllama.setCompat(null); // else wllama would fetch code from a CDN where a WASM feature is missing
  return wllama;
}

function describe(part: unknown): string {
  if (part instanceof Error) return part.message;
  try {
    return JSON.stringify(part) ?? String(part);
  } catch {
    return String(part);
  }
}

function loadError(error: unknown, errorLines: readonly string[]): Error {
  if (error instanceof EngineFatalError) return error;
  const failure = callError(error);
  if (failure instanceof EngineFatalError) {
    return new EngineFatalError([...errorLines, failure.message].join("\n"), { cause: error });
  }
  return new ModelLoadError(failure.message, { cause: error });
}

/** Tells apart what the worker answers: only a C++ exception leaves the WASM usable. */
function callError(error: unknown): EngineCallError | EngineFatalError {
  if (error instanceof EngineFatalError) return error;
  const { name, message } = error as { name?: string; message?: string };
  if (name === "CppException") return new EngineCallError(message ?? "unknown error");
  return new EngineFatalError(message ?? String(error), { cause: error });
}
