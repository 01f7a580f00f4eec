import { z } from "zod";
import { lineChunks } from "../json/json-values.ts";
import { requestKey } from "./key-dialog.ts";
import { chosenDaemon, isExported, keyOf } from "./daemons.ts";

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
  /** True if the model is also stored in this browser. */
  readonly in_browser?: boolean;
};

const healthSchema = z.object({ status: z.enum(["ok", "starting", "draining"]) });
type Health = z.output<typeof healthSchema>["status"];

const errorSchema = z.object({ error: z.object({ message: z.string(), code: z.string().nullish() }) });

/** A fetch function of a daemon, or of an engine in this tab. */
export type Fetch = (path: string, init?: RequestInit) => Promise<Response>;

class ApiError extends Error {
  readonly code: string | undefined;

  constructor(message: string, code: string | undefined) {
    super(message);
    this.code = code;
  }
}

/** The daemon is not running, stopped before it answered, or rejects requests of this page. */
export class DaemonUnreachable extends Error {
  /** True if the daemon is running, but its CORS configuration excludes this page. */
  readonly isForbidden: boolean;

  constructor(
    cause: unknown,
    message = unreachableMessage(chosenDaemon()?.address ?? location.origin),
    isForbidden = false,
  ) {
    super(message, { cause });
    this.isForbidden = isForbidden;
  }
}

function unreachableMessage(address: string): string {
  return `The daemon at ${new URL(address).host} cannot be reached, or ended before it answered. Start it again, and repeat this.`;
}

/**
 * Sends a request to the chosen daemon with its API key. Asks the user for the key if the daemon requires one.
 * @throws DaemonUnreachable with a message for the user
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
      // Other errors are aborts by the user.
      throw error instanceof TypeError ? await unreachableError(daemon.address, error) : error;
    }
    if (answer.status !== 401 || !(await requestKey(daemon, key))) return answer;
  }
};

function withKey(init: RequestInit, key: string | undefined): RequestInit {
  if (key === undefined) return init;
  const headers = new Headers(init.headers);
  headers.set("authorization", `Bearer ${key}`);
  return { ...init, headers };
}

/** Finds out why a request failed. Browsers report an unreachable server and a CORS rejection with the same error. */
async function unreachableError(address: string, cause: unknown): Promise<DaemonUnreachable> {
  if (address === location.origin || !(await isReachable(address)))
    return new DaemonUnreachable(cause, unreachableMessage(address));
  const { host } = new URL(address);
  return new DaemonUnreachable(
    cause,
    `The daemon at ${host} does not let this page ask it. Add ${location.origin} to http.cors_origins (SERVICE_HTTP_CORS_ORIGINS) there, and start it again.`,
    true,
  );
}

/** True if a server at the address answers at all. Requests without CORS succeed for any origin. */
async function isReachable(address: string): Promise<boolean> {
  try {
    await fetch(new URL("/browser/store-worker.js", address), { method: "HEAD", mode: "no-cors" });
    return true;
  } catch {
    return false;
  }
}

/**
 * Sends a request to the daemon, or to an engine in this tab.
 * @throws ApiError with the code and the message of an error response
 */
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

/** Requests JSON from the daemon. @throws ApiError with the code and the message of an error response */
export async function fetchJson<Schema extends z.ZodType>(
  schema: Schema,
  path: string,
  init?: RequestInit,
  send?: Fetch,
): Promise<z.output<Schema>> {
  const answer = await request(path, init, send);
  return schema.parse(await answer.json());
}

/** Returns the daemon's state. The endpoint requires no API key. */
export async function fetchHealth(): Promise<Health> {
  const answer = await fetchDaemon("/health");
  return healthSchema.parse(await answer.json()).status;
}

export async function listModels(): Promise<ListedModel[]> {
  return (await fetchJson(z.object({ models: z.array(modelSchema) }), "/api/models")).models;
}

/** Returns the options of a POST request with a JSON body. */
export function post(body: object, signal?: AbortSignal): RequestInit {
  const headers = { "content-type": "application/json" };
  return { method: "POST", headers, body: JSON.stringify(body), ...(signal && { signal }) };
}

/** Settings for loading a model. Absent settings take the defaults of the model or the daemon. */
export interface LoadSettings {
  readonly context_size?: number;
  readonly gpu_layers?: number;
  readonly set_default?: boolean;
}

/** Loads a model in the daemon. */
export async function loadModel(
  alias: string,
  settings: LoadSettings = {},
  signal?: AbortSignal,
): Promise<void> {
  await request("/api/models/load", post({ alias, context_size: 0, ...settings }, signal));
}

/** True if the daemon returned an error with this code. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof ApiError && error.code === code;
}

/**
 * Parses a streamed response of JSON lines.
 * @throws DaemonUnreachable if the stream breaks off
 */
export async function* jsonLines(answer: Response): AsyncGenerator<unknown, void, undefined> {
  try {
    for await (const lines of lineChunks(answer.body))
      for (const line of lines) if (line !== "") yield JSON.parse(line);
  } catch (error) {
    throw error instanceof TypeError ? new DaemonUnreachable(error) : error;
  }
}
