import { z } from "zod";
import { toError } from "../../errors/service-error.ts";
import { VERB_PATCHES } from "./worker-verbs.ts";
import type { BlobLike, EnginePlatform, EngineWorker } from "./platform.ts";
import { applyPatches, MEMORY_VERB, type TextPatch, WORKER_PATCHES } from "./worker-patches.ts";

interface WorkerMessage {
  readonly verb?: string;
  readonly args?: readonly unknown[];
  readonly callbackId?: unknown;
}

/** File name, offset and size of a read. */
const readRequestSchema = z.tuple([z.string(), z.number(), z.number()]);

function isMessage(data: unknown): data is WorkerMessage {
  return typeof data === "object" && data !== null;
}

/** Prefix of the callback IDs of our own messages; wllama's IDs are numbers. */
const OWN_CALLBACK_PREFIX = "extra-file-";

interface WorkerOptions {
  readonly patches: readonly TextPatch[];
  readonly onFatal: (error: Error) => void;
  /** Called with the memory of the WASM if it is shared. */
  readonly onMemory: (memory: WebAssembly.Memory) => void;
}

/**
 * Creates the Worker class that wllama finds in the global scope while an engine loads. The class runs wllama's script
 * with our patches, and adds files that wllama does not support: any other than shards and a projector.
 */
export function createWorkerClass(
  platform: EnginePlatform,
  extraFiles: ReadonlyMap<string, BlobLike>,
  { patches, onFatal, onMemory }: WorkerOptions,
): new (url: string | URL) => object {
  return class WllamaWorker {
    onmessage: ((event: { data: unknown }) => void) | null = null;
    onerror: ((error: unknown) => void) | null = null;
    readonly #worker: EngineWorker;

    constructor(url: string | URL) {
      this.#worker = platform.startWorker(String(url), (script) =>
        applyPatches(script, [...WORKER_PATCHES, ...VERB_PATCHES, ...patches]),
      );
      this.#worker.onMessage = (data) => {
        if (isMessage(data)) this.#receive(data);
      };
      this.#worker.onError = onFatal;
    }

    postMessage(message: WorkerMessage, options?: { transfer?: ArrayBuffer[] }): void {
      if (message.verb === "wllama.start") this.#addExtraFiles();
      this.#worker.postMessage(message, options ?? { transfer: [] });
    }

    terminate(): void {
      this.#worker.terminate();
    }

    #addExtraFiles(): void {
      for (const [name, blob] of extraFiles) {
        const callbackId = OWN_CALLBACK_PREFIX + name;
        const message = { verb: "fs.alloc", args: [name, blob.size, false], callbackId };
        this.#worker.postMessage(message, { transfer: [] });
      }
    }

    #receive(message: WorkerMessage): void {
      if (typeof message.callbackId === "string" && message.callbackId.startsWith(OWN_CALLBACK_PREFIX))
        return;
      if (message.verb === MEMORY_VERB) {
        const memory = message.args?.[0];
        if (memory instanceof WebAssembly.Memory && memory.buffer instanceof SharedArrayBuffer)
          onMemory(memory);
        return;
      }
      if (message.verb === "fs.read_req") {
        const [name, offset, size] = readRequestSchema.parse(message.args);
        const file = extraFiles.get(name);
        if (file) {
          this.#sendChunk(file, offset, size).catch((error: unknown) => onFatal(toError(error)));
          return;
        }
      }
      this.onmessage?.({ data: message });
    }

    async #sendChunk(file: BlobLike, offset: number, size: number): Promise<void> {
      const chunk = await file.slice(offset, offset + size).arrayBuffer();
      this.#worker.postMessage({ verb: "fs.read_res", args: [chunk] }, { transfer: [chunk] });
    }
  };
}
