import type { ChildProcess } from "node:child_process";
import fs from "node:fs/promises";
import { constants } from "node:os";
import nodePath from "node:path";
import { pathToFileURL } from "node:url";
import { rethrowExhaustion, ServiceError, toError } from "../errors/service-error.ts";
import { ChildChannel } from "./channel/child-channel.ts";
import { DAEMON_MESSAGE_KINDS, ENGINE_MESSAGE_KINDS } from "./channel/message-limits.ts";
import { killGroup, LastLines, UNRESTRICTED_EXIT_CODE, UNRESTRICTED_REASON } from "./child-process.ts";
import { engineHeapLimit, STOCK_HEAP_BYTES } from "./core/worker-patches.ts";
import { endError, type EndOptions, type EngineConnection, type EngineReceiver } from "./engine-handle.ts";
import { STOCK_WASM_PATH } from "./engine-image.ts";
import type { EngineExit, StartEngine } from "./engine.ts";
import { findDawn } from "./gpu/probe-gpu.ts";
import { restrictedProcess, type SpawnEngine, spawnFailure, startRestricted } from "./launch.ts";
import { loadEngine } from "./load-engine.ts";
import { type EngineSpec, engineSpecSchema } from "./protocol/engine-spec.ts";
import {
  type DaemonMessage,
  type EngineMessage,
  engineMessageSchema,
  firstProblem,
} from "./protocol/messages.ts";
import type { Sandbox } from "./sandbox/sandboxes.ts";

export interface EngineStarterOptions {
  /** Longest time without progress while a model loads, in milliseconds. */
  readonly loadTimeoutMs: number;
  /** Longest time without a message about a call in flight, in milliseconds. */
  readonly stallTimeoutMs: number;
  readonly spawn?: SpawnEngine;
  /** llama.cpp's WebAssembly; the default is the one in @wllama/wllama. */
  readonly wasmPath?: string;
  /** Largest heap that it declares, in bytes; an engine may get less. */
  readonly heapLimitBytes?: number;
  /** Entry file of Dawn, for engines that use a GPU; the default is in the npm package. */
  readonly dawnPath?: string | undefined;
  /** Folder for the GPU driver's cache of compiled programs; the default is the driver's. */
  readonly programCache?: string;
  /** Finds the sandbox for engines; the default is none. */
  readonly findSandbox?: () => Promise<Sandbox | undefined>;
}

/** Name of the process in errors. */
const PROCESS_NAME = "The model's engine";

/** Creates the function that starts engines with these settings. */
export function createEngineStarter({
  loadTimeoutMs,
  stallTimeoutMs,
  spawn,
  wasmPath = STOCK_WASM_PATH,
  heapLimitBytes = STOCK_HEAP_BYTES,
  dawnPath = findDawn(),
  programCache,
  findSandbox = async () => undefined,
}: EngineStarterOptions): StartEngine {
  return async (requested, options = {}) => {
    options.signal?.throwIfAborted();
    const spec = withAbsolutePaths(engineSpecSchema.parse(requested));
    const files = filesToLoad(spec);
    for (const file of files) await checkModelFile(file);
    const sandbox = await findSandbox();
    const usesGpu = spec.gpu !== undefined && spec.gpuLayers !== 0;
    const gpu = usesGpu && dawnPath !== undefined ? { dawnPath, programCache } : undefined;
    const start = restrictedProcess("host/engine-main", {
      modules: gpu ? ["gpu/calls/open-gpu"] : [],
      files: [wasmPath, ...files],
      args: [
        pathToFileURL(wasmPath).href,
        String(engineHeapLimit(options.heapLimit?.(spec) ?? heapLimitBytes, heapLimitBytes)),
        ...(gpu ? [gpu.dawnPath, String(stallTimeoutMs)] : []),
      ],
      gpu,
      sandbox,
    });
    return await loadEngine(
      (receiver) => new EngineProcess(startRestricted(PROCESS_NAME, start, spawn), receiver),
      spec,
      { loadTimeoutMs, stallTimeoutMs, onProgress: options.onProgress, signal: options.signal },
    );
  };
}

/** Resolves paths, because an engine has another working folder than the daemon. */
function withAbsolutePaths(spec: EngineSpec): EngineSpec {
  return {
    ...spec,
    modelFiles: spec.modelFiles.map((file) => nodePath.resolve(file)),
    ...(spec.projectorFile !== undefined && { projectorFile: nodePath.resolve(spec.projectorFile) }),
    adapters: spec.adapters.map((adapter) => ({ ...adapter, path: nodePath.resolve(adapter.path) })),
    ...(spec.draft && { draft: { ...spec.draft, path: nodePath.resolve(spec.draft.path) } }),
  };
}

/** First bytes of every GGUF file. */
const GGUF_MAGIC = "GGUF";

/** Shortest possible GGUF: magic, version and two counts. */
const MIN_GGUF_BYTES = 24;

/** All files that an engine loads. */
function filesToLoad(spec: EngineSpec): string[] {
  return [
    ...spec.modelFiles,
    ...(spec.projectorFile === undefined ? [] : [spec.projectorFile]),
    ...spec.adapters.map(({ path }) => path),
    ...(spec.draft ? [spec.draft.path] : []),
  ];
}

