import { SharedTask } from "../async/shared-task.ts";
import { type PageEngineOptions, startPageEngine } from "../engine/browser/start-page-engine.ts";
import type { Engine } from "../engine/engine.ts";
import { ServiceError } from "../errors/service-error.ts";
import { detectCapabilities } from "../models/describe-model.ts";
import type { Model, ModelLease, Models } from "../models/model.ts";
import type { TabModel } from "./tab-model.ts";

export type EngineHosting = Pick<
  PageEngineOptions,
  "wasmUrl" | "loadTimeoutMs" | "stallTimeoutMs" | "log" | "onProgress"
>;

/** The one model of a page's engine. It is started again by the next request after its engine has ended. */
export class TabModels implements Pick<Models, "list" | "get" | "acquire" | "defaultAlias"> {
  readonly #model: TabModel;
  readonly #hosting: EngineHosting;
  #engine: Engine | undefined;
  #starting: SharedTask<Engine> | undefined;
  #users = 0;

  constructor(model: TabModel, hosting: EngineHosting) {
    this.#model = model;
    this.#hosting = hosting;
  }

  get defaultAlias(): string {
    return this.#model.alias;
  }

  async list(): Promise<readonly Model[]> {
    return [this.#describe()];
  }

  async get(name: string): Promise<Model> {
    this.#check(name);
    return this.#describe();
  }

  /** Lends the engine, started first where it does not run. */
  async acquire(name: string | undefined, signal: AbortSignal): Promise<ModelLease> {
    if (name !== undefined) this.#check(name);
    const engine = await this.start(signal);
    this.#users += 1;
    let isHeld = true;
    return {
      model: this.#describe(),
      engine,
      [Symbol.dispose]: () => {
        if (isHeld) this.#users -= 1;
        isHeld = false;
      },
    };
  }

  /** The running engine; concurrent callers share one start. */
  async start(signal?: AbortSignal): Promise<Engine> {
    if (this.#engine?.alive) return this.#engine;
    if (!this.#starting || this.#starting.aborted) {
      const starting = new SharedTask((abort) => this.#load(abort));
      this.#starting = starting;
      void starting.settled.finally(() => {
        if (this.#starting === starting) this.#starting = undefined;
      });
    }
    return await this.#starting.join(signal);
  }

  /** Ends the engine; requests in flight fail. */
  async close(): Promise<void> {
    this.#starting?.abort(new ServiceError("model_not_loaded", "The engine was closed."));
    await this.#engine?.close();
  }

  async #load(signal: AbortSignal): Promise<Engine> {
    const { spec, files, heapLimitBytes } = this.#model;
    this.#engine = await startPageEngine(spec, files, { ...this.#hosting, heapLimitBytes, signal });
    return this.#engine;
  }

  #check(name: string): void {
    const { alias } = this.#model;
    if (name === alias || name === `${alias}:latest`) return;
    throw new ServiceError(
      "model_not_found",
      `This page's engine has only the model "${alias}", not "${name}".`,
      { param: "model" },
    );
  }

  #describe(): Model {
    const { alias, files, gguf, settings, spec } = this.#model;
    const engine = this.#engine?.alive ? this.#engine : undefined;
    return {
      alias,
      source: { kind: "file" },
      state: engine ? "loaded" : this.#starting ? "loading" : "available",
      path: spec.modelFiles[0] ?? "",
      files: spec.modelFiles,
      projector: spec.projectorFile,
      adapters: spec.adapters,
      gguf,
      capabilities: detectCapabilities(gguf, files.projector !== undefined, settings),
      settings,
      contextSize: engine?.info.contextSize ?? spec.contextSize,
      gpuLayers: engine?.info.gpuLayers ?? 0,
      isDefault: true,
      activeRequests: this.#users,
      modifiedAt: 0,
      memoryBytes: undefined,
      expiresAt: undefined,
    };
  }
}
