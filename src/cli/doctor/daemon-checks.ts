import { once } from "node:events";
import { lstatSync } from "node:fs";
import net from "node:net";
import { z } from "zod";
import { isNamedPipe, socketPathProblem } from "../../daemon/listen.ts";
import { isRefused, natsTrouble } from "../../api/management/machine-schemas.ts";
import { codeOrReason } from "../../errors/reason-of.ts";
import { DaemonClient } from "../client/daemon-client.ts";
import { localEndpoints } from "../client/send-request.ts";
import { type Check, type Finding, note, ok, problem } from "./run-checks.ts";

/** Of all interfaces; the daemon is asked at the loopback address then. */
const ANY_ADDRESS: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);
const [NAME, PORT, SOCKET] = ["Daemon", "Port", "Socket"];

interface DaemonQuestion {
  readonly where: LocalDaemon;
  readonly daemon: Promise<FoundDaemon>;
  /** Of this program. */
  readonly version: string;
}

/** Whether a daemon runs, and whether the places where one listens are free or taken. */
export function daemonCheck({ where, daemon, version }: DaemonQuestion): Check {
  return {
    name: NAME,
    deadlineMs: 8000,
    look: async () => {
      const look = await daemon;
      // A daemon that runs without the port of this configuration was started with another one, or without any.
      const isElsewhere = look.atSocket !== undefined && look.atPort === undefined;
      return [
        daemonFinding(look, version),
        ...(isElsewhere ? [] : [await portFinding(where, look)]),
        await socketFinding(where, look),
      ];
    },
  };
}

function daemonFinding({ atSocket, atPort, status }: FoundDaemon, version: string): Finding {
  const health = atSocket ?? atPort;
  if (health === undefined) return ok(NAME, "does not run; daybreak serve, run and chat start one");
  if (health !== "ok") return note(NAME, `runs, and is ${health}`);
  if (!status)
    return note(NAME, "runs, but does not report its status", "Set SERVICE_API_KEY if it asks for a key.");
  const models = `${status.models_loaded} ${status.models_loaded === 1 ? "model" : "models"} in memory`;
  if (status.version === version) return ok(NAME, `runs, version ${version}, ${models}`);
  return note(
    NAME,
    `runs version ${status.version}, but this is ${version}`,
    "Run daybreak stop, then start it again.",
  );
}

async function portFinding(
  { http }: LocalDaemon,
  { atSocket, atPort, status }: FoundDaemon,
): Promise<Finding> {
  const place = `${http.addr.includes(":") ? `[${http.addr}]` : http.addr}:${http.port}`;
  if (http.port === 0) return ok(PORT, "chosen by the system at each start");
  if (atPort !== undefined) {
    // Of a daemon that was started with another address, the port alone is known.
    const where = ANY_ADDRESS.has(http.addr) ? String(http.port) : place;
    const elsewhere = atSocket === undefined ? undefined : otherEndpoint(http.port, status);
    if (atSocket !== undefined && elsewhere === undefined)
      return ok(PORT, `${where}: the daemon listens there`);
    return note(
      PORT,
      elsewhere === undefined
        ? `${where}: a daemon listens there, but not at the socket: it uses another socket, none, or runs under another account`
        : `${where}: another daemon listens there; the one at the socket ${elsewhere === "" ? "has no port" : `listens at ${elsewhere}`}`,
      "Until that daemon is stopped, one with this configuration does not start. Choose another port (http.port, --http-port) to run both.",
    );
  }
  const code = await whyTaken(http);
  switch (code) {
    case undefined:
      return ok(PORT, `${place} is free`);
    case "EADDRINUSE":
      return problem(
        PORT,
        `${place} is taken by another program`,
        "Choose another port (http.port, --http-port), or end that program.",
      );
    case "EACCES":
      return problem(
        PORT,
        `${place}: this account is not allowed to listen there`,
        "Choose a port of 1024 or higher (http.port).",
      );
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return problem(PORT, `${place}: this machine has no such address`, "Correct http.addr.");
    default:
      return problem(
        PORT,
        `${place}: the system refuses it (${code})`,
        "Choose another with http.addr and http.port.",
      );
  }
}

/** Where the daemon at the socket listens instead, "" for nowhere; undefined: at this port, or it does not say. */
function otherEndpoint(port: number, status: FoundDaemon["status"]): string | undefined {
  const endpoint = status?.http_endpoint;
  if (endpoint === undefined || endpoint === "") return endpoint;
  // A URL leaves out the port of its protocol.
  return (URL.parse(endpoint)?.port || "80") === String(port) ? undefined : endpoint;
}

