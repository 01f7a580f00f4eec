import type { PageModelFiles } from "../engine/browser/start-page-engine.ts";
import type { EngineInfo } from "../engine/protocol/engine-spec.ts";
import type { ErrorCode } from "../errors/error-codes.ts";
import type { TabModelOptions } from "./tab-model.ts";

/** The first message to the worker of an engine. */
export interface StartMessage {
  readonly type: "start";
  readonly alias: string;
  readonly files: PageModelFiles;
  /** Has the model's settings. */
  readonly modelfile: string | undefined;
  readonly wasmUrl: string;
  readonly options: TabModelOptions;
}

/** What the worker says of the engine itself. */
export type WorkerMessage =
  | { readonly type: "progress"; readonly progress: number }
  | { readonly type: "ready"; readonly alias: string; readonly info: EngineInfo }
  | { readonly type: "refused"; readonly code: ErrorCode; readonly message: string };
