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
