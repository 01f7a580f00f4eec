import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "../config/schema.ts";
import { type App, createApp } from "../http/app.ts";
import type { ManagementServices } from "../api/management/management-services.ts";
import { userLimits } from "../machine/user-limits.ts";
import { connectionLimits } from "./connection-gate.ts";
import { batchLineRunner } from "./run-batch-line.ts";
import { createApis } from "./create-apis.ts";
import { createServices, type DaemonContext, type DaemonServices } from "./create-services.ts";
import { HttpListener } from "./http-listener.ts";
import { httpUrl, isNamedPipe, listenIpc, listenTcp, SocketUnavailableError } from "./listen.ts";
import { loadFirstModels } from "./create-models.ts";

/** Interval at which a draining daemon checks for running WebSocket chats. */
const DRAIN_POLL_MS = 50;

export interface RunningDaemon {
  /** URL for clients on this machine: 127.0.0.1 if it listens on all addresses. */
  readonly url: string;
  /** Path of the IPC socket; empty if there is none. */
  readonly socket: string;
  readonly services: ManagementServices;
  /** Settles when the first models are loaded, or have failed; never rejects. */
  readonly ready: Promise<void>;
  /** Resolves when the daemon has stopped. */
  readonly stopped: Promise<void>;
  /** Drains, then ends everything. A second call waits for the first. */
  stop(): Promise<void>;
}

interface StartOptions extends Pick<DaemonContext, "logger" | "activity"> {
  /** Names of options that the user has set; defaults may adapt to the machine. */
  readonly explicitOptions?: Pick<ReadonlySet<string>, "has">;
}

/**
 * Starts a daemon in this process. It listens when the promise resolves, and answers 503 until it is ready.
 * @throws DaemonStartError if it cannot listen
 */
export async function startDaemon(
  config: Config,
  { logger, activity, explicitOptions: chosen = new Set() }: StartOptions,
  compose: typeof createServices = createServices,
): Promise<RunningDaemon> {
  const draining = new AbortController();
  const stopped = Promise.withResolvers<void>();
  const stop = (): Promise<void> => {
    if (!draining.signal.aborted) drain(services, draining, listeners).then(stopped.resolve, stopped.reject);
    return stopped.promise;
  };
  const shutdown = (): void =>
    void stop().catch((error: unknown) => logger.error({ err: error }, "cannot stop"));
  const services = await compose(config, {
    logger,
    draining: draining.signal,
    shutdown,
    ...(activity && { activity }),
  });
  const app = createApp(services, createApis(services));
  const maxMessageBytes = config.http.body_limit;
  const connections = connectionLimits(userLimits().descriptors);
  const shared = { maxMessageBytes, logger };
  const tcp = new HttpListener(app, { ...shared, ipc: false, connections: connections.tcp });
  const ipc = new HttpListener(app, { ...shared, ipc: true, connections: connections.ipc });
  const listeners = [tcp, ipc];
  let socket = config.socket;
  let bound: Awaited<ReturnType<typeof listenTcp>>;
  try {
    if (socket !== "" && !(await tryListenIpc(ipc, socket, chosen.has("socket"), logger))) socket = "";
    bound = await listenTcp(tcp.server, { ...config.http, isExplicit: chosen.has("http.addr") });
  } catch (error) {
    await Promise.all(listeners.map((listener) => listener.close()));
    await services.close();
    throw error;
  }
  services.endpoints.http = httpUrl(config.http.addr, bound.port);
  services.endpoints.ipc = socket === "" ? "" : ipcUrl(socket);
  const ready = becomeReady(services, app);
  return {
    url: bound.url,
    socket,
    services,
    ready,
    stopped: stopped.promise,
    stop,
  };
}

async function becomeReady(services: DaemonServices, app: App): Promise<void> {
  await loadFirstModels(services);
  if (services.life.state === "starting") services.life.state = "ready";
  await services.batches?.start(batchLineRunner(app));
}

/**
 * Lets running requests finish, up to the deadline, while new ones get 503; then closes the listeners and stops the
 * engines. Endless requests, such as event streams, end by the signal.
 */
async function drain(
  services: DaemonServices,
  draining: AbortController,
  listeners: HttpListener[],
): Promise<void> {
  services.life.state = "draining";
  void services.batches?.stop();
  draining.abort(new Error("the daemon is shutting down"));
  const deadline = new AbortController();
  const { drain_timeout: millis } = services.config;
  const timer = Number.isFinite(millis) ? setTimeout(() => deadline.abort(), millis) : undefined;
  const drained = Promise.all([
    ...listeners.map((listener) => listener.idle()),
    noActiveRequests(services, deadline.signal),
  ]);
  await Promise.race([drained, once(deadline.signal, "abort")]);
  clearTimeout(timer);
  deadline.abort();
  await Promise.all(listeners.map((listener) => listener.close()));
  await services.close();
}

async function noActiveRequests(services: ManagementServices, signal: AbortSignal): Promise<void> {
  while (services.inference.activeRequests > 0 && !signal.aborted) await sleep(DRAIN_POLL_MS);
}

/** Listens on the IPC socket; returns false if the default socket cannot be created, since the daemon works without. */
async function tryListenIpc(
  listener: HttpListener,
  name: string,
  isExplicit: boolean,
  logger: StartOptions["logger"],
): Promise<boolean> {
  try {
    await listenIpc(listener.server, name);
    return true;
  } catch (error) {
    if (isExplicit || !(error instanceof SocketUnavailableError)) throw error;
    logger.warn(
      `The daemon runs without its IPC socket, so "daybreak stop" cannot find it. ${error.message}`,
    );
    return false;
  }
}

function ipcUrl(name: string): string {
  return isNamedPipe(name) ? `ipc:${name.replaceAll("\\", "/")}` : `ipc://${name}`;
}
