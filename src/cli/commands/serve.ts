import { Command } from "commander";
import { parentExitSignal, runsBelowNpm } from "../background/watch-parent.ts";
import { CliError, EXIT } from "../cli-error.ts";
import type { CliIo } from "../cli-io.ts";
import { loadConfigOrFail } from "../options/common-options.ts";
import { configFlagOptions, configFlags } from "../options/config-flag-options.ts";

type ServeOptions = Readonly<Record<string, unknown>> & { readonly config?: string };

/** daybreak serve */
export function serveCommand(io: CliIo): Command {
  const command = new Command("serve")
    .description("run the daemon in the foreground")
    .option("--config <file>", "configuration file (also SERVICE_CONFIG)");
  for (const option of configFlagOptions()) command.addOption(option);
  return command.action(async (options: ServeOptions) => {
    const loaded = loadConfigOrFail({ env: io.env, file: options.config, flags: configFlags(options) });
    // The daemon is loaded lazily, so that the other commands start faster.
    const [{ runDaemon }, { DaemonStartError }] = await Promise.all([
      import("../../daemon/run-daemon.ts"),
      import("../../daemon/listen.ts"),
    ]);
    const stop = runsBelowNpm(io.env)
      ? AbortSignal.any([io.stopSignal, parentExitSignal(process.connected)])
      : io.stopSignal;
    try {
      // stopSignal rather than signal: the daemon continues when the reader of its output ends.
      await runDaemon(loaded, { stdout: io.stdout, stderr: io.stderr, signal: stop });
    } catch (error) {
      if (!(error instanceof DaemonStartError)) throw error;
      throw new CliError(EXIT.error, "daemon_start_failed", error.message, error);
    }
  });
}
