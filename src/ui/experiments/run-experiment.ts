import {
  type ExperimentRequest,
  type ExperimentResult,
  experimentResultSchema,
} from "../../api/native/experiment.ts";
import type { ExperimentModelFile } from "../../experiments/experiment-file.ts";
import { fetchDaemon, isNotLoaded, listModels, loadModel, post, request as send } from "../daemon-api.ts";
import { modelFiles, TabEngine } from "../tab-engine.ts";

/** Where an experiment runs. */
export type Place = "browser" | "daemon";

/** Runs experiments in the daemon and in this tab. */
export class Runner {
  readonly #onProgress: (text: string) => void;
  /** Whether this tab is to use the browser's GPU. */
  readonly #wantsGpu: () => boolean;
  readonly #tab: TabEngine;

  /** @param onProgress called with a sentence for people */
  constructor(onProgress: (text: string) => void, wantsGpu: () => boolean) {
    this.#onProgress = onProgress;
    this.#wantsGpu = wantsGpu;
    this.#tab = new TabEngine(onProgress);
  }

  /** @throws Error with a message for people */
  async run(
    place: Place,
    model: string,
    request: ExperimentRequest,
    signal: AbortSignal,
  ): Promise<ExperimentResult> {
    const engine = place === "browser" ? await this.#tab.start(model, this.#wantsGpu(), signal) : undefined;
    this.#onProgress(`${model} answers in ${engine ? "this tab" : "the daemon"} …`);
    const ask = async (): Promise<Response> =>
      await send("/api/experiment", post({ ...request, model }, signal), engine?.fetch ?? fetchDaemon);
    const answer = await ask().catch(async (error: unknown) => {
      if (!isNotLoaded(error)) throw error;
      await loadModel(model, signal);
      return await ask();
    });
    return experimentResultSchema.parse(await answer.json());
  }
}

/** Names of the models that can generate, the default first. */
export async function modelNames(): Promise<string[]> {
  return (await listModels())
    .filter(({ purpose }) => purpose === "generate")
    .toSorted((one, other) => Number(other.is_default) - Number(one.is_default))
    .map(({ alias }) => alias);
}

/** What an experiment says of a model's files. */
export async function describeFiles(model: string): Promise<ExperimentModelFile[]> {
  const { files } = await modelFiles(model);
  return files.map(({ role, sha256, scale }) =>
    scale === undefined ? { role, sha256 } : { role, sha256, scale },
  );
}
