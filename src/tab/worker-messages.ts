import type { CompatBuild } from "../engine/browser/compat-build.ts";
import type { PageModelFiles } from "../engine/browser/start-page-engine.ts";
import type { EngineInfo } from "../engine/protocol/engine-spec.ts";
import type { ErrorCode } from "../errors/error-codes.ts";
import type { TabModelOptions } from "./tab-model.ts";

/** What became of a page's wish for a GPU. */
export interface TabGpu {
  /** Name of the adapter that the model's layers are on; absent: all are on the CPU. */
  readonly adapter: string | undefined;
  /** Why the model, or a part of it, is not on a GPU, in words; absent when it is as the page wished. */
  readonly problem: string | undefined;
}

/** The first message to the worker of an engine. */
export interface StartMessage {
  readonly type: "start";
  readonly alias: string;
  readonly files: PageModelFiles;
  /** Has the model's settings. */
  readonly modelfile: string | undefined;
  readonly wasmUrl: string;
  /** For browsers that cannot run the other one. */
  readonly compat: CompatBuild;
  readonly options: TabModelOptions;
}

/** What the worker says of the engine itself. */
export type WorkerMessage =
  | { readonly type: "progress"; readonly progress: number }
  | { readonly type: "ready"; readonly alias: string; readonly info: EngineInfo; readonly gpu: TabGpu }
  | { readonly type: "refused"; readonly code: ErrorCode; readonly message: string };

/** What a page and the worker of its engine say to each other: HTTP, in pieces. Ids are chosen by the page. */

interface RequestHead {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
}

export type FetchMessage =
  | {
      readonly type: "request";
      readonly id: number;
      readonly head: RequestHead;
      readonly body: Uint8Array | undefined;
    }
  /** The reader has room for one more piece of the answer. */
  | { readonly type: "pull"; readonly id: number }
  | { readonly type: "abort"; readonly id: number };

export type AnswerMessage =
  | {
      readonly type: "head";
      readonly id: number;
      readonly status: number;
      readonly headers: readonly (readonly [string, string])[];
    }
  | { readonly type: "piece"; readonly id: number; readonly bytes: Uint8Array }
  | { readonly type: "end"; readonly id: number }
  | { readonly type: "failed"; readonly id: number; readonly reason: string };
