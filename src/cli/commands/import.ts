import { existsSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import { type ImportLine, importLineSchema } from "../../api/wire/models.ts";
import { isStore, storeFolders } from "../../models/folders/known-stores.ts";
import { CliError, EXIT } from "../cli-error.ts";
import { type CliIo, writeJson, writeLine, writeLines } from "../cli-io.ts";
import { connect } from "../client/daemon-address.ts";
import { clientCommand, type ClientOptions } from "../options/common-options.ts";
import { DownloadDisplay } from "../terminal/progress-display.ts";
import { formatBytes } from "../../json/quantities.ts";
import { formatTable, printable } from "../terminal/format.ts";

interface ImportOptions extends ClientOptions {
  from: string;
  copy?: boolean;
}

type Imported = Extract<ImportLine, { alias: string }>;

/** daybreak import --from <store> */
export function importCommand(io: CliIo): Command {
  return clientCommand("import", "print each step of the daemon as a line of JSON")
    .description(
      "import the models that Ollama, LM Studio or other programs have, without copying them where possible",
    )
    .argument("[models...]", "only these, by the names that they have there")
    .requiredOption("--from <source>", "ollama, lmstudio, hf (the Hugging Face cache), or a folder")
    .option("--copy", "copy files that cannot be linked, instead of using them where they are")
    .action(async (names: string[], options: ImportOptions) => {
      const lines = connect(io, options).lines(importLineSchema, "/api/models/import", {
        from: await resolveSource(options.from, io.env),
        ...(names.length > 0 && { models: names }),
        ...(options.copy && { copy: true }),
        stream: true,
      });
      const imported: Imported[] = [];
      let skipped = 0;
      let isEmpty = false;
      let display: DownloadDisplay | undefined;
      let displayedName = "";
      for await (const line of lines) {
        if (line.status === "reading") isEmpty = line.models === 0;
        if (line.status === "skipped") isEmpty = false;
        if (options.json) {
          await writeJson(io.stdout, line);
          continue;
        }
        if (line.status === "copying") {
          if (displayedName !== line.name) display?.end();
          if (displayedName !== line.name || !display)
            display = new DownloadDisplay(io.stderr, (displayedName = line.name));
          display.show(downloadProgress(line));
          continue;
        }
        display?.end();
        if (line.status === "reading")
          await writeLine(io.stderr, `Importing from ${printable(line.folder)} ...`);
        if (line.status === "skipped") {
          skipped += 1;
          await writeLine(io.stderr, `Left out ${printable(line.name)}: ${printable(line.reason)}.`);
        }
        if ("alias" in line) imported.push(line);
      }
      if (isEmpty) {
        const files = isStore(options.from) ? "models" : "GGUF files";
        throw new CliError(EXIT.error, "not_found", `There are no ${files} in ${printable(options.from)}.`);
      }
      if (!options.json) await summarize(io, imported, skipped);
    });
}

/** Folder of a store by this user's environment, since the daemon's may differ; an absolute path for a folder. */
async function resolveSource(from: string, env: NodeJS.ProcessEnv): Promise<string> {
  if (!isStore(from)) return path.resolve(from);
  return (await storeFolders(from, env)).find((folder) => existsSync(folder)) ?? from;
}

function downloadProgress({
  copied_bytes: copied,
  total_bytes: total,
}: Extract<ImportLine, { status: "copying" }>): Parameters<DownloadDisplay["show"]>[0] {
  const progress = total > 0 ? copied / total : 1;
  return { status: "downloading", progress, downloaded_bytes: copied, total_bytes: total };
}

async function summarize(
  { stdout, stderr }: CliIo,
  imported: readonly Imported[],
  skipped: number,
): Promise<void> {
  for (const { alias, notes = [] } of imported)
    for (const note of notes) await writeLine(stderr, `Note on ${printable(alias)}: ${printable(note)}`);
  const rows = imported.map(({ alias, name, size_bytes: size, files, status }) => [
    printable(alias),
    formatBytes(size),
    files === "in place" ? "used where it is" : files,
    status === "present" ? "there already" : status,
    printable(name),
  ]);
  if (rows.length > 0)
    await writeLines(stdout, formatTable(["NAME", "SIZE", "FILES", "RESULT", "FROM"], rows));
  if (imported.some(({ files }) => files === "in place")) {
    await writeLine(
      stderr,
      "What is used where it is goes when its program deletes it; --copy makes copies instead.",
    );
  }
  const count = imported.filter(({ status }) => status !== "present").length;
  const present = imported.length - count;
  const parts = [
    `${count} imported`,
    ...(present > 0 ? [`${present} there already`] : []),
    ...(skipped > 0 ? [`${skipped} left out`] : []),
  ];
  await writeLine(stderr, `${parts.join(", ")}.`);
}
