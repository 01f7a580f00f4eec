import { z } from "zod";
import { DaemonClient } from "../client/daemon-client.ts";
import { localEndpoints } from "../client/endpoint.ts";

/** A daemon that serves answers at once, one that is busy a little later. */
const DEADLINE_MS = 3000;

/** Of GET /api/system/status. */
const statusSchema = z.object({
  version: z.string(),
  models_loaded: z.number(),
  http_endpoint: z.string().optional(),
  sandbox: z
    .object({
      mode: z.enum(["auto", "require", "off"]),
      wall: z.enum(["bubblewrap", "namespaces", "sandbox-exec", "none", "unknown"]),
      parts: z.array(z.string()),
      problem: z.string().optional(),
    })
    .optional(),
});

/** Of GET /api/fleet. */
const fleetSchema = z.object({
  joined: z.boolean(),
  connected: z.boolean(),
  problem: z.string().optional(),
  sharing_problem: z.string().optional(),
  name: z.string(),
  machines: z.array(z.unknown()),
});

/** The local daemon as it answers. */
export interface DaemonLook {
  /** What answers /health there: "ok", "starting", "draining"; undefined: no daemon. */
  readonly atSocket: string | undefined;
  readonly atPort: string | undefined;
  /** Undefined when there is none, or when it does not say. */
  readonly status: z.infer<typeof statusSchema> | undefined;
  /** As the status. */
  readonly fleet: z.infer<typeof fleetSchema> | undefined;
}

export interface LocalDaemon {
  readonly socket: string;
  readonly http: {
    readonly addr: string;
    readonly port: number;
    /** False for the default, which stands for IPv6 as well. */
    readonly isChosen: boolean;
  };
  readonly apiKey: string | undefined;
}

/** Looks for the local daemon at each of its places. Rejects with the signal's reason only. */
export async function lookForDaemon(where: LocalDaemon, signal: AbortSignal): Promise<DaemonLook> {
  const late = AbortSignal.timeout(DEADLINE_MS);
  const endpoints = localEndpoints(where);
  const client = (kinds: readonly string[]): DaemonClient =>
    new DaemonClient({
      endpoints: endpoints.filter(({ kind }) => kinds.includes(kind)),
      apiKey: where.apiKey,
      signal: AbortSignal.any([signal, late]),
    });
  const [atSocket, atPort, status, fleet] = await Promise.all([
    unlessLate(client(["ipc"]).health(), signal),
    unlessLate(client(["http"]).health(), signal),
    unlessLate(statusOf(client(["ipc", "http"])), signal),
    unlessLate(client(["ipc", "http"]).json(fleetSchema, "GET", "/api/fleet"), signal),
  ]);
  return { atSocket, atPort, status, fleet };
}

async function statusOf(client: DaemonClient): Promise<DaemonLook["status"]> {
  return statusSchema.parse(await client.json(statusSchema, "GET", "/api/system/status"));
}

async function unlessLate<Value>(answer: Promise<Value>, signal: AbortSignal): Promise<Value | undefined> {
  try {
    return await answer;
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}
