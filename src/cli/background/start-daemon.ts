import { type ChildProcess, spawn as nodeSpawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { pause } from "../../async/promises.ts";
import { replaceFile, writeRefusal } from "../../files/file-operations.ts";
import { CliError, EXIT } from "../cli-error.ts";
import { type CliIo, writeLine } from "../cli-io.ts";
import { daemonAddress } from "../client/daemon-address.ts";
import { DaemonClient, HEALTH_POLL_INTERVAL_MS } from "../client/daemon-client.ts";
import type { ClientOptions } from "../options/common-options.ts";
import { PACKAGE_FOLDER } from "../install/installation.ts";
import { withoutNpmVariables } from "./watch-parent.ts";

/**
 * Makes sure that the local daemon serves: starts one if none runs, and waits until it is ready. Does nothing if the
 * user has named an address.
 */
export async function startDaemonIfNone(io: CliIo, options: ClientOptions): Promise<void> {
  const { endpoints, apiKey, isExplicit: named, loaded } = daemonAddress(io.env, options);
  if (named) return;
  const client = new DaemonClient({ endpoints, apiKey, signal: io.signal });
  let health = await client.health();
  if (health !== undefined && health !== "ok") await writeLine(io.stderr, `The daemon is ${health} ...`);
  while (health !== undefined && health !== "ok") {
    await pause(HEALTH_POLL_INTERVAL_MS, io.signal);
    health = await client.health();
  }
  if (health === "ok") return;
  const logFile = path.join(loaded.config.cache_dir, "daemon.log");
  await writeLine(io.stderr, `Starting a daemon in the background (log: ${logFile}) ...`);
  // "run" must not open this machine to the network unless the configuration says so.
  const flags = loaded.origins.has("http.addr") ? [] : ["--http-addr", "127.0.0.1"];
  if (options.socket !== undefined) flags.push("--socket", options.socket);
  if (options.config !== undefined) flags.push("--config", path.resolve(options.config));
  await startDaemon({ client, flags, logFile, env: io.env, signal: io.signal });
}

const LAUNCHER = fileURLToPath(new URL("src/launch/daybreak.mjs", PACKAGE_FOLDER));
/** Keeps other processes from opening Node's inspector. Windows has no other way. */
const NO_DEBUGGER = "--disable-sigusr1";
/**
 * Longest time without an answer. A daemon listens within two seconds, before it loads a model; a first start from a
 * cold disk, with a virus scanner or with little memory takes far longer. A process that exits is noticed at once.
 */
const MAX_SILENCE_MS = 180_000;

interface BackgroundStart {
  /** Finds the daemon once it listens. */
  readonly client: DaemonClient;
  /** Flags of `daybreak serve`. */
  readonly flags: readonly string[];
  readonly logFile: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  readonly spawn?: typeof nodeSpawn;
}

/**
 * Starts a daemon in the background, with its output in a log file, and waits until it serves. If another daemon got
 * the address first, waits for that one. Aborting the signal ends the wait, not the daemon.
 * @throws CliError with the last lines of the log if the daemon exits first
 */
export async function startDaemon(start: BackgroundStart): Promise<void> {
  const { client, logFile, env, signal } = start;
  using log = await openLog(logFile);
  const child = (start.spawn ?? nodeSpawn)(
    process.execPath,
    [NO_DEBUGGER, LAUNCHER, "serve", ...start.flags],
    {
      detached: true,
      stdio: ["ignore", log.fd, log.fd],
      env: withoutNpmVariables(env),
      windowsHide: true,
    },
  );
  child.unref();
  const exitReason = watchExit(child);
  let silentSince = performance.now();
  for (;;) {
    const ended = exitReason();
    const health = await client.health();
    if (health === "ok") return;
    if (health !== undefined) silentSince = performance.now();
    else if (ended !== undefined) throw startError(ended, logFile, log.size);
    else if (performance.now() - silentSince > MAX_SILENCE_MS) {
      throw startError(`does not answer, although process ${child.pid} is still running`, logFile, log.size);
    }
    await pause(HEALTH_POLL_INTERVAL_MS, signal);
  }
}

/** Opens the log for appending, for the user alone. Close the result. */
async function openLog(
  logFile: string,
): Promise<Disposable & { readonly fd: number; readonly size: number }> {
  try {
    mkdirSync(path.dirname(logFile), { recursive: true });
    if ((statSync(logFile, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES)
      await replaceFile(logFile, `${logFile}.old`);
    const fd = openSync(logFile, "a", 0o600);
    return { fd, size: statSync(logFile).size, [Symbol.dispose]: () => closeSync(fd) };
  } catch (error) {
    const reason = writeRefusal(error);
    if (reason === undefined) throw error;
    throw new CliError(
      EXIT.error,
      "daemon_start_failed",
      `The daemon cannot write its log ${logFile}: ${reason}. Set SERVICE_CACHE_DIR to a folder that this account can write to, or run the daemon in a separate terminal: daybreak serve`,
      error,
    );
  }
}

/** Returns a function that describes how the process has ended; undefined while it runs. */
function watchExit(child: ChildProcess): () => string | undefined {
  let ended: string | undefined;
  child.once("error", (error) => {
    ended = `could not be started: ${error.message}`;
  });
  child.once("exit", (code, signal) => {
    ended ??= signal ? `was killed by ${signal}` : `ended with exit code ${code}`;
  });
  return () => ended;
}

function startError(reason: string, logFile: string, sizeBefore: number): CliError {
  return new CliError(
    EXIT.error,
    "daemon_start_failed",
    `The daemon ${reason}. The end of its log, ${logFile}:\n${lastLogLines(logFile, sizeBefore)}`,
  );
}

/** A larger log is rotated at the next start; only one rotated log is kept. */
const MAX_LOG_BYTES = 5_000_000;
/** Lines of the log in the error message. */
const LAST_LINES = 5;

/** The last lines that were written after the log was `size` bytes long. */
function lastLogLines(file: string, size: number): string {
  return readFileSync(file)
    .subarray(size)
    .toString("utf8")
    .trimEnd()
    .split("\n")
    .slice(-LAST_LINES)
    .join("\n");
}
