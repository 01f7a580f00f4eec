import type { Logger } from "pino";

/** Further lines within {@link WINDOW_MS} are only counted: a fault that repeats must not fill the disk. */
const MOST_LINES = 10;
const WINDOW_MS = 60_000;

/**
 * Keeps the daemon alive when code of it throws where nobody catches: that is logged, and the daemon goes on.
 *
 * To end would be the safer answer for one program's own data, but here it would let any request that finds such a
 * fault end everybody's models. What a fault can leave behind is bounded elsewhere: models are in processes of their
 * own, what is on disk is written whole or not at all, and requests have deadlines that give back what they hold.
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
