import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { findProgram } from "./find-program.ts";
import { freePorts } from "./free-ports.ts";
import { need } from "./need.ts";
import { SELF_SIGNED } from "./self-signed-certificate.ts";

/** nats-server as Debian has it; null where it is not installed, and an error on CI. */
export const NATS_SERVER = findProgram("nats-server");
export const NATS = need("nats-server", NATS_SERVER !== null);
/** A server listens within a tenth of a second; this only ends what hangs. */
const START_DEADLINE_MS = 120_000;
/** How often the file with the ports is looked for. */
const LOOK_EVERY_MS = 20;

export interface NatsOptions {
  /** With JetStream, which keeps its files in the server's folder; as an object, with a bound on them in bytes. */
  readonly jetStream?: boolean | { readonly maxFileBytes: number };
  /**
   * TLS alone, with a certificate for 127.0.0.1 that is in `ca`; with "mutual" clients need one too, and the same
   * certificate with its key will do.
   */
  readonly tls?: boolean | "mutual";
  /** Further lines of the configuration: accounts, permissions, limits. */
  readonly config?: string;
  /** The configuration is this file, and nothing is added but where to listen; relative paths in it are in `folder`. */
  readonly configFile?: string;
  /** A program, with its arguments, that starts the server in its own place: "prlimit --fsize=65536", say. */
  readonly through?: readonly string[];
  /** Variables that the configuration uses. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A real nats-server in a process and a temporary folder of its own, on a free port of 127.0.0.1. */
export interface NatsServer {
  /** nats://127.0.0.1:port, or tls:// */
  readonly url: string;
  readonly port: number;
  /** Its folder, which is removed when it is stopped. */
  readonly folder: string;
  /** Files with the certificate that signs its own, and with a client's certificate and key, when it has TLS. */
  readonly certificate: { readonly ca: string; readonly cert: string; readonly key: string };
  /** Everything that its present process has written. */
  logs(): string;
  /** Sends a signal: SIGKILL is a crash, SIGSTOP a server that hangs, SIGCONT ends that. Waits for the end of the process, if it ends. */
  kill(signal: "SIGKILL" | "SIGTERM" | "SIGSTOP" | "SIGCONT"): Promise<void>;
  /** Starts it again, after kill(), on the same port and with the same files. */
  restart(): Promise<void>;
  /** Ends it by force and removes its folder. */
  stop(): Promise<void>;
}

interface ClusterPlace {
  readonly name: string;
  readonly url: string;
  /** Where all of them listen for each other. */
  readonly routes: readonly string[];
}

/** Starts a server and waits until it listens. The one who starts it stops it. */
export function startNats(options: NatsOptions = {}): Promise<NatsServer> {
  return startServer(options, null);
}

/** Starts servers that form one cluster, with JetStream on each, and waits until they have found a leader and each other. */
export async function startNatsCluster(size = 3, options: NatsOptions = {}): Promise<NatsServer[]> {
  const routes = (await freePorts(size)).map((port) => `nats://127.0.0.1:${port}`);
  const places = routes.map((url, index) => ({ name: `n${index + 1}`, url, routes }));
  const starts = await Promise.allSettled(places.map((place) => startServer(options, place)));
  const servers = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
  try {
    for (const start of starts) if (start.status === "rejected") throw start.reason;
    const deadline = Date.now() + START_DEADLINE_MS;
    const hasLeader = (): boolean =>
      servers.some((server) => /new (JetStream cluster )?metadata leader/i.test(server.logs()));
    while (!hasLeader()) {
      if (Date.now() > deadline)
        throw new Error(`no leader:\n${servers.map((server) => server.logs()).join("\n")}`);
      await sleep(LOOK_EVERY_MS);
    }
    // Those of a configuration's own need passwords.
    if (options.configFile === undefined) await untilCopied(servers, deadline);
    return servers;
  } catch (error) {
    await Promise.all(servers.map((server) => server.stop()));
    throw error;
  }
}

/** Waits until the leader has heard of all servers, and so gives a stream a copy on each of them. */
async function untilCopied(servers: readonly NatsServer[], deadline: number): Promise<void> {
  const nats = await connect({ servers: servers.map(({ url }) => url) });
  try {
    const { streams } = await jetstreamManager(nats, { checkAPI: false });
    for (;;) {
      try {
        await streams.add({ name: "probe", subjects: ["probe"], num_replicas: servers.length });
        await streams.delete("probe");
        return;
      } catch (error) {
        if (Date.now() > deadline) throw error;
        await sleep(LOOK_EVERY_MS);
      }
    }
  } finally {
    await nats.close();
  }
}

async function startServer(options: NatsOptions, place: ClusterPlace | null): Promise<NatsServer> {
  if (NATS_SERVER === null) throw new Error("nats-server is not installed: run .ci/install-nats");
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-nats-"));
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true });
  const certificate = writeCertificate(folder);
  const configFile = options.configFile ?? path.join(folder, "nats.conf");
  if (options.configFile === undefined) {
    writeFileSync(configFile, configuration(options, folder, certificate, place));
  }
  const start = {
    through: options.through ?? [],
    program: NATS_SERVER,
    configFile,
    folder,
    env: { ...options.env, ...clusterVariables(place) },
  };
  let run: Run;
  try {
    run = await spawnServer({ ...start, port: -1 });
  } catch (error) {
    removeFolder();
    throw error;
  }
  const { port, scheme } = run;
  return {
    url: `${scheme}://127.0.0.1:${port}`,
    port,
    folder,
    certificate,
    logs: () => run.logs(),
    async kill(signal) {
      run.child.kill(signal);
      if (signal === "SIGKILL" || signal === "SIGTERM") await run.exited;
    },
    async restart() {
      run = await spawnServer({ ...start, port });
    },
    async stop() {
      run.child.kill("SIGKILL");
      await run.exited;
      removeFolder();
    },
  };
}

