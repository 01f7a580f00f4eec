import { z } from "zod";
import { askKey } from "./key-dialog.ts";
import { chosenDaemon, keyOf } from "./daemons.ts";
import { isExported } from "./page-kind.ts";

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
export type ListedModel = z.output<typeof modelSchema> & {
  /** This browser has its files. */
  readonly in_browser?: boolean;
};

const healthSchema = z.object({ status: z.enum(["ok", "starting", "draining"]) });
type Health = z.output<typeof healthSchema>["status"];

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

/** The daemon does not run, ended before it answered, or does not let this page ask it. */
export class DaemonUnreachable extends Error {
  /** It runs, but its configuration keeps this page out. */
  readonly isRefusal: boolean = false;

  constructor(cause: unknown, message = ended(chosenDaemon()?.address ?? location.origin)) {
    super(message, { cause });
  }
}

class DaemonRefusal extends DaemonUnreachable {
  override readonly isRefusal = true;
}

function ended(address: string): string {
  return `The daemon at ${new URL(address).host} cannot be reached, or ended before it answered. Start it again, and repeat this.`;
}

/**
 * Asks the chosen daemon, with its API key; a person is asked for the key when it wants one.
 * @throws DaemonAway with a message for people
 */
export const fetchDaemon: Fetch = async (path, init = {}) => {
  const daemon = chosenDaemon();
  if (!daemon) {
    throw new DaemonUnreachable(
      undefined,
      isExported
        ? "This page has no daemon: models run in this browser alone."
        : "This page uses no daemon. Choose one in the menu beside the page's name.",
    );
  }
  for (;;) {
    const key = keyOf(daemon.address);
    let answer: Response;
    try {
      answer = await fetch(new URL(path, daemon.address), withKey(init, key));
    } catch (error) {
      // Anything else is the abort of the person at the page.
      throw error instanceof TypeError ? await awayError(daemon.address, error) : error;
    }
    if (answer.status !== 401 || !(await askKey(daemon, key))) return answer;
  }
};

function withKey(init: RequestInit, key: string | undefined): RequestInit {
  if (key === undefined) return init;
  const headers = new Headers(init.headers);
  headers.set("authorization", `Bearer ${key}`);
  return { ...init, headers };
}

/** Browsers do not tell a page whether nobody answered, or whether the answer is not for it. */
async function awayError(address: string, cause: unknown): Promise<DaemonUnreachable> {
  if (address === location.origin || !(await answersAnybody(address)))
    return new DaemonUnreachable(cause, ended(address));
  const { host } = new URL(address);
  return new DaemonRefusal(
    cause,
    `The daemon at ${host} does not let this page ask it. Add ${location.origin} to http.cors_origins (SERVICE_HTTP_CORS_ORIGINS) there, and start it again.`,
  );
}

/** Whether a daemon gives out the engine, which is for pages of all origins; what it says stays hidden. */
async function answersAnybody(address: string): Promise<boolean> {
  try {
    await fetch(new URL("/browser/store-worker.js", address), { method: "HEAD", mode: "no-cors" });
    return true;
  } catch {
    return false;
  }
}

/** @throws an error with the `code` and the message that the daemon, or an engine of this tab, answers */
export async function request(
  path: string,
  init?: RequestInit,
  send: Fetch = fetchDaemon,
): Promise<Response> {
  const answer = await send(path, init);
  if (answer.ok) return answer;
  const { error } = errorSchema.safeParse(await answer.json().catch(() => undefined)).data ?? {};
  throw new ApiError(
    error?.message ?? `The daemon answered with status ${answer.status}.`,
    error?.code ?? undefined,
  );
}

/** Whether the daemon takes requests; it says so without a key. */
export async function askHealth(): Promise<Health> {
  const answer = await fetchDaemon("/health");
  return healthSchema.parse(await answer.json()).status;
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
  await request("/api/models/load", post({ alias, context_size: 0 }, signal));
}

/** Whether an error says that the daemon wants another API key, or one at all. */
export function isLocked(error: unknown): boolean {
  return error instanceof ApiError && error.code === "unauthorized";
}

/** Whether an error says that the daemon does not know the model. */
export function isUnknownModel(error: unknown): boolean {
  return error instanceof ApiError && error.code === "model_not_found";
}

/** Whether an error says that the daemon would have to load the model first. */
export function isNotLoaded(error: unknown): boolean {
  return error instanceof ApiError && error.code === "model_not_loaded";
}

/**
 * The values of an answer that is a stream of lines of JSON.
 * @throws DaemonAway when the stream is cut
 */
export async function* jsonLines(answer: Response): AsyncGenerator<unknown, void, undefined> {
  if (!answer.body) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      throw error instanceof TypeError ? new DaemonUnreachable(error) : error;
    });
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") yield JSON.parse(line);
  }
}
