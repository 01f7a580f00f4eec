import { z } from "zod";
import {
  experimentResultSchema,
  type ExperimentRequest,
  type ExperimentResult,
} from "../../dialects/native/experiment.ts";
import { modelFilesSchema } from "../../dialects/management/model-file-routes.ts";
import type { ExperimentModelFile } from "../../experiments/experiment-file.ts";
import { type BrowserEngine, createEngine } from "../../tab/create-engine.ts";
import { ModelStore } from "../../tab/store/model-store.ts";

const errorSchema = z.object({ error: z.object({ message: z.string(), code: z.string().nullish() }) });

/** Where an experiment runs. */
export type Place = "browser" | "daemon";

/** Runs experiments in the daemon and in this tab, which keeps its last engine. */
export class Runner {
  readonly #onProgress: (text: string) => void;
  readonly #store = new ModelStore();
  #engine: { readonly key: string; readonly engine: BrowserEngine } | undefined;

  /** @param onProgress called with a sentence for people */
  constructor(onProgress: (text: string) => void) {
    this.#onProgress = onProgress;
  }

  /** @throws Error with a message for people */
  async run(
    place: Place,
    model: string,
    request: ExperimentRequest,
    signal: AbortSignal,
  ): Promise<ExperimentResult> {
    const answer = place === "daemon" ? fetch : (await this.#start(model, signal)).fetch;
    this.#onProgress(`${model} answers in ${place === "daemon" ? "the daemon" : "this tab"} …`);
    const body = { ...request, model };
    return await post(answer, "/api/experiment", body, signal);
  }

  async #start(model: string, signal: AbortSignal): Promise<BrowserEngine> {
    const { files, modelfile } = await filesOf(model, signal);
    const key = JSON.stringify([model, modelfile, files.map(({ sha256 }) => sha256)]);
    if (this.#engine?.key === key) return this.#engine.engine;
    this.#engine?.engine.close();
    this.#engine = undefined;
    const download = (share: number): void =>
      this.#onProgress(`Downloading ${model} into this browser: ${Math.round(share * 100)} %`);
    await this.#store.download(model, { onProgress: download, signal });
    const engine = await createEngine({
      ...(await this.#store.open(model)),
      onProgress: (share) => this.#onProgress(`Loading ${model} into this tab: ${Math.round(share * 100)} %`),
      signal,
    });
    this.#engine = { key, engine };
    return engine;
  }
}

/** Names of the models that can generate, the default first. */
export async function listModels(): Promise<string[]> {
  const entry = z.object({ alias: z.string(), is_default: z.boolean(), state: z.string() });
  const { models } = z
    .object({ models: z.array(entry) })
    .parse(await (await get("/api/models", undefined)).json());
  return models
    .filter(({ state }) => state !== "downloading")
    .toSorted((one, other) => Number(other.is_default) - Number(one.is_default))
    .map(({ alias }) => alias);
}

/** What an experiment says of a model's files. */
export async function describeFiles(model: string): Promise<ExperimentModelFile[]> {
  const { files } = await filesOf(model, undefined);
  return files.map(({ role, sha256, scale }) =>
    scale === undefined ? { role, sha256 } : { role, sha256, scale },
  );
}

async function filesOf(model: string, signal: AbortSignal | undefined) {
  const answer = await get(`/api/models/${encodeURIComponent(model)}/files`, signal);
  return modelFilesSchema.parse(await answer.json());
}

async function get(url: string, signal: AbortSignal | undefined): Promise<Response> {
  const answer = await fetch(url, signal ? { signal } : {});
  if (!answer.ok) throw await errorOf(answer);
  return answer;
}

async function post(
  answerer: typeof fetch,
  path: string,
  body: object,
  signal: AbortSignal,
): Promise<ExperimentResult> {
  const headers = { "content-type": "application/json" };
  const ask = () => answerer(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  let answer = await ask();
  if (!answer.ok) {
    const error = await errorOf(answer);
    if (error.code !== "model_not_loaded" || !("model" in body)) throw error;
    await load(String(body.model), signal);
    answer = await ask();
    if (!answer.ok) throw await errorOf(answer);
  }
  return experimentResultSchema.parse(await answer.json());
}

async function load(alias: string, signal: AbortSignal): Promise<void> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch("/api/models/load", {
    method: "POST",
    headers,
    body: JSON.stringify({ alias }),
    signal,
  });
  if (!answer.ok) throw await errorOf(answer);
}

class ApiError extends Error {
  readonly code: string | undefined;

  constructor(message: string, code: string | undefined) {
    super(message);
    this.code = code;
  }
}

async function errorOf(answer: Response): Promise<ApiError> {
  const body = errorSchema.safeParse(await answer.json().catch(() => undefined)).data;
  return new ApiError(
    body?.error.message ?? `The server answered with status ${answer.status}.`,
    body?.error.code ?? undefined,
  );
}
