import { loadSettingsSchema } from "../config/load-settings.ts";
import { SharedTask } from "../async/promises.ts";
import { type PageEngineOptions, startPageEngine } from "../engine/browser/start-page-engine.ts";
import type { Engine, StartEngine } from "../engine/engine.ts";
import { guardGpu } from "../engine/gpu/gpu-guard.ts";
import { ServiceError } from "../errors/service-error.ts";
import { detectCapabilities } from "../models/describe-model.ts";
import type { Model } from "../models/model.ts";
import type { ModelLease, Models } from "../models/models.ts";
import type { TabModel } from "./tab-model.ts";
import type { TabGpu } from "./worker-messages.ts";

type PageEngineHosting = Pick<
  PageEngineOptions,
  "wasmUrl" | "scriptUrl" | "loadTimeoutMs" | "stallTimeoutMs" | "log" | "onProgress"
>;

/** The only model of a page's engine. If the engine has ended, the next request starts it again. */
export class TabModels implements Pick<
  Models,
  "list" | "get" | "acquire" | "defaultAlias" | "scaleAdapters"
> {
  readonly #model: TabModel;
  readonly #start: StartEngine;
  #gpuProblem: string | undefined;
  #engine: Engine | undefined;
  #starting: SharedTask<Engine> | undefined;
  #users = 0;
  #adapterScales: readonly number[] | undefined;

  constructor(model: TabModel, hosting: PageEngineHosting) {
    this.#model = model;
    this.#start = this.#startGuarded(hosting);
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

  async scaleAdapters(name: string, scales: readonly number[]): Promise<void> {
    this.#check(name);
    this.#adapterScales = scales;
  }

  /** Returns a lease of the engine, starting it if necessary. */
  async acquire(name: string | undefined, signal: AbortSignal): Promise<ModelLease> {
    if (name !== undefined) this.#check(name);
    const engine = await this.start(signal);
    this.#users += 1;
    let isLeased = true;
    return {
      model: this.#describe(),
      engine,
      [Symbol.dispose]: () => {
        if (isLeased) this.#users -= 1;
        isLeased = false;
      },
    };
  }

  /** Returns the running engine. Concurrent callers share one start. */
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

  async #load(signal: AbortSignal): Promise<Engine> {
    const { spec, alias } = this.#model;
    this.#engine = await this.#start(spec, { alias, signal });
    return this.#engine;
  }

  /** Returns a start function that falls back to the CPU if the GPU fails, as in the daemon. */
  #startGuarded(hosting: PageEngineHosting): StartEngine {
    const { files, heapLimitBytes, gpu } = this.#model;
    const warn = (reason: string): void => hosting.log("warn", reason);
    return guardGpu({
      start: async (spec, { signal } = {}) =>
        await startPageEngine(spec, files, { ...hosting, heapLimitBytes, signal }),
      finder: gpu,
      onLoss: (_model, reason) => warn(reason),
      onReduction: (_model, _next, reason) => warn(reason),
      onShorterStep: () => {},
      isStepFixed: false,
      onFallback: (_model, reason) => {
        this.#gpuProblem = `The model was loaded on the CPU instead: ${reason}`;
        warn(this.#gpuProblem);
      },
    });
  }

  /** The GPU in use, and the reason if it is not used as requested. */
  get gpu(): TabGpu {
    const { adapter, problem, warning } = this.#model.gpu;
    const isUsed = (this.#engine?.info.gpuLayers ?? 0) > 0;
    return {
      adapter: isUsed ? adapter?.name : undefined,
      problem: this.#gpuProblem ?? warning ?? problem,
    };
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
      adapters: spec.adapters.map(({ path, scale }, index) => ({
        path,
        scale: this.#adapterScales?.[index] ?? scale,
        name: path,
      })),
      gguf,
      capabilities: detectCapabilities(gguf, files.projector && { image: true, audio: false }, settings),
      settings,
      loadSettings: loadSettingsSchema.parse(spec),
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
