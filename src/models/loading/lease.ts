import type { Engine } from "../../engine/engine.ts";
import { type ContextExcess, ServiceError } from "../../errors/service-error.ts";
import type { Model } from "../model.ts";
import type { ModelLease } from "../models.ts";
import type { LoadedModel } from "./loaded-model.ts";

/** Loading takes seconds; after that a retry can succeed. */
const RETRY_SECS = 2;

/** A loaded model, held by one request. Disposing it releases the model; doing so twice has no effect. */
export class Lease implements ModelLease {
  readonly model: Model;
  readonly engine: Engine;
  readonly #loaded: LoadedModel;
  readonly #onReturn: () => void;
  readonly explainExcess: (excess: ContextExcess) => string;
  adapter: string | undefined;
  #isHeld = true;

  /**
   * @param model description for the request
   * @param explain what a client is told whose prompt is longer than the context
   * @param onReturn called once, when the lease is released
   */
  constructor(
    loaded: LoadedModel,
    engine: Engine,
    model: Model,
    explain: (excess: ContextExcess) => string,
    onReturn: () => void,
  ) {
    this.model = model;
    this.engine = engine;
    this.#loaded = loaded;
    this.explainExcess = explain;
    this.#onReturn = onReturn;
    loaded.retain();
  }

  /** Changes how long the model stays loaded when idle, in milliseconds. */
  keepFor(milliseconds: number): void {
    this.#loaded.keepFor(milliseconds);
  }

  [Symbol.dispose](): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#onReturn();
    this.#loaded.release();
  }
}

/** The error for a request that comes before its model is there. */
export function stillLoading(alias: string, being: "downloaded" | "loaded"): ServiceError {
  return new ServiceError("model_loading", `The model "${alias}" is being ${being}.`, {
    retryAfterSecs: RETRY_SECS,
  });
}

/** The error for a request whose model may not be loaded on demand. */
export function notLoaded(alias: string): ServiceError {
  return new ServiceError(
    "model_not_loaded",
    `The model "${alias}" is not loaded; load it with POST /api/models/load {"alias": ${JSON.stringify(alias)}} or "daybreak load ${alias}", or start the daemon without --no-auto-load (models.auto_load = false).`,
    { param: "model" },
  );
}

/** The error of a load of a model that is loaded. */
export function alreadyLoaded(alias: string): ServiceError {
  return new ServiceError(
    "model_already_loaded",
    `The model "${alias}" is loaded already; to load it with other settings, unload it first, with POST /api/models/${alias}/unload or "daybreak unload ${alias}".`,
  );
}
