import { accessSync, constants, mkdirSync } from "node:fs";
import type { Logger } from "pino";
import type { LoadedConfig } from "../config/load-config.ts";
import { isNatsAuthFailure, describeNatsProblem } from "../api/wire/machines.ts";
import type { ManagementServices } from "../api/management/management-services.ts";
import { title } from "../engine/gpu/offload-to-gpu.ts";
import { isSystemError, ServiceError } from "../errors/service-error.ts";
import { writeRefusal } from "../files/file-operations.ts";
import { isLoopbackAddress } from "../http/client-address.ts";
import { Activity } from "./activity/activity.ts";
import { createAnnouncer, createLogger, type LogOutput } from "./create-logger.ts";
import { DaemonStartError } from "./listen.ts";
import { type RunningDaemon, startDaemon } from "./start-daemon.ts";

interface RunOptions {
  /** Output for the address and the ready message. */
  readonly stdout: LogOutput;
  /** Output for the log. */
  readonly stderr: LogOutput;
  /** Drains and stops the daemon. */
  readonly signal: AbortSignal;
}

/**
 * Runs a daemon until the signal aborts. Resolves when it has drained and its engines have stopped.
 * @throws DaemonStartError if it cannot start
 */
export async function runDaemon(
  { config, file, warnings, origins }: LoadedConfig,
  { stdout, stderr, signal }: RunOptions,
): Promise<void> {
  const activity = new Activity();
  const logger = createLogger(config.log, stderr, activity.log);
  const announce = createAnnouncer(config.log, stdout);
  using resources = new DisposableStack();
  resources.use(logUnhandledErrors(logger));
  if (file !== undefined) logger.info({ file }, "configuration read");
  for (const warning of warnings) logger.warn(warning);
  const warning = cacheWarning(config.cache_dir);
  if (warning !== undefined) logger.warn(warning);
  const daemon = await startDaemon(config, { logger, activity, explicitOptions: origins }).catch(
    (error: unknown) => {
      throw toStartError(error);
    },
  );
  const onSignal = (): void => daemon.services.shutdown();
  if (signal.aborted) onSignal();
  else signal.addEventListener("abort", onSignal, { once: true });
  daemon.services.draining.addEventListener("abort", () => {
    logger.info("draining: running requests may finish, new ones are refused");
  });
  announce(listeningLine(daemon));
  const exposure = exposureWarning(daemon.services);
  if (exposure !== undefined) logger.warn(exposure);
  await daemon.ready;
  try {
    if (!daemon.services.draining.aborted) {
      announce(gpuLine(daemon.services));
      const fleet = fleetLine(daemon.services);
      if (fleet !== undefined) announce(fleet);
      announce(await readyLine(daemon.services));
    }
  } catch (error) {
    // An engine may end, or draining may begin, meanwhile.
    logger.warn({ err: error }, "ready, but a loaded model is gone again");
  }
  await daemon.stopped;
  logger.info("stopped");
}

/** Converts service and system errors to messages for the user; other errors are bugs and keep their stack. */
function toStartError(error: unknown): unknown {
  if (error instanceof DaemonStartError) return error;
  const { code, message } = ServiceError.from(error);
  const sentence =
    code !== "internal_error" ? message : isSystemError(error) ? `${error.message}.` : undefined;
  return sentence === undefined
    ? error
    : new DaemonStartError(`The daemon cannot start. ${sentence}`, { cause: error });
}

/** "Daybreak 0.1.0 listens on http://127.0.0.1:8080 and ipc:///run/user/1000/daybreak.sock" */
function listeningLine({ url, services }: RunningDaemon): string {
  const { http, ipc } = services.endpoints;
  const everywhere = http === url ? "" : ` (on all addresses: ${http})`;
  return `Daybreak ${services.version} listens on ${url}${everywhere}${ipc === "" ? "" : ` and ${ipc}`}`;
}

/** "GPU: NVIDIA GeForce RTX 4070 (vulkan)", or why there is none. */
function gpuLine({ gpu }: ManagementServices): string {
  return gpu.adapter ? `GPU: ${title(gpu.adapter)}` : `No GPU: models run on the CPU. ${gpu.problem ?? ""}`;
}

