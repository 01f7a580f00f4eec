import type { Engine } from "../../engine/engine.ts";
import type { Model, ModelLease } from "../model.ts";
import type { LoadedModel } from "./loaded-model.ts";

/** A loaded model in the hands of one request. Disposing of it gives the model back; doing so again has no effect. */
export class Lease implements ModelLease {
  readonly model: Model;
  readonly engine: Engine;
  readonly #loaded: LoadedModel;
  readonly #onReturn: () => void;
  #isHeld = true;

  /**
   * @param model what the request sees of it
   * @param onReturn called once, when the model is given back
   */
  constructor(loaded: LoadedModel, engine: Engine, model: Model, onReturn: () => void) {
    this.model = model;
    this.engine = engine;
    this.#loaded = loaded;
    this.#onReturn = onReturn;
    loaded.retain();
  }

  /** Changes how long the model stays when idle, in milliseconds, from now on. */
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
