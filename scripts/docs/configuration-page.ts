import { configOptions, type ConfigOption } from "../../src/config/config-options.ts";
import { configSchema, type Config } from "../../src/config/schema.ts";

/** Defaults that depend on the machine, in words. */
const DEFAULT_IN_WORDS: Readonly<Record<string, string>> = {
  socket:
    "`$XDG_RUNTIME_DIR/daybreak.sock` if that folder can be used, or else `run/daybreak.sock` in the default `cache_dir`; `\\\\.\\pipe\\daybreak-<user>` on Windows",
  cache_dir:
    "`~/.cache/daybreak` (Linux), `~/Library/Caches/daybreak` (macOS), `%LOCALAPPDATA%\\daybreak` (Windows)",
};

const INTRODUCTION = `# Configuration

<!-- Made by scripts/docs/generate.ts from src/config/schema.ts: change that, then run it. -->

Every option can be set by a flag, an environment variable or a file, in this order of precedence.

| place | an option \`http.port\` is |
|---|---|
| command line of \`daybreak serve\` | \`--http-port 9000\` |
| environment | \`SERVICE_HTTP_PORT=9000\` |
| TOML file | \`[http]\` and under it \`port = 9000\` |

The file is the one named by \`--config\` or \`SERVICE_CONFIG\`, or else the platform's default file, if it exists: \`~/.config/daybreak/daybreak.toml\` (Linux), \`~/Library/Application Support/daybreak/daybreak.toml\` (macOS), \`%APPDATA%\\daybreak\\daybreak.toml\` (Windows). [configs/daybreak.toml](../configs/daybreak.toml) shows every option. The default file is ignored, with a warning, if it cannot be read or belongs to another user (other than root). Because it may contain API keys, the daemon then listens on 127.0.0.1 only, unless a flag or variable says otherwise. If a file that you name cannot be read, the daemon does not start.

- Lists are separated by commas in the environment and on the command line; a flag may also be repeated.
- Booleans are \`true\` or \`false\`; a flag without a value means true, and \`--no-…\` means false.
- Durations look like \`"5m"\`, \`"1h30m"\` or \`"90s"\`, or are a number of seconds; \`-1\` means never.
- Paths in the file are relative to its folder, other paths to the working folder; \`~/\` is the home folder.
- An empty variable counts as not set, except \`SERVICE_SOCKET\`: empty means no socket.
- Options of \`[engine]\` that \`POST /api/models/load\` and a Modelfile's \`PARAMETER\` have, too, are for models and loads that do not say otherwise.
- Secrets have no flags, because every user of a machine can read its command lines. They are never logged.
- With an unknown option in the file or an invalid value, the daemon does not start; the message says where the error is.
`;

const WITHOUT_HOME = `
## Without a home folder

If no cache folder is configured and the default one cannot be used or created (no \`HOME\` and an unknown account, as in a container with an arbitrary user id; a home folder that belongs to others or is read-only), Daybreak uses \`daybreak-<user id>\` in the folder for temporary files (\`TMPDIR\`, \`/tmp\` or \`/dev/shm\`). It is created for this user only, and used only if it belongs to this user and is closed to all others. The log says so, because systems clear that folder: set \`SERVICE_CACHE_DIR\`. Commands look for the daemon's socket there, too. If the default socket cannot be created, the daemon runs without it, with a warning; if a configured socket cannot be created, the daemon does not start.
`;

const SAFETY = `
## Reachable from the network

By default the daemon listens on all IPv4 and IPv6 addresses without a key, and warns about that at startup. Two ways to be safe:

- For this machine only: \`--http-addr 127.0.0.1\`. Requests with a foreign Host header are then refused, which protects against DNS rebinding; add your own host names with \`http.allowed_hosts\`.
- For others: set \`api_keys\`. Clients send a key as \`Authorization: Bearer …\` or \`x-api-key\`; the page asks for it, and browsers as a password (with any user name) when they open \`/docs\`. \`/health\`, the files of the page and the IPC socket need none; only the socket's owner can open it.

If \`http.cors_origins\` lists origins, requests from pages of any other origin are refused, including WebSockets and simple POSTs. The daemon's own page is always allowed.
`;

/** The text of docs/configuration.md. */
export function configurationPage(): string {
  const defaults = configSchema.parse({});
  const groups = Map.groupBy(configOptions, (option) => (option.path.length > 1 ? option.path[0] : ""));
  const sections = [...groups].map(([group, options]) => {
    const title = group === "" ? "## Top-level options" : `## [${group}]`;
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
  if (!Number.isInteger(minutes)) return `${millis / 1000}s`;
  return minutes % 60 === 0 ? `${minutes / 60}h` : `${minutes}m`;
}
