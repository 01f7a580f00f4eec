import type { Logger } from "pino";

/** More lines within {@link WINDOW_MS} are only counted: a repeated error must not fill the disk. */
const MOST_LINES = 10;
const WINDOW_MS = 60_000;

/**
 * Keeps the daemon alive after an uncaught exception, which is logged.
 *
 * Exiting would be safer for most programs, but here any request that triggers a bug could end everybody's models. Other
 * measures limit the damage: models run in their own processes, files are written atomically, and requests have deadlines
 * that release what they hold.
 */
export function catchStrays(logger: Pick<Logger, "error">): Disposable {
  let lines = 0;
  let hushed = 0;
  let windowEnd = 0;
  const report = (err: unknown): void => {
    const now = performance.now();
    if (now >= windowEnd) {
      if (hushed > 0) logger.error({ times: hushed }, "Errors that were not logged one by one");
      windowEnd = now + WINDOW_MS;
      lines = 0;
      hushed = 0;
    }
    if (lines++ < MOST_LINES)
      logger.error({ err }, "Bug in the daemon, please report it; the daemon keeps running");
    else hushed++;
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
