/** What an agent is to talk to. */
interface AgentTarget {
  /** Of the daemon, without a slash at the end. */
  readonly url: string;
  readonly apiKey: string;
  readonly model: string;
  /** In tokens. */
  readonly contextSize: number;
}

/** What makes an agent talk to the daemon; none of its own files are touched. */
interface AgentSettings {
  readonly env: Readonly<Record<string, string>>;
  /** Stand before those of the user. */
  readonly args: readonly string[];
}

interface CodingAgent {
  readonly title: string;
  readonly program: string;
  /** How people install it. */
  readonly install: string;
  settings(target: AgentTarget): AgentSettings;
}

/** Share of the context that Claude Code and opencode may fill with one answer. */
const ANSWER_SHARE = 1 / 8;

/** Carries the API key to Codex, which takes the name of a variable only. */
const CODEX_KEY_VARIABLE = "DAYBREAK_API_KEY";

/** By the names that `daybreak launch` takes. docs/clients.md says how each is set up by hand. */
export const CODING_AGENTS: Readonly<Record<string, CodingAgent>> = {
  claude: {
    title: "Claude Code",
    program: "claude",
    install: "npm install -g @anthropic-ai/claude-code",
    settings: ({ url, apiKey, model, contextSize }) => ({
      env: {
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_AUTH_TOKEN: apiKey,
        // The user's own key would be asked about, and belongs elsewhere.
        ANTHROPIC_API_KEY: "",
        ANTHROPIC_MODEL: model,
        ANTHROPIC_DEFAULT_OPUS_MODEL: model,
        ANTHROPIC_DEFAULT_SONNET_MODEL: model,
        ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
        CLAUDE_CODE_SUBAGENT_MODEL: model,
        // It takes a model that it does not know for one with 200,000 tokens, and CLAUDE_CODE_AUTO_COMPACT_WINDOW for 100,000
        // at least. It compacts as soon as no answer of the greatest length fits, at once with its own of 32,000.
        CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(contextSize),
        CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(Math.floor(contextSize * ANSWER_SHARE)),
        // It differs from request to request at the very beginning, so that no prompt would be found in the cache.
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
      // Values are TOML, whose strings are written like those of JSON.
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
