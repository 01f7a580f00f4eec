import { z } from "zod";

const modelSchema = z.object({
  alias: z.string(),
  state: z.string(),
  parameters: z.number().optional(),
  context_size: z.number().optional(),
  size_bytes: z.number().optional(),
  is_default: z.boolean(),
  purpose: z.string().optional(),
  capabilities: z.looseObject({ vision: z.boolean().optional() }).optional(),
  gpu_layers: z.number().optional(),
  progress: z.number().optional(),
  source: z.string().optional(),
  from: z.string().optional(),
  quantization: z.string().optional(),
  license: z.string().optional(),
  memory_bytes: z.number().optional(),
});
export type ListedModel = z.output<typeof modelSchema>;

const errorSchema = z.object({ error: z.object({ message: z.string(), code: z.string().nullish() }) });

/** Something that answers like a daemon: the daemon itself, or an engine of this tab. */
export type Fetch = (path: string, init?: RequestInit) => Promise<Response>;

/** An error that the daemon has told. */
class ApiError extends Error {
  readonly code: string | undefined;

  constructor(message: string, code: string | undefined) {
    super(message);
    this.code = code;
  }
}

/** The daemon does not run, or ended before it answered. */
export class DaemonAway extends Error {
  constructor(cause: unknown) {
    const message = `The daemon at ${location.host} cannot be reached, or ended before it answered. Start it again, and repeat this.`;
    super(message, { cause });
  }
}

/** @throws DaemonAway with a message for people */
export const askDaemon: Fetch = async (path, init = {}) => {
  try {
    return await fetch(path, init);
  } catch (error) {
    // Anything else is the abort of the person at the page.
    throw error instanceof TypeError ? new DaemonAway(error) : error;
  }
};

/** @throws an error with the `code` and the message that the daemon, or an engine of this tab, answers */
export async function request(path: string, init?: RequestInit, send: Fetch = askDaemon): Promise<Response> {
  const answer = await send(path, init);
  if (answer.ok) return answer;
  const { error } = errorSchema.safeParse(await answer.json().catch(() => undefined)).data ?? {};
  throw new ApiError(
    error?.message ?? `The daemon answered with status ${answer.status}.`,
    error?.code ?? undefined,
  );
}

export async function listModels(): Promise<ListedModel[]> {
  const answer = await request("/api/models");
  return z.object({ models: z.array(modelSchema) }).parse(await answer.json()).models;
}

/** A POST request with a body of JSON. */
export function post(body: object, signal?: AbortSignal): RequestInit {
  const headers = { "content-type": "application/json" };
  return { method: "POST", headers, body: JSON.stringify(body), ...(signal && { signal }) };
}

/** Loads a model in the daemon. */
export async function loadModel(alias: string, signal?: AbortSignal): Promise<void> {
  await request("/api/models/load", post({ alias }, signal));
}

/** Whether an error says that the daemon has no such model. */
export function isUnknownModel(error: unknown): boolean {
  return error instanceof ApiError && error.code === "model_not_found";
}

/** Whether an error says that the daemon would have to load the model first. */
export function isNotLoaded(error: unknown): boolean {
  return error instanceof ApiError && error.code === "model_not_loaded";
}