async function socketFinding({ socket }: LocalDaemon, { atSocket }: FoundDaemon): Promise<Finding> {
  if (socket === "")
    return note(SOCKET, "switched off; commands use the port, and daybreak stop does not work");
  if (atSocket !== undefined) return ok(SOCKET, `${socket}: the daemon listens there`);
  const unfit = socketPathProblem(socket);
  if (unfit !== undefined)
    return problem(SOCKET, unfit.replace(/\.$/, ""), "Choose another (socket, --socket).");
  // A named pipe disappears with its daemon.
  if (isNamedPipe(socket)) return ok(SOCKET, `${socket} is free`);
  const stats = lstatSync(socket, { throwIfNoEntry: false });
  if (!stats) return ok(SOCKET, `${socket} is free`);
  if (!stats.isSocket()) {
    return problem(
      SOCKET,
      `${socket} exists and is not a socket`,
      "Remove it, or choose another (socket, --socket).",
    );
  }
  const code = await tryToConnect(socket);
  if (code === "ECONNREFUSED")
    return ok(SOCKET, `${socket} was left by a daemon that ended; the next one replaces it`);
  return problem(
    SOCKET,
    `${socket} belongs to a program that does not answer as a daemon does${code === undefined ? "" : ` (${code})`}`,
    "End that program, or choose another socket (socket, --socket).",
  );
}

/** The system's code for why the daemon could not listen there; undefined: it could. */
async function whyTaken({ addr, port, isChosen }: LocalDaemon["http"]): Promise<string | undefined> {
  if (addr === "0.0.0.0" && !isChosen) {
    const code = await tryToListen({ host: "::", port });
    // Any other code means that the machine has no IPv6; the daemon does without it then.
    if (code === undefined || code === "EADDRINUSE" || code === "EACCES") return code;
  }
  return await tryToListen({ host: addr, port });
}

/** The system's code for why nothing can listen there; undefined: it can. */
async function tryToListen(options: net.ListenOptions): Promise<string | undefined> {
  const server = net.createServer();
  try {
    server.listen(options);
    await once(server, "listening");
    return undefined;
  } catch (error) {
    return codeOrReason(error);
  } finally {
    server.close();
  }
}

async function tryToConnect(path: string): Promise<string | undefined> {
  const socket = net.connect(path);
  try {
    await once(socket, "connect");
    // The listener may close the connection before we do.
    socket.on("error", () => {});
    return undefined;
  } catch (error) {
    return codeOrReason(error);
  } finally {
    socket.destroy();
  }
}

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
export interface FoundDaemon {
  /** What answers /health there: "ok", "starting", "draining"; undefined: no daemon. */
  readonly atSocket: string | undefined;
  readonly atPort: string | undefined;
  /** Undefined when there is none, or when it does not say. */
  readonly status: z.infer<typeof statusSchema> | undefined;
  /** As the status. */
  readonly fleet: z.infer<typeof fleetSchema> | undefined;
}

interface LocalDaemon {
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
export async function findDaemon(where: LocalDaemon, signal: AbortSignal): Promise<FoundDaemon> {
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

async function statusOf(client: DaemonClient): Promise<FoundDaemon["status"]> {
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

const FLEET_CHECK_NAME = "Fleet";

/**
 * Whether the daemon has joined its fleet, which the configuration or a flag of the daemon names. Nothing where there is
 * none.
 */
export function fleetCheck(daemon: Promise<FoundDaemon>, isConfigured: boolean): Check {
  return {
    name: FLEET_CHECK_NAME,
    deadlineMs: 8000,
    look: async () => {
      const { fleet } = await daemon;
      return isConfigured || fleet?.joined ? [finding(fleet)] : [];
    },
  };
}

function finding(fleet: FoundDaemon["fleet"]): Finding {
  if (!fleet)
    return note(
      FLEET_CHECK_NAME,
      "fleet.nats is set, and no daemon tells of it",
      "Start one: daybreak serve.",
    );
  if (!fleet.joined) {
    return note(
      FLEET_CHECK_NAME,
      "fleet.nats is set, but the daemon was started without it",
      "Run daybreak stop, then start it again.",
    );
  }
  if (!fleet.connected) {
    return problem(
      FLEET_CHECK_NAME,
      `the NATS server ${natsTrouble(fleet.problem)}; this machine works alone`,
      isRefused(fleet.problem)
        ? "Correct them in fleet.nats, or fleet.credentials, then run daybreak stop and start it again."
        : "Start the NATS server, or correct fleet.nats.",
    );
  }
  const { length } = fleet.machines;
  const joined = `joined as ${fleet.name}, ${length} ${length === 1 ? "machine" : "machines"}`;
  if (fleet.sharing_problem === undefined) return ok(FLEET_CHECK_NAME, joined);
  return note(FLEET_CHECK_NAME, `${joined}; ${fleet.sharing_problem}`, "Models are shared all the same.");
}
