import { configOptions, type ConfigOption } from "../../src/config/config-options.ts";
import { configSchema } from "../../src/config/schema.ts";
import { defaultValue } from "./configuration-page.ts";

const LINE_LENGTH = 100;
const HEAD = `# Every option of the daemon with its default. Copy what you want to change.
# Made by scripts/docs/generate.ts from src/config/schema.ts: change that, then run it.
`;

/** Example values of options whose default is none or depends on the machine. */
const EXAMPLES: Readonly<Record<string, string>> = {
  socket: '"~/.cache/daybreak/run/daybreak.sock"',
  cache_dir: '"~/.cache/daybreak"',
  hub_token: '"hf_…"',
  "tracing.otlp_endpoint": '"http://localhost:4318"',
  "fleet.nats": '"nats://192.168.1.10:4222"',
  "fleet.name": '"desk"',
  "fleet.credentials": '"daybreak.creds"',
  "fleet.tls_ca": '"ca.pem"',
  "models.default": '"qwen3:0.6b"',
  "models.load": '["qwen3:0.6b"]',
  "models.aliases_file": '"models.toml"',
  "engine.cache_type_k": '"q8_0"',
  "engine.cache_type_v": '"q8_0"',
  "engine.rope_scaling": '"yarn"',
  "engine.rope_freq_base": "10000",
  "engine.rope_freq_scale": "0.25",
  "engine.yarn_orig_ctx": "32768",
  "engine.yarn_ext_factor": "1",
  "engine.yarn_attn_factor": "1",
  "engine.yarn_beta_fast": "32",
  "engine.yarn_beta_slow": "1",
  "engine.context_shift": "true",
  "engine.num_keep": "0",
  "engine.cache_reuse": "256",
  "engine.pooling": '"mean"',
};

/** The text of configs/daybreak.toml: every option, commented out. */
export function exampleConfig(): string {
  const defaults = configSchema.parse({});
  const groups = Map.groupBy(configOptions, (option) =>
    option.path.length > 1 ? (option.path[0] ?? "") : "",
  );
  // Options outside of a table must stand before the first table.
  const ordered = [...groups].toSorted(([a], [b]) => Number(a !== "") - Number(b !== ""));
  const sections = ordered.map(([group, options]) => {
    const title = group === "" ? "" : `[${group}]\n`;
    const entries = options.map((option) =>
      entry(option, EXAMPLES[option.name] ?? defaultValue(option, defaults)),
    );
    return `${title}${entries.join("\n")}`;
  });
  return `${HEAD}\n${sections.join("\n")}`;
}

function entry(option: ConfigOption, value = '""'): string {
  const comment = wrap(option.description).map((line) => `# ${line}\n`);
  return `${comment.join("")}# ${option.path.at(-1)} = ${value}\n`;
}

function wrap(text: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + word.length + 1 > LINE_LENGTH) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
