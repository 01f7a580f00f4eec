import { configOptions, type ConfigOption } from "../../src/config/config-options.ts";
import { configSchema, type Config } from "../../src/config/schema.ts";

/** Defaults that depend on the machine, in words. */
const DEFAULT_IN_WORDS: Readonly<Record<string, string>> = {
  socket:
    "`$XDG_RUNTIME_DIR/daybreak.sock` where that folder can be used, else `run/daybreak.sock` in the folder that `cache_dir` is by default; `\\\\.\\pipe\\daybreak-<user>` on Windows",
  cache_dir:
    "`~/.cache/daybreak` (Linux), `~/Library/Caches/daybreak` (macOS), `%LOCALAPPDATA%\\daybreak` (Windows)",
};

const INTRODUCTION = `# Configuration

<!-- Made by scripts/docs/generate.ts from src/config/schema.ts: change that, then run it. -->

Every option can be set in four places. Flags win over the environment, the environment over the file, the file over the defaults.

| place | an option \`http.port\` is |
|---|---|
| command line of \`daybreak serve\` | \`--http-port 9000\` |
| environment | \`SERVICE_HTTP_PORT=9000\` |
| TOML file | \`[http]\` and under it \`port = 9000\` |

The file is the one named by \`--config\`, else by \`SERVICE_CONFIG\`, else the platform's own if it exists: \`~/.config/daybreak/daybreak.toml\` (Linux), \`~/Library/Application Support/daybreak/daybreak.toml\` (macOS), \`%APPDATA%\\daybreak\\daybreak.toml\` (Windows). [configs/daybreak.toml](../configs/daybreak.toml) shows every option. The platform's own is left out, with a warning, when it cannot be read or when another user but root has written it; the daemon then listens on 127.0.0.1 alone unless a flag or variable says otherwise, since the file may ask for that, or for keys. A file that is named and cannot be read stops the start.

- Lists are separated by commas in the environment and on the command line; a flag may also be repeated.
- Booleans are \`true\` or \`false\`; a flag alone means true, and \`--no-…\` means false.
- Durations are such as \`"5m"\`, \`"1h30m"\`, \`"90s"\`, a number of seconds, or \`-1\` for never.
- Relative paths count from the folder of the file, else from the working folder; \`~/\` is the home folder.
- An empty variable counts as not set; only an empty \`SERVICE_SOCKET\` means something: no socket.
- Secrets have no flag, since every user of a machine can read its command lines. They are never logged.
- An unknown option in the file, or a value that does not fit, stops the start with a message that names the place.
`;

const WITHOUT_HOME = `
## Without a home folder

Where no cache folder is configured and the usual one can neither be used nor made (no \`HOME\` and an account that the system does not know, as in a container that runs under a number of its own; a home that belongs to others or is read-only), it is \`daybreak-<number of the user>\` among the temporary files (\`TMPDIR\`, else \`/tmp\`, else \`/dev/shm\`): made for this user alone, and taken only when it belongs to this user and is closed to all others. The log says so, since systems empty that place: set \`SERVICE_CACHE_DIR\`. The commands look for the daemon's socket there too. A socket that nobody has configured and that cannot be made is left out with a warning; one that is configured stops the start.
`;

const SAFETY = `
## Reachable from the network

As specified, the daemon listens on all addresses, of IPv6 too where the machine has it, and asks for no key; it warns about that at each start. Two ways to be safe:

- For this machine alone: \`--http-addr 127.0.0.1\`. Requests with a foreign Host header are then refused, which keeps web pages from reaching the daemon by DNS rebinding; add names of your own with \`http.allowed_hosts\`.
- For others: set \`api_keys\`. Clients send a key as \`Authorization: Bearer …\` or \`x-api-key\`; browsers ask for it as a password (any user name) when they open the page. \`/health\` and the IPC socket need none: the socket's file mode admits its owner alone.

With \`http.cors_origins\` naming origins, requests from pages of any other origin are refused, WebSockets and simple POSTs included. The daemon's own page may always call.
`;

/** The text of docs/configuration.md. */
export function configurationPage(): string {
  const defaults = configSchema.parse({});
  const groups = Map.groupBy(configOptions, (option) => (option.path.length > 1 ? option.path[0] : ""));
  const sections = [...groups].map(([group, options]) => {
    const title = group === "" ? "## Options outside of a table" : `## [${group}]`;
    const rows = options.map((option) => row(option, defaults));
    return `${title}\n\n| option | type | default | environment | meaning |\n|---|---|---|---|---|\n${rows.join("\n")}\n`;
  });
  return `${INTRODUCTION}\n${sections.join("\n")}${WITHOUT_HOME}${SAFETY}`;
}

function row(option: ConfigOption, defaults: Config): string {
  const type =
    option.kind === "enum" ? option.choices.map((choice) => `"${choice}"`).join(", ") : option.kind;
  const env = option.env.map((name) => `\`${name}\``).join(", ");
  const cells = [
    `\`${option.name}\``,
    type,
    DEFAULT_IN_WORDS[option.name] ?? defaultText(option, defaults),
    env,
  ];
  return `| ${[...cells, option.description.replaceAll("|", "\\|")].join(" | ")} |`;
}

function defaultText(option: ConfigOption, defaults: Config): string {
  const value = defaultValue(option, defaults);
  return value === undefined ? "none" : `\`${value}\``;
}

/** In TOML's notation; undefined when there is none. */
export function defaultValue(option: ConfigOption, defaults: Config): string | undefined {
  let value: unknown = defaults;
  for (const key of option.path) {
    value =
      typeof value === "object" && value !== null
        ? Object.entries(value).find(([name]) => name === key)?.[1]
        : undefined;
  }
  if (option.kind === "duration" && typeof value === "number") return `"${durationText(value)}"`;
  return value === undefined ? undefined : JSON.stringify(value);
}

function durationText(millis: number): string {
  const minutes = millis / 60_000;
  return Number.isInteger(minutes) ? `${minutes}m` : `${millis / 1000}s`;
}
