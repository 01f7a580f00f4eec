import { type ChildProcess, spawn as nodeSpawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { pause } from "../../async/pause.ts";
import { writeRefusal } from "../../files/write-refusal.ts";
import { CliError } from "../cli-error.ts";
import { type DaemonClient, HEALTH_POLL_MS } from "../client/daemon-client.ts";
import { EXIT } from "../exit-codes.ts";
import { PACKAGE_FOLDER } from "../package-folder.ts";
import { withoutNpm } from "./watch-parent.ts";
import { lastLogLines, openDaemonLog } from "./daemon-log.ts";

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
