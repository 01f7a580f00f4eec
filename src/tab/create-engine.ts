import { IMAGE_SHA256 } from "../../wasm/engine-image.ts";
import type { EngineInfo } from "../engine/protocol/engine-spec.ts";
import type { PageModelFiles } from "../engine/browser/start-page-engine.ts";
import { ServiceError } from "../errors/service-error.ts";
import { EngineCalls } from "./engine-calls.ts";
import { FetchClient } from "./fetch-client.ts";
import type { AnswerMessage } from "./fetch-messages.ts";
import type { TabModelOptions } from "./tab-model.ts";
import type { StartMessage, WorkerMessage } from "./worker-messages.ts";

export interface CreateEngineOptions extends TabModelOptions {
  /** The GGUF file, or all its shards in order. */
  readonly model: Blob | readonly Blob[];
  /** Name of the model in requests and answers. Default: the name of the file. */
  readonly name?: string;
  /** The file that lets the model see images (mmproj). */
  readonly projector?: Blob;
  /** LoRA adapters; the default scale is 1. */
  readonly adapters?: readonly { readonly file: Blob; readonly scale?: number }[];
  /** A Modelfile with the model's settings, such as PARAMETER, SYSTEM and TEMPLATE; the files it names are not read. */
  readonly modelfile?: string;
  /** Address of the engine's WebAssembly. Default: engine.wasm beside this file, where a daemon serves it. */
  readonly wasm?: string | URL;
  /** Address of the engine's worker script. Default: the file beside this one. */
  readonly worker?: string | URL;
  /** Called with 0..1 while the model is read. */
  readonly onProgress?: (progress: number) => void;
  readonly signal?: AbortSignal;
}

// Bundlers know this form, and take the files along.
const DEFAULT_WORKER = new URL("./engine-worker.js", import.meta.url);
const DEFAULT_WASM = new URL("./engine.wasm", import.meta.url);
// With its hash, so that browsers keep it for good.
if (DEFAULT_WASM.protocol.startsWith("http")) DEFAULT_WASM.searchParams.set("v", IMAGE_SHA256);

/** A language model that runs in this page. */
export interface BrowserEngine extends Pick<EngineCalls, "chat" | "complete" | "embed" | "tokenize"> {
  /** The model's name in requests. */
  readonly name: string;
  /** What the engine found in the model. */
  readonly info: EngineInfo;
  /**
   * The APIs of a Daybreak server (OpenAI, Anthropic and its own), answered by this engine. Of an address only the
   * path counts, so it can be given to any client that takes a `fetch`.
   */
  readonly fetch: (input: RequestInfo | URL, init?: RequestInit) => Promise<Response>;
  /** Ends the engine and frees its memory. Requests in flight fail. */
  close(): void;
}

/**
 * Starts an engine in a worker of this page and loads a model.
 * @throws ServiceError with a code of docs/errors.md, or the signal's reason
 */
export async function createEngine(options: CreateEngineOptions): Promise<BrowserEngine> {
  const { signal, onProgress } = options;
  signal?.throwIfAborted();
  const worker = new Worker(options.worker ?? DEFAULT_WORKER, { type: "module" });
  const ready = Promise.withResolvers<Extract<WorkerMessage, { type: "ready" }>>();
  const client = new FetchClient((message) => worker.postMessage(message, []));
  const end = (error: Error): void => {
    worker.terminate();
    ready.reject(error);
    client.end(error);
  };
  worker.addEventListener("error", ({ message }) =>
    end(
      new ServiceError("engine_crashed", `The engine's worker failed: ${message || "it cannot be loaded"}.`),
    ),
  );
  worker.addEventListener("message", ({ data }: MessageEvent<WorkerMessage | AnswerMessage>) => {
    if (data.type === "progress") onProgress?.(data.progress);
    else if (data.type === "ready") ready.resolve(data);
    else if (data.type === "refused") end(new ServiceError(data.code, data.message));
    else client.receive(data);
  });
  const onAbort = (): void => end(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    worker.postMessage(startMessage(options), []);
    const { alias, info } = await ready.promise;
    const { chat, complete, embed, tokenize } = new EngineCalls(client.fetch);
    return {
      name: alias,
      info,
      chat,
      complete,
      embed,
      tokenize,
      fetch: client.fetch,
      close: () => end(new ServiceError("model_not_loaded", "The engine was closed.")),
    };
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

function startMessage(options: CreateEngineOptions): StartMessage {
  const { contextSize, slots, threads, projector } = options;
  const model = options.model instanceof Blob ? [options.model] : options.model;
  const files: PageModelFiles = {
    model,
    projector,
    adapters: (options.adapters ?? []).map(({ file, scale = 1 }) => ({ blob: file, scale })),
  };
  return {
    type: "start",
    alias: options.name ?? nameOf(model[0]),
    files,
    modelfile: options.modelfile,
    wasmUrl: new URL(options.wasm ?? DEFAULT_WASM, location.href).href,
    options: { contextSize, slots, threads },
  };
}

function nameOf(blob: Blob | undefined): string {
  return blob instanceof File ? blob.name.replace(/\.gguf$/i, "") : "model";
}
