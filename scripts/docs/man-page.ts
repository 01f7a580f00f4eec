import { readFileSync } from "node:fs";
import { PassThrough } from "node:stream";
import type { Command, Option } from "commander";
import type { CliIo } from "../../src/cli/cli-io.ts";
import { createProgram } from "../../src/cli/main.ts";
import { configSchema } from "../../src/config/schema.ts";

/** Date of the text below; the parts made from the commands have none. */
const DATE = "2026-11-23";

const LONGEST_LINE = 80;

/** The text of docs/daybreak.1, made from the definitions of the commands. */
export async function manPage(): Promise<string> {
  const program = await createProgram(unusedIo(), [], { printsErrors: false });
  const sections = [
    section("NAME", "daybreak \\- a local server of language models, and commands that talk to it"),
    section("SYNOPSIS", [
      ".B daybreak\n.I command\n.RI [ options ]\n.RI [ arguments ]",
      ".B daybreak\n.I command\n.B \\-\\-help",
    ]),
    section("DESCRIPTION", [
      sentence(
        "Daybreak runs models in the GGUF format on this machine. A daemon, which daybreak serve runs, answers HTTP requests, those of OpenAI's, Anthropic's and Ollama's clients among them; the other commands talk to it over a socket. Each model runs as WebAssembly in a process of its own that may read its model and nothing else.",
      ),
      sentence("run and chat start a daemon when none runs."),
    ]),
    section(
      "COMMANDS",
      program.commands.map((command) => commandText(program, command)),
    ),
    section(
      "EXIT STATUS",
      exitCodes()
        .map(([code, meaning]) => entry(`.B ${code}`, meaning))
        .join("\n"),
    ),
    section("ENVIRONMENT", [
      entries([
        ["SERVICE_URL", "The daemon that commands talk to, in place of the local one."],
        ["SERVICE_API_KEY", "The API key that commands send."],
        ["SERVICE_CONFIG", "The configuration file."],
        ["SERVICE_CACHE_DIR", "The folder of downloaded models."],
        ["HUB_TOKEN", "The credential for gated models."],
        ["NO_COLOR", "When not empty, nothing is colored."],
      ]),
      sentence(
        "Every other option of the configuration has a variable too: http.port is SERVICE_HTTP_PORT. Flags win over variables, and those over the file.",
      ),
    ]),
    section(
      "FILES",
      entries([
        [
          "~/.config/daybreak/daybreak.toml",
          "The configuration on Linux; on macOS it is in ~/Library/Application Support.",
        ],
        ["~/.cache/daybreak", "Downloaded models on Linux; on macOS they are in ~/Library/Caches."],
        ["/etc/daybreak/daybreak.toml", "The configuration of the system's service."],
      ]),
    ),
    section("EXAMPLES", [
      example('daybreak run "Why is the sky blue?"'),
      example('git diff | daybreak run "Write a commit message for this:" -'),
      example("daybreak pull qwen3:0.6b && daybreak chat qwen3:0.6b"),
    ]),
  ];
  return `.\\" Made by scripts/docs/generate.ts from the commands' definitions: change those, then run it.
.TH DAYBREAK 1 ${DATE} Daybreak "User Commands"
${sections.join("")}`;
}

function section(title: string, text: string | readonly string[]): string {
  const paragraphs = typeof text === "string" ? [text] : text;
  // A subsection begins a paragraph by itself.
  const body = paragraphs.map((each, index) =>
    index === 0 || each.startsWith(".SS") ? each : `.PP\n${each}`,
  );
  return `.SH ${title}\n${body.join("\n")}\n`;
}

function commandText(program: Command, command: Command): string {
  const help = program.createHelp();
  const usage = help.commandUsage(command).replace(/^daybreak /, "");
  const options = command.options.filter((option) => !option.hidden);
  return [
    `.SS ${roff(`daybreak ${usage}`)}`,
    sentence(capitalized(command.description())),
    ...command.registeredArguments.flatMap((argument) =>
      argument.argChoices === undefined
        ? []
        : [entry(`.I ${roff(argument.name())}`, `One of: ${argument.argChoices.join(", ")}.`)],
    ),
    ...options.map((option) => entry(`.B ${roff(option.flags)}`, optionText(option))),
  ].join("\n");
}

function optionText(option: Option): string {
  const choices = option.argChoices === undefined ? "" : ` (one of: ${option.argChoices.join(", ")})`;
  return capitalized(withoutMachine(option.description) + choices);
}

/** Without defaults that are another on each machine. */
function withoutMachine(text: string): string {
  const { socket, cache_dir: cacheDir } = configSchema.parse({});
  return text.replace(` (default: ${socket})`, "").replace(` (default: ${cacheDir})`, "");
}

/** The table of docs/cli.md. */
function exitCodes(): (readonly [code: string, meaning: string])[] {
  const text = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8");
  return [...text.matchAll(/^\| (\d+) \| (.+) \|$/gm)].map(([, code = "", meaning = ""]) => [
    code,
    capitalized(meaning),
  ]);
}

function entries(list: readonly (readonly [name: string, meaning: string])[]): string {
  return list.map(([name, meaning]) => entry(`.B ${roff(name)}`, meaning)).join("\n");
}

function entry(head: string, text: string): string {
  return `.TP\n${head}\n${sentence(text)}`;
}

function example(command: string): string {
  return `.EX\n${roff(command)}\n.EE`;
}

function sentence(text: string): string {
  return filled(roff(/[.)]$/.test(text) ? text : `${text}.`));
}

/** In lines of the usual length, none of which begins like a request. */
function filled(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length >= LONGEST_LINE)
      lines.push(word.replace(/^[.']/, "\\&$&"));
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.join("\n");
}

/** A value that is explained stays as it is typed. */
function capitalized(text: string): string {
  if (/^[a-z]+: /.test(text)) return text;
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A text as the formatter takes it: hyphens that can be typed, backslashes, and what is beyond ASCII. */
function roff(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("…", "...")
    .replaceAll(
      /[^\n -~]/gu,
      (character) => `\\[u${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}]`,
    );
}

/** The commands are only described. */
function unusedIo(): CliIo {
  const { signal } = new AbortController();
  return {
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    env: {},
    signal,
    stopSignal: signal,
  };
}
