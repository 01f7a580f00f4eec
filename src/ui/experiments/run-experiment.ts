import {
  type ExperimentRequest,
  type ExperimentResult,
  experimentResultSchema,
} from "../../api/wire/native.ts";
import { experimentFiles, type ExperimentModelFile } from "../../experiments/experiments.ts";
import { fetchJson, hasCode, listModels, loadModel, post } from "../daemon-api.ts";
import { fetchModelFiles, TabEngine } from "../tab-engine.ts";

/** Engine that runs an experiment: this tab's or the daemon's. */
export type EngineLocation = "browser" | "daemon";

/** Runs experiments in the daemon and in this tab. */
export class ExperimentRunner {
  readonly #onProgress: (text: string) => void;
  /** True if this tab should use the browser's GPU. */
  readonly #usesGpu: () => boolean;
  readonly #tab: TabEngine;

  /** @param onProgress called with a status text for the user */
  constructor(onProgress: (text: string) => void, usesGpu: () => boolean) {
    this.#onProgress = onProgress;
    this.#usesGpu = usesGpu;
    this.#tab = new TabEngine(onProgress);
  }

  /** @throws Error with a message for the user */
  async run(
    location: EngineLocation,
    model: string,
    request: ExperimentRequest,
    signal: AbortSignal,
  ): Promise<ExperimentResult> {
    const engine = location === "browser" ? await this.#tab.start(model, this.#usesGpu(), signal) : undefined;
    this.#onProgress(`${model} answers in ${engine ? "this tab" : "the daemon"} …`);
    const sendRequest = async (): Promise<ExperimentResult> => {
      const init = post({ ...request, model }, signal);
      return await fetchJson(experimentResultSchema, "/api/experiment", init, engine?.fetch);
    };
    return await sendRequest().catch(async (error: unknown) => {
      if (!hasCode(error, "model_not_loaded")) throw error;
      await loadModel(model, {}, signal);
      return await sendRequest();
    });
  }
}

/** Returns the names of the models that generate text, the default first. */
export async function generatingModels(): Promise<string[]> {
  return (await listModels())
    .filter(({ purpose }) => purpose === "generate")
    .toSorted((one, other) => Number(other.is_default) - Number(one.is_default))
    .map(({ alias }) => alias);
}

/** Returns the hashes of a model's files, as experiments record them. */
export async function describeFiles(model: string): Promise<ExperimentModelFile[]> {
  return experimentFiles((await fetchModelFiles(model)).files);
}
