import type { Completable, CompletableCommand } from "./describe-program.ts";

/** Fish completion. */
export function fishCompletion(commands: readonly CompletableCommand[]): string {
  const lines = [
    "# Completion of daybreak for fish.",
    "function __daybreak_models",
    "  daybreak list --quiet 2>/dev/null",
    "end",
    "complete -c daybreak -f",
  ];
  for (const command of commands) {
    for (const name of command.names) {
      lines.push(`complete -c daybreak -n __fish_use_subcommand -a ${name} -d ${quote(command.description)}`);
    }
    const condition = `-n ${quote(`__fish_seen_subcommand_from ${command.names.join(" ")}`)}`;
    for (const option of command.options) {
      const names = option.names.map((name) =>
        name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
      );
      const value = option.value ? ` ${action(option.value, "-x", "-r -F")}` : "";
      lines.push(
        `complete -c daybreak ${condition} ${names.join(" ")}${value} -d ${quote(option.description)}`,
      );
    }
    if (command.argument && command.argument.kind !== "nothing") {
      lines.push(`complete -c daybreak ${condition} ${action(command.argument, "", "-F")}`.trimEnd());
    }
  }
  return `${lines.join("\n")}\n`;
}

function action(value: Completable, exclusive: string, files: string): string {
  switch (value.kind) {
    case "models":
      return `${exclusive} -a '(__daybreak_models)'`.trim();
    case "files":
      return files;
    case "choices":
      return `${exclusive} -a ${quote(value.values.join(" "))}`.trim();
    case "nothing":
      break;
  }
  return exclusive;
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
