import { Command } from "commander";
import { CliError, EXIT } from "../cli-error.ts";
import { type CliIo, writeJson, writeLine } from "../cli-io.ts";
import type { Finding } from "../doctor/run-checks.ts";
import { printable, styleFor } from "../terminal/format.ts";

/** Columns of the verdict and the name, with the space behind them. */
const VERDICT_COLUMNS = "problem".length + 2;
const NAME_COLUMNS = "Configuration".length + 2;

/** daybreak doctor: runs without a daemon, so that it works when the daemon cannot start. */
export function doctorCommand(io: CliIo): Command {
  return new Command("doctor")
    .description(
      "check this machine and installation, and say what to fix; exit code 1 when there is a problem",
    )
    .option("--json", "print what was found as JSON")
    .option("--socket <path>", "socket of the local daemon (also SERVICE_SOCKET)")
    .option("--config <file>", "configuration file of the local daemon (also SERVICE_CONFIG)")
    .action(async (options: { json?: boolean; socket?: string; config?: string }) => {
      // The checks are loaded lazily, because other commands do not need them.
      const [{ allChecks, readConfiguration }, { runChecks }] = await Promise.all([
        import("../doctor/all-checks.ts"),
        import("../doctor/run-checks.ts"),
      ]);
      const read = readConfiguration(io.env, options);
      const findings = await runChecks(allChecks(read, io.env, io.signal), io.signal);
      const problems = findings.filter(({ verdict }) => verdict === "problem").length;
      if (options.json) await writeJson(io.stdout, { healthy: problems === 0, checks: findings });
      else for (const finding of findings) await show(io, finding);
      if (problems === 0) return;
      const found =
        problems === 1
          ? "Found 1 problem; see above what to do about it."
          : `Found ${problems} problems; see above what to do about each.`;
      throw new CliError(EXIT.error, "problems_found", found);
    });
}

async function show(io: CliIo, { verdict, name, message, cure }: Finding): Promise<void> {
  const style = styleFor(io.stdout, io.env);
  const emphasis = ({ ok: "dim", note: "bold", problem: "red" } as const)[verdict];
  const head = style[emphasis](verdict.padEnd(VERDICT_COLUMNS)) + name.padEnd(NAME_COLUMNS);
  await writeLine(io.stdout, head + printable(message));
  if (cure !== undefined)
    await writeLine(io.stdout, " ".repeat(VERDICT_COLUMNS + NAME_COLUMNS) + printable(cure));
}