/** Variables of configs/fleet/nats-cluster.conf. */
function clusterVariables(place: ClusterPlace | null): Record<string, string> {
  if (place === null) return {};
  const routes = place.routes.map((url, index) => [`NATS_ROUTE_${index + 1}`, url]);
  const listen = place.url.slice("nats://".length);
  return { NATS_NAME: place.name, NATS_CLUSTER_LISTEN: listen, ...Object.fromEntries(routes) };
}

function writeCertificate(folder: string): NatsServer["certificate"] {
  mkdirSync(path.join(folder, "tls"));
  const files = {
    ca: path.join(folder, "tls/ca.pem"),
    cert: path.join(folder, "tls/cert.pem"),
    key: path.join(folder, "tls/key.pem"),
  };
  writeFileSync(files.ca, SELF_SIGNED.cert);
  writeFileSync(files.cert, SELF_SIGNED.cert);
  writeFileSync(files.key, SELF_SIGNED.key, { mode: 0o600 });
  return files;
}

function configuration(
  options: NatsOptions,
  folder: string,
  { ca, cert, key }: NatsServer["certificate"],
  place: ClusterPlace | null,
): string {
  const quote = JSON.stringify;
  const lines: string[] = [];
  if (options.tls) {
    const files = `cert_file: ${quote(cert)}, key_file: ${quote(key)}, ca_file: ${quote(ca)}`;
    lines.push(`tls { ${files}, verify: ${options.tls === "mutual"} }`);
  }
  const jetStream = options.jetStream ?? place !== null;
  if (jetStream) {
    const bound = typeof jetStream === "object" ? `, max_file_store: ${jetStream.maxFileBytes}` : "";
    lines.push(`jetstream { store_dir: ${quote(path.join(folder, "jetstream"))}${bound} }`);
  }
  if (place !== null) {
    const listen = place.url.slice("nats://".length);
    lines.push(
      `server_name: ${place.name}`,
      `cluster { name: daybreak-test, listen: ${quote(listen)}, routes: ${quote(place.routes)} }`,
    );
  }
  return [...lines, options.config ?? "", ""].join("\n");
}

interface Run {
  readonly child: ChildProcess;
  readonly scheme: string;
  readonly port: number;
  readonly exited: Promise<unknown>;
  logs(): string;
}

interface Start {
  readonly program: string;
  readonly through: readonly string[];
  readonly configFile: string;
  readonly folder: string;
  /** -1 for a free one. */
  readonly port: number;
  readonly env: Readonly<Record<string, string>>;
}

/** Starts the process and waits until it listens. */
async function spawnServer({ program, through, configFile, folder, port, env }: Start): Promise<Run> {
  const args = ["-c", configFile, "-a", "127.0.0.1", "-p", `${port}`, "--ports_file_dir", folder];
  const command = [...through, program, ...args];
  const child = spawn(command[0] ?? "", command.slice(1), {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  const killOnExit = (): void => void child.kill("SIGKILL");
  process.once("exit", killOnExit);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  }
  const exited = once(child, "close").finally(() => process.off("exit", killOnExit));
  const portsFile = path.join(folder, `${path.basename(program)}_${child.pid}.ports`);
  const deadline = Date.now() + START_DEADLINE_MS;
  for (;;) {
    const listening = readPort(portsFile);
    if (listening !== null) return { child, ...listening, exited, logs: () => text };
    if (child.exitCode !== null || child.signalCode !== null || Date.now() > deadline) {
      child.kill("SIGKILL");
      await exited;
      throw new Error(`nats-server did not start:\n${text}`);
    }
    await sleep(LOOK_EVERY_MS);
  }
}

/** Reads the port that the server writes when it listens; null while the file is missing or incomplete. */
function readPort(file: string): { scheme: string; port: number } | null {
  if (!existsSync(file)) return null;
  const [, scheme, port] = /"nats":\s*\[\s*"([a-z]+):\/\/[^"]*:(\d+)"/.exec(readFileSync(file, "utf8")) ?? [];
  return scheme === undefined ? null : { scheme, port: Number(port) };
}
