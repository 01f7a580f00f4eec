import * as wllama from "@wllama/wllama/esm/index.js";
import type { LoadParameters } from "./load-parameters.ts";

/**
 * The part of wllama's API that we use. The package's declarations import without file extensions, which Node's module
 * resolution does not support.
 */

/** llama.cpp's report on a loaded model. */
export interface LoadedInfo {
  /** False if loading failed; `loadModel` resolves even then. */
  readonly success: boolean;
  /** Tokens in the KV cache. */
  readonly n_ctx: number;
  readonly n_vocab: number;
  readonly n_ctx_train: number;
  readonly n_embd: number;
  readonly n_layer: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly has_image_input: boolean;
  readonly has_audio_input: boolean;
  readonly media_marker?: string;
}

/** The worker actions that we use, by name; see `src/glue/messages.ts` of the package. */
export interface WorkerActions {
  completion: { _name: "cmpl_req"; is_chat: boolean; data_json: string; files: Uint8Array[] };
  embedding: { _name: "embd_req"; data_json: string; files: Uint8Array[] };
  rerank: { _name: "rrnk_req"; data_json: string };
  get_result: { _name: "gres_req"; req_id: number };
  cancel: { _name: "cncl_req"; req_id: number };
}

export interface ActionResult {
  readonly success: boolean;
  readonly req_id?: number;
  readonly has_more?: boolean;
  readonly data_json?: string;
  readonly is_error?: boolean;
}

type Log = (...parts: unknown[]) => void;

export interface WllamaInstance {
  /** Sets the build for browsers without memory64 or JSPI, which wllama uses only in those. */
  setCompat(compat: { readonly worker: string; readonly wasm: string } | null): void;
  loadModel(blobs: readonly object[], parameters: LoadParameters): Promise<void>;
  getLoadedContextInfo(): LoadedInfo;
  exit(): Promise<void>;
  /** Private in the package. Its public API drops the rest of an answer after text that is not valid UTF-8. */
  readonly proxy: {
    wllamaAction(name: string, body: WorkerActions[keyof WorkerActions]): Promise<ActionResult>;
    wllamaExit(): Promise<void>;
    /** Sends a verb to the worker; `callbackId` is the next {@link taskId}. */
    pushTask(task: { verb: string; args: readonly unknown[]; callbackId: number }): Promise<unknown>;
    taskId: number;
  };
}

interface WllamaClass {
  new (
    paths: { default: string },
    config: {
      cacheManager: object;
      modelManager: object;
      logger: { debug: Log; log: Log; warn: Log; error: Log };
    },
  ): WllamaInstance;
  getLibllamaVersion(): string;
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the package has no types that resolve
export const { Wllama } = wllama as unknown as { Wllama: WllamaClass };
