import type { Command } from "commander";
import type { z } from "zod";
import { hubFilesSchema, hubSearchSchema } from "../../api/wire/hub.ts";
import { pullLineSchema } from "../../api/wire/models.ts";
import { type CliIo, writeJson, writeLine, writeLines } from "../cli-io.ts";
import { connect } from "../client/daemon-address.ts";
import { ApiError, type DaemonClient } from "../client/daemon-client.ts";
import { clientCommand, type ClientOptions, parseInteger } from "../options/common-options.ts";
import { formatBytes } from "../../json/quantities.ts";
import { formatTable, printable } from "../terminal/format.ts";
import { DownloadDisplay } from "../terminal/progress-display.ts";

/** Default of --limit: each repository takes three requests to the hub. */
const DEFAULT_REPOS = 5;

type HubFiles = z.input<typeof hubFilesSchema>;

/** daybreak search <query> */
export function searchCommand(io: CliIo): Command {
  return clientCommand("search", "print what the daemon says of each repository as a list of JSON")
    .description("search the hub for models, and say which fit this machine (an estimate)")
    .argument("<query>", "words, or a repository such as owner/repository")
    .option("-n, --limit <count>", "most repositories", parseInteger(1), DEFAULT_REPOS)
    .action(async (query: string, options: ClientOptions & { limit: number }) => {
      const client = connect(io, options);
      const repos = await findRepos(client, query, options.limit);
      const found: HubFiles[] = [];
      for (const repo of repos) {
        try {
          const path = `/api/hub/files?repo=${encodeURIComponent(repo)}`;
          found.push(await client.json(hubFilesSchema, "GET", path));
        } catch (error) {
          // A repository that cannot be listed must not hide the others.
          if (repos.length === 1 || !(error instanceof ApiError)) throw error;
          await writeLine(io.stderr, `${printable(repo)}: ${printable(error.message)}`);
        }
      }
      if (options.json) return writeJson(io.stdout, found);
      if (found.length === 0)
        return writeLine(io.stderr, `The hub has no GGUF models for ${printable(query)}.`);
      const header = ["SPEC", "SIZE", "MEMORY", "FITS"];
      return writeLines(io.stdout, formatTable(header, found.flatMap(modelRows)));
    });
}

/** Names of repositories for a query; if the query names a repository, only that one. */
async function findRepos(client: DaemonClient, query: string, limit: number): Promise<string[]> {
  const named = /^(?:hf:)?([\w.-]+\/[\w.-]+)(?::.*)?$/.exec(query)?.[1];
  if (named !== undefined) return [named];
  const path = `/api/hub/search?${new URLSearchParams({ query, limit: String(limit) }).toString()}`;
  const { repos } = await client.json(hubSearchSchema, "GET", path);
  return repos.map(({ repo }) => repo);
}

function modelRows({ models, gated }: HubFiles): string[][] {
  return models.map((model) => [
    printable(model.spec),
    formatBytes(model.size_bytes),
    formatBytes(model.needed_bytes),
    describeFit(model) + (model.on_disk === undefined ? (gated ? ", gated" : "") : ", on disk"),
  ]);
}

function describeFit({ fits, gpu }: HubFiles["models"][number]): string {
  if (!fits) return "no";
  if (!gpu) return "yes";
  return gpu.layers >= gpu.all_layers
    ? "yes, GPU"
    : `yes, ${gpu.layers} of ${gpu.all_layers} layers on the GPU`;
}

/** daybreak pull <model> */
export function pullCommand(io: CliIo): Command {
  return clientCommand("pull", "print each progress report of the daemon as a line of JSON")
    .description("download a model; an interrupted download resumes where it stopped")
    .argument("<model>", "alias, or hub spec such as hf:owner/repository:Q4_K_M")
    .action(async (name: string, options: ClientOptions) => {
      const client = connect(io, options);
      const lines = client.lines(pullLineSchema, "/api/models/pull", { name, stream: true });
      if (io.stderr.isTTY) await writeLine(io.stderr, `Asking the hub for ${printable(name)} ...`);
      using display = new DownloadDisplay(io.stderr, name);
      for await (const line of lines) {
        if (options.json) await writeJson(io.stdout, line);
        else if (line.status === "success") {
          display.end();
          await writeLine(io.stdout, `Pulled ${line.model}.`);
        } else display.show(line);
      }
    });
}
