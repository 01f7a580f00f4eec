import path from "node:path";
import { pause } from "../../async/pause.ts";
import type { CliIo } from "../cli-io.ts";
import { daemonAddress } from "../client/daemon-address.ts";
import { DaemonClient, HEALTH_POLL_MS } from "../client/daemon-client.ts";
import type { ClientOptions } from "../options/client-command.ts";
import { writeLine } from "../terminal/write.ts";
import { daemonLogFile } from "./daemon-log.ts";
import { startDaemon } from "./spawn-daemon.ts";

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
