import { closeSync, mkdirSync, openSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { replaceFile } from "../../files/replace-file.ts";

/** A larger log is rotated at the next start; with the one rotated log this bounds the disk space of logs. */
const LARGEST_LOG_BYTES = 5_000_000;
/** Enough to hold the reason why a start failed. */
const LAST_LINES = 5;

/** Where a daemon that runs in the background writes its log. */
export function daemonLogFile(cacheDir: string): string {
  return path.join(cacheDir, "daemon.log");
}

/** Opens the log for appending, for the user alone. Close the result. */
export async function openDaemonLog(
  file: string,
): Promise<Disposable & { readonly fd: number; readonly size: number }> {
  mkdirSync(path.dirname(file), { recursive: true });
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > LARGEST_LOG_BYTES)
    await replaceFile(file, `${file}.old`);
  const fd = openSync(file, "a", 0o600);
  return { fd, size: statSync(file).size, [Symbol.dispose]: () => closeSync(fd) };
}

/** The last lines that were written after the log was `size` bytes long. */
export function lastLogLines(file: string, size: number): string {
  return readFileSync(file)
    .subarray(size)
    .toString("utf8")
    .trimEnd()
    .split("\n")
    .slice(-LAST_LINES)
    .join("\n");
}
