import { IMAGE_SHA256 } from "../../wasm/engine-image.ts";
import type { EngineInfo } from "../engine/protocol/engine-spec.ts";
import { COMPAT_SHA256 } from "../engine/browser/compat-build.ts";
import type { PageModelFiles } from "../engine/browser/start-page-engine.ts";
import { ServiceError, toError } from "../errors/service-error.ts";
import { EngineCalls } from "./engine-calls.ts";
import { type EngineLink, type LinkEvents, SharedLink, WorkerLink } from "./engine-link.ts";
import { FetchClient } from "./fetch-channel.ts";
import type { TabModelOptions } from "./tab-model.ts";
import type { StartMessage, TabGpu } from "./worker-messages.ts";

export interface CreateEngineOptions extends TabModelOptions {
  /** The GGUF file, or all its shards in order. */
  readonly model: Blob | readonly Blob[];
  /** Name of the model in requests and answers. Default: the name of the file. */
  readonly name?: string;
  /** The multimodal projector (mmproj), which lets the model process images. */
  readonly projector?: Blob;
  /** LoRA adapters; the default scale is 1. */
  readonly adapters?: readonly { readonly file: Blob; readonly scale?: number }[];
  /** A Modelfile with settings, such as PARAMETER, SYSTEM and TEMPLATE. The files that it names are ignored. */
  readonly modelfile?: string;
  /**
   * Shares one engine among all tabs of this site that use the same name. The first tab runs it; when that tab is
   * closed, another one starts the engine again. Default: false.
   */
  readonly share?: boolean;
  /** Address of the engine's WebAssembly. Default: engine.wasm beside this file, where a daemon serves it. */
  readonly wasm?: string | URL;
  /** Address of the engine's worker script. Default: the file beside this one. */
  readonly worker?: string | URL;
  /** Called with the progress of loading, 0 to 1. */
  readonly onProgress?: (progress: number) => void;
  readonly signal?: AbortSignal;
}

// Bundlers detect this form and include the files.
const DEFAULT_WORKER = new URL("./engine-worker.js", import.meta.url);
const DEFAULT_WASM = new URL("./engine.wasm", import.meta.url);
const COMPAT_WASM = new URL("./engine-compat.wasm", import.meta.url);
const COMPAT_SCRIPT = new URL("./engine-compat.js", import.meta.url);
// The hash in the URL lets browsers cache the file forever.
if (DEFAULT_WASM.protocol.startsWith("http")) {
  DEFAULT_WASM.searchParams.set("v", IMAGE_SHA256);
  COMPAT_WASM.searchParams.set("v", COMPAT_SHA256);
}

/** An engine with a language model in this page. */
export interface BrowserEngine extends Pick<EngineCalls, "chat" | "complete" | "embed" | "tokenize"> {
  /** The model's name in requests. */
  readonly name: string;
  /** Properties of the loaded model. */
  readonly info: EngineInfo;
  /** The GPU in use, or the reason why the requested one is not used. */
  readonly gpu: TabGpu;
  /**
   * Answers requests to the APIs of a Daybreak server (OpenAI, Anthropic and native) with this engine. Only the path of
   * the URL counts. Any client that accepts a `fetch` function can use it.
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
  const { signal, onProgress, worker = DEFAULT_WORKER } = options;
  signal?.throwIfAborted();
  const client = new FetchClient((message) => link.send(message));
  const events: LinkEvents = {
    onAnswer: (message) => client.receive(message),
    onProgress: (progress) => onProgress?.(progress),
    onInterrupted: (error) => client.interrupt(error),
    onEnd: (error) => client.end(error),
  };
  const start = createStartMessage(options);
  const link: EngineLink = options.share
    ? new SharedLink(start.alias, worker, start, events)
    : new WorkerLink(worker, start, events);
  const onAbort = (): void => link.end(toError(signal?.reason));
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    const { alias, info, gpu } = await link.ready;
    const { chat, complete, embed, tokenize } = new EngineCalls(client.fetch);
    return {
      name: alias,
      info,
      gpu,
      chat,
      complete,
      embed,
      tokenize,
      fetch: client.fetch,
      close: () => link.end(new ServiceError("model_not_loaded", "The engine was closed.")),
    };
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

function createStartMessage(options: CreateEngineOptions): StartMessage {
  const { contextSize, slots, threads, gpu, projector } = options;
  const model = options.model instanceof Blob ? [options.model] : options.model;
  const files: PageModelFiles = {
    model,
    projector,
    adapters: (options.adapters ?? []).map(({ file, scale = 1 }) => ({ blob: file, scale })),
  };
  return {
    type: "start",
    alias: options.name ?? modelName(model[0]),
    files,
    modelfile: options.modelfile,
    wasmUrl: new URL(options.wasm ?? DEFAULT_WASM, location.href).href,
    compat: { wasmUrl: COMPAT_WASM.href, scriptUrl: COMPAT_SCRIPT.href },
    options: { contextSize, slots, threads, gpu },
  };
}

function modelName(blob: Blob | undefined): string {
  return blob instanceof File ? blob.name.replace(/\.gguf$/i, "") : "model";
}
