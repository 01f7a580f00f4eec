import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";

interface AgentTarget {
  /** URL of the daemon, without a final slash. */
  readonly url: string;
  readonly apiKey: string;
  readonly model: string;
  /** Context in tokens. */
  readonly contextSize: number;
}

/** Environment and arguments that connect an agent to the daemon; its own files stay unchanged. */
interface AgentSettings {
  readonly env: Readonly<Record<string, string>>;
  /** Arguments before the user's. */
  readonly args: readonly string[];
}

interface CodingAgent {
  readonly title: string;
  readonly program: string;
  /** Command that installs it. */
  readonly install: string;
  settings(target: AgentTarget): AgentSettings;
}

/** Maximum share of the context for one answer. */
const ANSWER_SHARE = 1 / 8;

/** Variable with the API key for Codex, whose configuration takes only the name of a variable. */
const CODEX_KEY_VARIABLE = "DAYBREAK_API_KEY";

/** Agents by their names for `daybreak launch`. docs/clients.md describes the same settings. */
export const CODING_AGENTS: Readonly<Record<string, CodingAgent>> = {
  claude: {
    title: "Claude Code",
    program: "claude",
    install: "npm install -g @anthropic-ai/claude-code",
    settings: ({ url, apiKey, model, contextSize }) => ({
      env: {
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_AUTH_TOKEN: apiKey,
        // Claude Code would ask about the user's key of Anthropic, and send it to the daemon.
        ANTHROPIC_API_KEY: "",
        ANTHROPIC_MODEL: model,
        ANTHROPIC_DEFAULT_OPUS_MODEL: model,
        ANTHROPIC_DEFAULT_SONNET_MODEL: model,
        ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
        CLAUDE_CODE_SUBAGENT_MODEL: model,
        // Claude Code assumes 200,000 tokens for unknown models (CLAUDE_CODE_AUTO_COMPACT_WINDOW is at least 100,000).
        // It compacts once an answer of the maximum length no longer fits: at once with its default of 32,000 tokens.
        CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(contextSize),
        CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(Math.floor(contextSize * ANSWER_SHARE)),
        // This header changes the beginning of the prompt with each request, so the prompt cache would never hit.
        CLAUDE_CODE_ATTRIBUTION_HEADER: "0",
      },
      args: [],
    }),
  },
  codex: {
    title: "Codex",
    program: "codex",
    install: "npm install -g @openai/codex",
    settings: ({ url, apiKey, model, contextSize }) => {
      const settings = {
        model_provider: "daybreak",
        model_context_window: contextSize,
        "model_providers.daybreak.name": "Daybreak",
        "model_providers.daybreak.base_url": `${url}/v1`,
        "model_providers.daybreak.wire_api": "responses",
        "model_providers.daybreak.env_key": CODEX_KEY_VARIABLE,
      };
      // Values are TOML; JSON strings are valid TOML.
      const flags = Object.entries(settings).flatMap(([key, value]) => [
        "-c",
        `${key}=${JSON.stringify(value)}`,
      ]);
      return { env: { [CODEX_KEY_VARIABLE]: apiKey }, args: [...flags, "-m", model] };
    },
  },
  opencode: {
    title: "opencode",
    program: "opencode",
    install: "npm install -g opencode-ai",
    settings: ({ url, apiKey, model, contextSize }) => {
      const limit = { context: contextSize, output: Math.floor(contextSize * ANSWER_SHARE) };
      const provider = {
        npm: "@ai-sdk/openai-compatible",
        name: "Daybreak",
        options: { baseURL: `${url}/v1`, apiKey },
        models: { [model]: { name: model, tool_call: true, limit } },
      };
      // opencode merges it into the user's own configuration.
      const config = { model: `daybreak/${model}`, provider: { daybreak: provider } };
      return { env: { OPENCODE_CONFIG_CONTENT: JSON.stringify(config) }, args: [] };
    },
  },
  "qwen-code": {
    title: "Qwen Code",
    program: "qwen",
    install: "npm install -g @qwen-code/qwen-code",
    settings: ({ url, apiKey, model }) => ({
      env: { OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: apiKey, OPENAI_MODEL: model },
      args: ["--auth-type", "openai"],
    }),
  },
};

/** Default of PATHEXT: extensions that Windows tries for a name without one. */
const WINDOWS_EXTENSIONS = ".COM;.EXE;.BAT;.CMD";

/** Path of the first of these programs in a folder of PATH. */
export function findInPath(names: readonly string[], env: NodeJS.ProcessEnv): string | undefined {
  const folders = (env["PATH"] ?? "").split(path.delimiter).filter((folder) => folder !== "");
  const extensions = process.platform === "win32" ? (env["PATHEXT"] ?? WINDOWS_EXTENSIONS).split(";") : [""];
  const candidates = names.flatMap((name) =>
    folders.flatMap((folder) => extensions.map((extension) => path.join(folder, name + extension))),
  );
  return candidates.find(isProgram);
}

export function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
