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
  /** Whether this tab is to use the browser's GPU. */
  readonly #wantsGpu: () => boolean;
  #engine:
    | {
        readonly model: string;
        readonly gpu: boolean;
        readonly files?: string | undefined;
        readonly engine: BrowserEngine;
      }
    | undefined;

  /** @param onProgress called with a sentence for people */
  constructor(onProgress: (text: string) => void, wantsGpu: () => boolean) {
    this.#onProgress = onProgress;
    this.#wantsGpu = wantsGpu;
  }

  /** @throws Error with a message for people */
  async run(
    place: Place,
    model: string,
    request: ExperimentRequest,
    signal: AbortSignal,
  ): Promise<ExperimentResult> {
    const answer = place === "daemon" ? askDaemon : (await this.#start(model, signal)).fetch;
    this.#onProgress(`${model} answers in ${place === "daemon" ? "the daemon" : "this tab"} …`);
    const body = { ...request, model };
    return await post(answer, "/api/experiment", body, signal);
  }

  async #start(model: string, signal: AbortSignal): Promise<BrowserEngine> {
    const gpu = this.#wantsGpu();
    const found = await filesOf(model, signal).catch(async (error: unknown) => {
      // What is stored here needs no daemon.
      if (error instanceof DaemonAway && (await this.#isStored(model))) return undefined;
      throw error;
    });
    const files = found && JSON.stringify(found);
    const last = this.#engine;
    if (last?.model === model && last.gpu === gpu && (files === undefined || last.files === files))
      return last.engine;
    last?.engine.close();
    this.#engine = undefined;
    const onDownload = (share: number): void =>
      this.#onProgress(`Downloading ${model} into this browser: ${Math.round(share * 100)} %`);
    if (files !== undefined) await this.#store.download(model, { onProgress: onDownload, signal });
    const engine = await createEngine({
      ...(await this.#store.open(model)),
      gpu,
      onProgress: (share) => this.#onProgress(`Loading ${model} into this tab: ${Math.round(share * 100)} %`),
      signal,
    });
    if (gpu && engine.gpu.adapter === undefined) {
      engine.close();
      throw new Error(`This tab cannot use a GPU. ${engine.gpu.problem}`);
    }
    this.#engine = { model, gpu, files, engine };
    return engine;
  }

  async #isStored(model: string): Promise<boolean> {
    return (await this.#store.list()).some(({ name, size, stored }) => name === model && size === stored);
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
  const answer = await askDaemon(url, signal ? { signal } : {});
  if (!answer.ok) throw await errorOf(answer);
  return answer;
}

async function post(
  answerer: BrowserEngine["fetch"],
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
  const answer = await askDaemon("/api/models/load", {
    method: "POST",
    headers,
    body: JSON.stringify({ alias }),
    signal,
  });
  if (!answer.ok) throw await errorOf(answer);
}

/** The daemon does not run, or ended before it answered. */
class DaemonAway extends Error {}

/** @throws DaemonAway with a message for people */
async function askDaemon(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  try {
    return await fetch(input, init);
  } catch (error) {
    // Anything else is the abort of the person at the page.
    if (!(error instanceof TypeError)) throw error;
    const message = `The daemon at ${location.host} cannot be reached, or ended before it answered. Start it again, and repeat this.`;
    throw new DaemonAway(message, { cause: error });
  }
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
