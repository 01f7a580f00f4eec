import { once } from "node:events";
import { lstatSync } from "node:fs";
import net from "node:net";
import { z } from "zod";
import { isNamedPipe, socketPathProblem } from "../../daemon/listen.ts";
import { isNatsAuthFailure, describeNatsProblem } from "../../api/wire/machines.ts";
import { codeOrReason } from "../../errors/service-error.ts";
import { DaemonClient } from "../client/daemon-client.ts";
import { localEndpoints } from "../client/send-request.ts";
import { type Check, createCheck, note, ok, problem, type Result } from "./run-checks.ts";

/** Addresses of all interfaces. The check connects to the loopback address instead. */
const WILDCARD_ADDRESSES: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/** Longer than the requests to the daemon. */
const CHECK_DEADLINE_MS = 8000;

interface DaemonCheckOptions {
  readonly where: LocalDaemon;
  readonly daemon: Promise<FoundDaemon>;
  readonly version: string;
}

/** Checks whether a daemon runs, and whether its port and its socket are free. */
export function daemonCheck({ where, daemon, version }: DaemonCheckOptions): Check {
  return createCheck(
    "Daemon",
    async () => {
      const look = await daemon;
      // A daemon that runs without the port of this configuration was started with another one, or without any.
      const usesOtherPort = look.socketHealth !== undefined && look.portHealth === undefined;
      return [
        daemonFinding(look, version),
        ...(usesOtherPort ? [] : [{ name: "Port", ...(await portFinding(where, look)) }]),
        { name: "Socket", ...(await socketFinding(where, look)) },
      ];
    },
    CHECK_DEADLINE_MS,
  );
}

function daemonFinding({ socketHealth, portHealth, status }: FoundDaemon, version: string): Result {
  const health = socketHealth ?? portHealth;
  if (health === undefined) return ok("does not run; daybreak serve, run and chat start one");
  if (health !== "ok") return note(`runs, and is ${health}`);
  if (!status)
    return note("runs, but does not report its status", "Set SERVICE_API_KEY if it asks for a key.");
  const models = `${status.models_loaded} ${status.models_loaded === 1 ? "model" : "models"} in memory`;
  if (status.version === version) return ok(`runs, version ${version}, ${models}`);
  return note(
    `runs version ${status.version}, but this is ${version}`,
    "Run daybreak stop, then start it again.",
  );
}

async function portFinding(
  { http }: LocalDaemon,
  { socketHealth, portHealth, status }: FoundDaemon,
): Promise<Result> {
  const place = `${http.addr.includes(":") ? `[${http.addr}]` : http.addr}:${http.port}`;
  if (http.port === 0) return ok("chosen by the system at each start");
  if (portHealth !== undefined) {
    // The daemon may have been started with another address; only the port is certain.
    const where = WILDCARD_ADDRESSES.has(http.addr) ? String(http.port) : place;
    const otherUrl = socketHealth === undefined ? undefined : otherEndpoint(http.port, status);
    if (socketHealth !== undefined && otherUrl === undefined) return ok(`${where}: the daemon listens there`);
    return note(
      otherUrl === undefined
        ? `${where}: a daemon listens there, but not at the socket: it uses another socket, none, or runs under another account`
        : `${where}: another daemon listens there; the one at the socket ${otherUrl === "" ? "has no port" : `listens at ${otherUrl}`}`,
      "Until that daemon is stopped, one with this configuration does not start. Choose another port (http.port, --http-port) to run both.",
    );
  }
  const code = await listenProblem(http);
  switch (code) {
    case undefined:
      return ok(`${place} is free`);
    case "EADDRINUSE":
      return problem(
        `${place} is taken by another program`,
        "Choose another port (http.port, --http-port), or end that program.",
      );
    case "EACCES":
      return problem(
        `${place}: this account is not allowed to listen there`,
        "Choose a port of 1024 or higher (http.port).",
      );
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return problem(`${place}: this machine has no such address`, "Correct http.addr.");
    default:
      return problem(
        `${place}: the system refuses it (${code})`,
        "Choose another with http.addr and http.port.",
      );
  }
}

/** URL of the daemon at the socket if its port is another one; "" if it has none; undefined: this port, or unknown. */
function otherEndpoint(port: number, status: FoundDaemon["status"]): string | undefined {
  const endpoint = status?.http_endpoint;
  if (endpoint === undefined || endpoint === "") return endpoint;
  // A URL leaves out the port of its protocol.
  return (URL.parse(endpoint)?.port || "80") === String(port) ? undefined : endpoint;
}