/**
 * Rejects a file that cannot be a model, before a process is started.
 * @throws ServiceError model_file_not_found, invalid_model_file or model_load_failed
 */
async function checkModelFile(path: string): Promise<void> {
  const stat = await fs.stat(path).catch((error: unknown) => throwReadError(path, error));
  // Opening a pipe would wait for a writer.
  if (!stat.isFile()) throw new ServiceError("invalid_model_file", `${path} is not a file.`);
  if (stat.size < MIN_GGUF_BYTES) {
    throw new ServiceError(
      "invalid_model_file",
      `${path} has ${stat.size} bytes, which is too small for a model.`,
    );
  }
  const file = await fs.open(path).catch((error: unknown) => throwReadError(path, error));
  try {
    const { buffer } = await file.read(Buffer.alloc(GGUF_MAGIC.length), 0, GGUF_MAGIC.length, 0);
    if (buffer.toString("latin1") !== GGUF_MAGIC) {
      throw new ServiceError("invalid_model_file", `${path} is not a GGUF file.`);
    }
  } finally {
    await file.close();
  }
}

function throwReadError(path: string, error: unknown): never {
  rethrowExhaustion(error);
  if (error instanceof Error && "code" in error && error.code === "ENOENT") {
    throw new ServiceError("model_file_not_found", `The file ${path} does not exist.`, { cause: error });
  }
  throw new ServiceError("model_load_failed", `Cannot read ${path}: ${toError(error).message}`, {
    cause: error,
  });
}

/** Exit codes above this one mean signals, as in a shell. */
const SIGNAL_CODES_FROM = 128;

/** One engine process: its channel, and how and why it ended. */
class EngineProcess implements EngineConnection {
  readonly #child: ChildProcess;
  readonly #channel: ChildChannel<EngineMessage, DaemonMessage>;
  readonly #output: LastLines;
  readonly #exited = Promise.withResolvers<EngineExit>();
  /** Set when the daemon ends the process, or the engine announces that it ends. */
  #ending: { readonly exit: EngineExit; readonly error: ServiceError } | undefined;
  #hasEnded = false;
  readonly #receiver: EngineReceiver;

  constructor(child: ChildProcess, receiver: EngineReceiver) {
    this.#child = child;
    this.#receiver = receiver;
    this.#output = LastLines.of(child);
    this.#channel = new ChildChannel<EngineMessage, DaemonMessage>({
      child,
      incoming: ENGINE_MESSAGE_KINDS,
      outgoing: DAEMON_MESSAGE_KINDS,
      onMessage: (message) => this.#receive(message),
      onProblem: (reason) => this.end(reason),
    });
    child.on("error", (error) => {
      if (child.pid === undefined) {
        const failure = spawnFailure(PROCESS_NAME, error);
        this.#ending ??= { exit: { expected: false, reason: failure.message }, error: failure };
        this.#finish(null, null);
      } else {
        this.end(`could not be reached: ${error.message}`);
      }
    });
    child.on("exit", () => killGroup(child));
    child.on("close", (code, signal) => this.#finish(code, signal));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get alive(): boolean {
    return !this.#hasEnded && this.#ending === undefined;
  }

  /** Resolves when the process is gone; never rejects. */
  get exited(): Promise<EngineExit> {
    return this.#exited.promise;
  }

  /** @throws ServiceError internal_error when the message cannot be sent as it is */
  post(message: DaemonMessage): void {
    if (this.alive) this.#channel.post(message);
  }

  end(reason: string, options: EndOptions = {}): void {
    this.#announceEnd(reason, options);
    this.#channel.stop();
    killGroup(this.#child);
  }

  #announceEnd(reason: string, { expected = false, code }: EndOptions): void {
    this.#ending ??= { exit: { expected, reason }, error: endError(reason, code) };
  }

  #receive(message: unknown): void {
    if (this.#ending) return;
    const parsed = engineMessageSchema.safeParse(message);
    if (!parsed.success) {
      this.end(`sent an invalid message: ${firstProblem(parsed.error)}`);
    } else if (parsed.data.type === "fatal") {
      this.end(parsed.data.reason);
    } else if (!this.#receiver.receive(parsed.data)) {
      this.end(`sent an unexpected message: ${parsed.data.type}`);
    }
  }

  #finish(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#hasEnded) return;
    this.#channel.finish();
    this.#hasEnded = true;
    if (code === UNRESTRICTED_EXIT_CODE)
      this.#announceEnd(UNRESTRICTED_REASON, { code: "model_load_failed" });
    // A process that exits by itself may have printed the reason; a killed one has not.
    const killSignal = signal ?? signalOf(code);
    const line = this.#output.lastError ?? (killSignal ? undefined : this.#output.last);
    const ending = killSignal ? `killed by ${killSignal}` : `exited with code ${code}`;
    this.#announceEnd(line === undefined ? ending : `${ending} (${line})`, {});
    const { exit, error } = this.#ending!;
    this.#receiver.end(error);
    this.#exited.resolve(exit);
  }
}

/** Signal that an exit code stands for: a sandbox reports signals as exit codes. */
function signalOf(code: number | null): string | undefined {
  const number = (code ?? 0) - SIGNAL_CODES_FROM;
  return Object.entries(constants.signals).find(([, signal]) => signal === number)?.[0];
}
