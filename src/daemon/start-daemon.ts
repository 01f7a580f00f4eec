import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "../config/schema.ts";
import { createApp } from "../http/app.ts";
import type { Services } from "../http/services.ts";
import { userLimits } from "../machine/user-limits.ts";
import { connectionLimits } from "./connection-limits.ts";
import { createServices, type DaemonContext } from "./create-services.ts";
import { HttpListener } from "./http-listener.ts";
import { isNamedPipe, listenIpc } from "./ipc-socket.ts";
import { listening } from "./listening.ts";
import { loadFirstModels } from "./load-first-models.ts";

/** How often a draining daemon looks whether the chats of its WebSockets have ended. */
const DRAIN_POLL_MS = 50;

export interface RunningDaemon {
  /** Where this machine reaches it: 127.0.0.1 when it listens on every address. */
  readonly url: string;
  /** Path of its IPC endpoint; empty when that is off. */
  readonly socket: string;
  readonly services: Services;
  /** Settles when the first models are loaded, or have failed; never rejects. */
  readonly ready: Promise<void>;
  /** Resolves when it has ended, whoever asked for it. */
  readonly stopped: Promise<void>;
  /** Drains, then ends everything. A second call waits for the first. */
  stop(): Promise<void>;
}

/**
 * Starts a daemon in this process. It listens when the promise resolves and answers 503 until it is ready.
 * Rejects with a DaemonStartError when it cannot listen.
 */
export async function startDaemon(
  config: Config,
  { logger }: Pick<DaemonContext, "logger">,
  compose: typeof createServices = createServices,
): Promise<RunningDaemon> {
  const life = new AbortController();
  const stopped = Promise.withResolvers<void>();
  const stop = (): Promise<void> => {
    if (!life.signal.aborted) drain(services, life, listeners).then(stopped.resolve, stopped.reject);
    return stopped.promise;
  };
  const shutdown = (): void =>
    void stop().catch((error: unknown) => logger.error({ err: error }, "cannot stop"));
  const services = await compose(config, { logger, draining: life.signal, shutdown });
  const app = createApp(services);
  const maxMessageBytes = config.http.body_limit;
  const connections = connectionLimits(userLimits().descriptors);
  const shared = { maxMessageBytes, logger };
  const tcp = new HttpListener(app, { ...shared, ipc: false, connections: connections.tcp });
  const ipc =
    config.socket === ""
      ? undefined
      : new HttpListener(app, { ...shared, ipc: true, connections: connections.ipc });
  const listeners = ipc ? [tcp, ipc] : [tcp];
  try {
    if (ipc) await listenIpc(ipc.server, config.socket);
    await listenTcp(tcp, config.http);
  } catch (error) {
    await Promise.all(listeners.map((listener) => listener.close()));
    await services.models.close();
    throw error;
  }
  const port = boundPort(tcp);
  services.endpoints.http = `http://${urlHost(config.http.addr)}:${port}`;
  services.endpoints.ipc = config.socket === "" ? "" : ipcUrl(config.socket);
  const ready = loadFirstModels(services).finally(() => {
    if (services.life.state === "starting") services.life.state = "ready";
  });
  return {
    url: `http://${urlHost(reachable(config.http.addr))}:${port}`,
    socket: config.socket,
    services,
    ready,
    stopped: stopped.promise,
    stop,
  };
}

/**
 * Lets running requests end, up to the deadline, while new ones get 503; then closes the doors and ends the
 * engines. What waits without end, such as an event stream, ends by the signal.
 */
async function drain(services: Services, life: AbortController, listeners: HttpListener[]): Promise<void> {
  services.life.state = "draining";
  life.abort(new Error("the daemon is shutting down"));
  using deadline = disposableDeadline(services.config.drain_timeout);
  const drained = Promise.all([
    ...listeners.map((listener) => listener.idle()),
    noActiveRequests(services, deadline.signal),
  ]);
  await Promise.race([drained, deadline.passed]);
  await Promise.all(listeners.map((listener) => listener.close()));
  await services.models.close();
}

async function noActiveRequests(services: Services, signal: AbortSignal): Promise<void> {
  while (services.inference.activeRequests > 0 && !signal.aborted) await sleep(DRAIN_POLL_MS);
}

function disposableDeadline(millis: number): Disposable & { signal: AbortSignal; passed: Promise<void> } {
  const controller = new AbortController();
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = Number.isFinite(millis) ? setTimeout(resolve, millis) : undefined;
  return {
    signal: controller.signal,
    passed: promise,
    [Symbol.dispose]() {
      clearTimeout(timer);
      controller.abort();
    },
  };
}

async function listenTcp(listener: HttpListener, { addr, port }: Config["http"]): Promise<void> {
  await listening(listener.server, () => listener.server.listen(port, addr), `${addr}, port ${port}`);
}

function boundPort(listener: HttpListener): number {
  const address = listener.server.address();
  if (address === null || typeof address === "string") throw new Error("a TCP listener has no port");
  return address.port;
}

/** IPv6 addresses stand in brackets in a URL. */
function urlHost(address: string): string {
  return net.isIPv6(address) ? `[${address}]` : address;
}

function reachable(address: string): string {
  if (address === "0.0.0.0") return "127.0.0.1";
  return address === "::" ? "::1" : address;
}

function ipcUrl(name: string): string {
  return isNamedPipe(name) ? `ipc:${name.replaceAll("\\", "/")}` : `ipc://${name}`;
}