async function socketFinding({ socket }: LocalDaemon, { socketHealth }: FoundDaemon): Promise<Result> {
  if (socket === "") return note("switched off; commands use the port, and daybreak stop does not work");
  if (socketHealth !== undefined) return ok(`${socket}: the daemon listens there`);
  const pathProblem = socketPathProblem(socket);
  if (pathProblem !== undefined)
    return problem(pathProblem.replace(/\.$/, ""), "Choose another (socket, --socket).");
  // A named pipe disappears with its daemon.
  if (isNamedPipe(socket)) return ok(`${socket} is free`);
  const stats = lstatSync(socket, { throwIfNoEntry: false });
  if (!stats) return ok(`${socket} is free`);
  if (!stats.isSocket()) {
    return problem(
      `${socket} exists and is not a socket`,
      "Remove it, or choose another (socket, --socket).",
    );
  }
  const code = await tryToConnect(socket);
  if (code === "ECONNREFUSED")
    return ok(`${socket} was left by a daemon that ended; the next one replaces it`);
  return problem(
    `${socket} belongs to a program that does not answer as a daemon does${code === undefined ? "" : ` (${code})`}`,
    "End that program, or choose another socket (socket, --socket).",
  );
}

/** System error code that would stop the daemon from listening; undefined if it could listen. */
async function listenProblem({ addr, port, isExplicit }: LocalDaemon["http"]): Promise<string | undefined> {
  if (addr === "0.0.0.0" && !isExplicit) {
    const code = await tryToListen({ host: "::", port });
    // Any other code means that the machine has no IPv6, which the daemon does not need.
    if (code === undefined || code === "EADDRINUSE" || code === "EACCES") return code;
  }
  return await tryToListen({ host: addr, port });
}

/** System error code of an attempt to listen; undefined if it succeeded. */
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

/** Deadline of the requests to the daemon; a busy one takes longer than usual. */
const DEADLINE_MS = 3000;

/** Part of the response of GET /api/system/status. */
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

/** Part of the response of GET /api/fleet. */
const fleetSchema = z.object({
  joined: z.boolean(),
  connected: z.boolean(),
  problem: z.string().optional(),
  sharing_problem: z.string().optional(),
  name: z.string(),
  machines: z.array(z.unknown()),
});

export interface FoundDaemon {
  /** Status of /health over the socket: "ok", "starting" or "draining"; undefined: no daemon. */
  readonly socketHealth: string | undefined;
  /** The same over TCP. */
  readonly portHealth: string | undefined;
  /** Undefined if no daemon runs, or it requires a key. */
  readonly status: z.infer<typeof statusSchema> | undefined;
  /** Undefined in the same cases as the status. */
  readonly fleet: z.infer<typeof fleetSchema> | undefined;
}

interface LocalDaemon {
  readonly socket: string;
  readonly http: {
    readonly addr: string;
    readonly port: number;
    /** False for the default address, which includes IPv6. */
    readonly isExplicit: boolean;
  };
  readonly apiKey: string | undefined;
}

/** Queries the local daemon at its socket and at its port. Rejects with the signal's reason only. */
export async function findDaemon(where: LocalDaemon, signal: AbortSignal): Promise<FoundDaemon> {
  const timeout = AbortSignal.timeout(DEADLINE_MS);
  const endpoints = localEndpoints(where);
  const client = (kinds: readonly string[]): DaemonClient =>
    new DaemonClient({
      endpoints: endpoints.filter(({ kind }) => kinds.includes(kind)),
      apiKey: where.apiKey,
      signal: AbortSignal.any([signal, timeout]),
    });
  const [socketHealth, portHealth, status, fleet] = await Promise.all([
    undefinedIfLate(client(["ipc"]).health(), signal),
    undefinedIfLate(client(["http"]).health(), signal),
    undefinedIfLate(client(["ipc", "http"]).json(statusSchema, "GET", "/api/system/status"), signal),
    undefinedIfLate(client(["ipc", "http"]).json(fleetSchema, "GET", "/api/fleet"), signal),
  ]);
  return { socketHealth, portHealth, status, fleet };
}

async function undefinedIfLate<Value>(
  answer: Promise<Value>,
  signal: AbortSignal,
): Promise<Value | undefined> {
  try {
    return await answer;
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

/**
 * Checks whether the daemon has joined the fleet that its configuration or its flags name; no finding without a fleet.
 */
export function fleetCheck(daemon: Promise<FoundDaemon>, isConfigured: boolean): Check {
  return createCheck(
    "Fleet",
    async () => {
      const { fleet } = await daemon;
      return isConfigured || fleet?.joined ? fleetFinding(fleet) : [];
    },
    CHECK_DEADLINE_MS,
  );
}

function fleetFinding(fleet: FoundDaemon["fleet"]): Result {
  if (!fleet) return note("fleet.nats is set, and no daemon tells of it", "Start one: daybreak serve.");
  if (!fleet.joined) {
    return note(
      "fleet.nats is set, but the daemon was started without it",
      "Run daybreak stop, then start it again.",
    );
  }
  if (!fleet.connected) {
    return problem(
      `the NATS server ${describeNatsProblem(fleet.problem)}; this machine works alone`,
      isNatsAuthFailure(fleet.problem)
        ? "Correct them in fleet.nats, or fleet.credentials, then run daybreak stop and start it again."
        : "Start the NATS server, or correct fleet.nats.",
    );
  }
  const { length } = fleet.machines;
  const joined = `joined as ${fleet.name}, ${length} ${length === 1 ? "machine" : "machines"}`;
  if (fleet.sharing_problem === undefined) return ok(joined);
  return note(`${joined}; ${fleet.sharing_problem}`, "Models are shared all the same.");
}
