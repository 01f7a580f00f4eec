import { type ChildProcess, spawn as nodeSpawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { pause } from "../../async/pause.ts";
import { replaceFile, writeRefusal } from "../../files/file-operations.ts";
import { CliError, EXIT } from "../cli-error.ts";
import { type CliIo, writeLine } from "../cli-io.ts";
import { daemonAddress } from "../client/daemon-address.ts";
import { DaemonClient, HEALTH_POLL_MS } from "../client/daemon-client.ts";
import type { ClientOptions } from "../options/common-options.ts";
import { PACKAGE_FOLDER } from "../package-folder.ts";
import { withoutNpm } from "./watch-parent.ts";

/**
 * Makes sure that the local daemon serves: waits for one that is starting, starts one if there is none, and
 * says so. Does nothing when the user named the daemon by its address.
 */
export async function startDaemonIfNone(io: CliIo, options: ClientOptions): Promise<void> {
  const { endpoints, apiKey, named, loaded } = daemonAddress(io.env, options);
  if (named) return;
  const client = new DaemonClient({ endpoints, apiKey, signal: io.signal });
  let health = await client.health();
  if (health !== undefined && health !== "ok") await writeLine(io.stderr, `The daemon is ${health} ...`);
  while (health !== undefined && health !== "ok") {
    await pause(HEALTH_POLL_MS, io.signal);
    health = await client.health();
  }
  if (health === "ok") return;
  const logFile = daemonLogFile(loaded.config.cache_dir);
  await writeLine(io.stderr, `Starting a daemon in the background (log: ${logFile}) ...`);
  // "run" must not open this machine to the network unless the configuration says so.
  const flags = loaded.origins.has("http.addr") ? [] : ["--http-addr", "127.0.0.1"];
  if (options.socket !== undefined) flags.push("--socket", options.socket);
  if (options.config !== undefined) flags.push("--config", path.resolve(options.config));
  await startDaemon({ client, flags, logFile, env: io.env, signal: io.signal });
}

const LAUNCHER = fileURLToPath(new URL("src/launch/daybreak.mjs", PACKAGE_FOLDER));
/** Keeps other processes from opening Node's inspector; on Windows only this flag does. */
const NO_DEBUGGER = "--disable-sigusr1";
/**
 * A daemon listens before it loads a model, within a second or two. A first start from a cold disk, below a virus scanner, or
 * on a machine without memory left takes far longer; one that ends instead is noticed at once.
 */
const LONGEST_SILENCE_MS = 180_000;

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
 * Starts a daemon in the background, with its output in a log file, and waits until it serves. Rejects with a
 * CliError that holds the end of the log if it exits first; if another daemon was quicker, waits for that one.
 * Aborting the signal ends the wait, not the daemon.
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
      env: withoutNpm(env),
      windowsHide: true,
    },
  );
  child.unref();
  const end = watchEnd(child);
  let silentSince = performance.now();
  for (;;) {
    const ended = end();
    const health = await client.health();
    if (health === "ok") return;
    if (health !== undefined) silentSince = performance.now();
    else if (ended !== undefined) throw startFailed(ended, logFile, log.size);
    else if (performance.now() - silentSince > LONGEST_SILENCE_MS) {
      throw startFailed(`does not answer, although process ${child.pid} is still running`, logFile, log.size);
    }
    await pause(HEALTH_POLL_MS, signal);
  }
}

async function openLog(logFile: string): ReturnType<typeof openDaemonLog> {
  try {
    return await openDaemonLog(logFile);
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

/** Tells how the process ended, once it has. */
function watchEnd(child: ChildProcess): () => string | undefined {
  let ended: string | undefined;
  child.once("error", (error) => {
    ended = `could not be started: ${error.message}`;
  });
  child.once("exit", (code, signal) => {
    ended ??= signal ? `was killed by ${signal}` : `ended with exit code ${code}`;
  });
  return () => ended;
}

function startFailed(how: string, logFile: string, sizeBefore: number): CliError {
  return new CliError(
    EXIT.error,
    "daemon_start_failed",
    `The daemon ${how}. The end of its log, ${logFile}:\n${lastLogLines(logFile, sizeBefore)}`,
  );
}

/** A larger log is rotated at the next start; with the one rotated log this bounds the disk space of logs. */
const LARGEST_LOG_BYTES = 5_000_000;
/** Enough to hold the reason why a start failed. */
const LAST_LINES = 5;

/** Where a daemon that runs in the background writes its log. */
function daemonLogFile(cacheDir: string): string {
  return path.join(cacheDir, "daemon.log");
}

/** Opens the log for appending, for the user alone. Close the result. */
async function openDaemonLog(
  file: string,
): Promise<Disposable & { readonly fd: number; readonly size: number }> {
  mkdirSync(path.dirname(file), { recursive: true });
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > LARGEST_LOG_BYTES)
    await replaceFile(file, `${file}.old`);
  const fd = openSync(file, "a", 0o600);
  return { fd, size: statSync(file).size, [Symbol.dispose]: () => closeSync(fd) };
}

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
