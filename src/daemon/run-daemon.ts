import type { LoadedConfig } from "../config/load-config.ts";
import { isSystemError } from "../errors/exhausted-resource.ts";
import { ServiceError } from "../errors/service-error.ts";
import { Activity } from "./activity/activity.ts";
import { cacheWarning } from "./cache-warning.ts";
import { createAnnouncer, createLogger, type LogOutput } from "./create-logger.ts";
import { DaemonStartError } from "./daemon-start-error.ts";
import { catchStrays } from "./last-net.ts";
import { startDaemon } from "./start-daemon.ts";
import { exposureWarning, fleetLine, gpuLine, listeningLine, readyLine } from "./start-lines.ts";

export interface RunOptions {
  /** For the lines that say where it listens and when it is ready. */
  readonly stdout: LogOutput;
  /** For the log. */
  readonly stderr: LogOutput;
  /** Aborting it drains the daemon; its owner also ends the process on a second request. */
  readonly signal: AbortSignal;
}

/**
 * Runs a daemon until the signal. Resolves when it has drained and ended all its engines; rejects with a
 * DaemonStartError when it cannot start.
 */
export async function runDaemon(
  { config, file, warnings, origins }: LoadedConfig,
  { stdout, stderr, signal }: RunOptions,
): Promise<void> {
  const activity = new Activity();
  const logger = createLogger(config.log, stderr, activity.log);
  const announce = createAnnouncer(config.log, stdout);
  using held = new DisposableStack();
  held.use(catchStrays(logger));
  if (file !== undefined) logger.info({ file }, "configuration read");
  for (const warning of warnings) logger.warn(warning);
  const warning = cacheWarning(config.cache_dir);
  if (warning !== undefined) logger.warn(warning);
  const daemon = await startDaemon(config, { logger, activity, chosen: origins }).catch((error: unknown) => {
    throw startFailure(error);
  });
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
    // An engine may end, or draining may begin, while it is being described.
    logger.warn({ err: error }, "ready, but a loaded model is gone again");
  }
  await daemon.stopped;
  logger.info("stopped");
}

/** System errors are shown to the user who starts the daemon; anything else is a bug, with its stack. */
function startFailure(error: unknown): unknown {
  if (error instanceof DaemonStartError) return error;
  const { code, message } = ServiceError.from(error);
  const sentence =
    code !== "internal_error" ? message : isSystemError(error) ? `${error.message}.` : undefined;
  return sentence === undefined
    ? error
    : new DaemonStartError(`The daemon cannot start. ${sentence}`, { cause: error });
}