/** "Ready: daybreak-mini, 4096 tokens of context, 2 threads, CPU" */
async function readyLine(services: ManagementServices): Promise<string> {
  const loaded = (await services.models.list()).filter((model) => model.state === "loaded");
  if (loaded.length === 0) {
    return "Ready, with no model loaded. GET /api/models lists those on disk; daybreak pull downloads one.";
  }
  const parts = await Promise.all(loaded.map((model) => describe(services, model.alias)));
  return `Ready: ${parts.join("; ")}`;
}

async function describe(services: ManagementServices, alias: string): Promise<string> {
  using lease = await services.models.acquire(alias, services.draining);
  const { contextSize, threads, gpuLayers } = lease.engine.info;
  const device = gpuLayers > 0 ? `${gpuLayers} layers on the GPU` : "CPU";
  return `${alias}, ${contextSize} tokens of context, ${threads} ${threads === 1 ? "thread" : "threads"}, ${device}`;
}

/** "Fleet: joined as desk; 3 machines: desk, laptop, workstation", or the problem of the NATS server. */
function fleetLine({ fleet }: ManagementServices): string | undefined {
  if (!fleet) return undefined;
  const { name, connected, problem, machines } = fleet.report();
  if (!connected && isNatsAuthFailure(problem))
    return `Fleet: the NATS server ${describeNatsProblem(problem)}; ${name} works alone until they are right`;
  if (!connected) return `Fleet: the NATS server is not reachable yet; ${name} works alone until it is`;
  const names = machines.map((machine) => machine.name).join(", ");
  return `Fleet: joined as ${name}; ${machines.length} ${machines.length === 1 ? "machine" : "machines"}: ${names}`;
}

/** Warning if anyone on the network can use the daemon. */
function exposureWarning({ config }: ManagementServices): string | undefined {
  if (isLoopbackAddress(config.http.addr) || config.api_keys.length > 0) return undefined;
  return (
    `Anyone who reaches ${config.http.addr} over the network can use this daemon: no API key is set. ` +
    "Use --http-addr 127.0.0.1 for this machine alone, or set api_keys."
  );
}

/**
 * Warning if the cache folder is not writable: the daemon then serves only the models on disk. Creates a missing
 * folder.
 */
function cacheWarning(folder: string): string | undefined {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return undefined;
  } catch (error) {
    const reason = writeRefusal(error) ?? String(error);
    return `Models cannot be downloaded or created, because ${folder} is not writable: ${reason}. Set SERVICE_CACHE_DIR to a folder that this account may write to.`;
  }
}

/** Lines within {@link WINDOW_MS}; further ones are only counted, so that a repeated error does not fill the disk. */
const MAX_LINES_PER_WINDOW = 10;
const WINDOW_MS = 60_000;

/**
 * Keeps the daemon alive after an uncaught exception, which is logged.
 *
 * Exiting would be safer for most programs, but here a request that triggers a bug would unload the models of all
 * clients. Other measures limit the damage: models run in separate processes, files are written atomically, and
 * requests have deadlines that release their resources.
 */
function logUnhandledErrors(logger: Pick<Logger, "error">): Disposable {
  let lines = 0;
  let suppressed = 0;
  let windowEnd = 0;
  const report = (err: unknown): void => {
    const now = performance.now();
    if (now >= windowEnd) {
      if (suppressed > 0) logger.error({ times: suppressed }, "Errors that were not logged one by one");
      windowEnd = now + WINDOW_MS;
      lines = 0;
      suppressed = 0;
    }
    if (lines++ < MAX_LINES_PER_WINDOW)
      logger.error({ err }, "Bug in the daemon, please report it; the daemon keeps running");
    else suppressed++;
  };
  process.on("uncaughtException", report);
  process.on("unhandledRejection", report);
  return {
    [Symbol.dispose]() {
      process.off("uncaughtException", report);
      process.off("unhandledRejection", report);
    },
  };
}
