import { Argument, Command } from "commander";
import { isConnectOrigin } from "../../api/wire/page-policy.ts";
import { toError } from "../../errors/service-error.ts";
import { CliError, EXIT, usageError } from "../cli-error.ts";
import { type CliIo, writeJson, writeLine } from "../cli-io.ts";
import { collect } from "../options/common-options.ts";
import { formatBytes } from "../../json/quantities.ts";
import { printable } from "../terminal/format.ts";

interface UiOptions {
  readonly hub?: string;
  readonly connect?: readonly string[];
  readonly json?: boolean;
}

/** daybreak ui export: runs without a daemon. */
export function uiCommand(io: CliIo): Command {
  return new Command("ui")
    .description("write the page as a static site for any web host, with the engine in the visitor's browser")
    .addArgument(new Argument("<action>", "what to do").choices(["export"]))
    .argument("<folder>", "where to write it: a new or empty folder, or an earlier export")
    .option("--hub <url>", "take models from this mirror of the hub (default: https://huggingface.co)")
    .option(
      "--connect <origin>",
      "let the page ask this server too, such as a mirror's storage; repeatable",
      collect,
    )
    .option("--json", "print what was written as JSON")
    .addHelpText(
      "after",
      `
The page has the chat and the models of the visitor's browser; what needs a daemon is left out. All of its
addresses are relative, so it may be below any path. Serve it over HTTPS: browsers run neither the engine nor
its service worker over plain HTTP, except on localhost. No headers are needed.

  daybreak ui export site
  npx serve site`,
    )
    .action(async (_action: string, folder: string, { hub, connect = [], json }: UiOptions) => {
      const wrong = connect.find((origin) => !isConnectOrigin(origin));
      if (wrong !== undefined)
        throw usageError(`--connect ${wrong} is not an origin such as https://mirror.example.`);
      if (hub !== undefined && !isConnectOrigin(originOf(hub)))
        throw usageError(`--hub ${hub} is not an address.`);
      // Loaded lazily, because other commands do not need it.
      const { exportPage } = await import("../ui/export-page.ts");
      try {
        const { files, bytes } = await exportPage(folder, { hub, connect });
        if (json) return await writeJson(io.stdout, { folder, files, bytes });
        return await writeLine(io.stdout, printable(`${folder}: ${files} files, ${formatBytes(bytes)}.`));
      } catch (error) {
        if (error instanceof CliError) throw error;
        throw new CliError(
          EXIT.error,
          "output_failed",
          `The page cannot be written to ${folder}: ${toError(error).message}`,
          error,
        );
      }
    });
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : "";
}
