import type { CompatBuild } from "../engine/browser/compat-build.ts";
import type { PageModelFiles } from "../engine/browser/start-page-engine.ts";
import type { EngineInfo } from "../engine/protocol/engine-spec.ts";
import type { ErrorCode } from "../errors/error-codes.ts";
import type { TabModelOptions } from "./tab-model.ts";

/** The GPU in use, and the reason if it is not used as requested. */
export interface TabGpu {
  /** Name of the adapter that runs the model's layers; absent if all run on the CPU. */
  readonly adapter: string | undefined;
  /** Reason why the model, or a part of it, does not run on the GPU; absent if it runs as requested. */
  readonly problem: string | undefined;
}

/** The first message to the worker of an engine. */
export interface StartMessage {
  readonly type: "start";
  readonly alias: string;
  readonly files: PageModelFiles;
  /** Modelfile with the model's settings. */
  readonly modelfile: string | undefined;
  readonly wasmUrl: string;
  /** The build for older browsers. */
  readonly compat: CompatBuild;
  readonly options: TabModelOptions;
}

/** Messages from the worker about the engine. */
export type WorkerMessage =
  | { readonly type: "progress"; readonly progress: number }
  | { readonly type: "ready"; readonly alias: string; readonly info: EngineInfo; readonly gpu: TabGpu }
  | { readonly type: "refused"; readonly code: ErrorCode; readonly message: string };

/** HTTP requests and responses as messages between a page and the worker of its engine. The page chooses the IDs. */

type HeaderList = [name: string, value: string][];

interface RequestHead {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: HeaderList;
}

export type FetchMessage =
  | {
      readonly type: "request";
      readonly id: number;
      readonly head: RequestHead;
      readonly body: Uint8Array | undefined;
    }
  /** Requests the next chunk of the response. */
  | { readonly type: "pull"; readonly id: number }
  | { readonly type: "abort"; readonly id: number };

export type AnswerMessage =
  | { readonly type: "head"; readonly id: number; readonly status: number; readonly headers: HeaderList }
  | { readonly type: "piece"; readonly id: number; readonly bytes: Uint8Array }
  | { readonly type: "end"; readonly id: number }
  | { readonly type: "failed"; readonly id: number; readonly reason: string };
