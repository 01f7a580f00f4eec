import { z } from "zod";
import { MIB } from "../json/quantities.ts";
import { defaultSocket } from "./default-paths.ts";
import { duration } from "./config-values.ts";
import { namedLoadSettings } from "./load-settings.ts";
import { defaultCacheDir } from "../launch/default-cache-dir.mjs";

/** Smallest context of an engine, in tokens. */
const MIN_CONTEXT = 16;

/** Option with a default. */
function option<Type extends z.ZodType>(
  type: Type,
  value: z.util.NoUndefined<z.output<Type>>,
  description: string,
): z.ZodDefault<Type> {
  return type.default(value).describe(description);
}

function areNatsServers(text: string): boolean {
  return text.split(",").every((part) => {
    const server = part.trim();
    return (
      /^(nats|tls):\/\/[^/]+\/?$/.test(server) && URL.canParse(server) && new URL(server).hostname !== ""
    );
  });
}

/**
 * All options of the daemon; their documentation is generated from this schema. An option `a.b_c` is `[a] b_c = …` in
 * the TOML file, `SERVICE_A_B_C` in the environment and `--a-b-c` on the command line; secrets have no flag. Flags take
 * precedence over the environment, the environment over the file, and the file over the defaults below.
 */
export const configSchema = z.strictObject({
  http: z
    .strictObject({
      addr: option(
        z.string().min(1),
        "0.0.0.0",
        "Address to listen on; 127.0.0.1 for this machine only. The default is all IPv4 and IPv6 addresses; 0.0.0.0 set explicitly is IPv4 only.",
      ),
      port: option(z.int().min(0).max(65_535), 8080, "Port to listen on; 0 picks a free one."),
      cors_origins: option(
        z.array(z.string()),
        ["*"],
        'Origins whose pages may call the daemon, also over WebSockets; "*" for any.',
      ),
      allowed_hosts: option(
        z.array(z.string()),
        [],
        "Host headers to accept while listening on a loopback address, in addition to localhost and its addresses.",
      ),
      body_limit: option(
        z.int().min(1024),
        32 * MIB,
        "Maximum size of a request body in bytes; larger ones are 413.",
      ),
      rate_limit: option(z.int().min(0), 0, "Requests per minute from one client address; 0 means no limit."),
    })
    .prefault({}),
  api_keys: option(
    z.array(z.string().min(1)),
    [],
    "If not empty, every route except /health and the files of the page requires one of these as Bearer token or x-api-key. The IPC socket, which only its owner can open, does not.",
  ),
  socket: z
    .string()
    .default(() => defaultSocket())
    .describe(
      "Path of the Unix socket (mode 0600), or name of the named pipe on Windows; empty disables IPC.",
    ),
  cache_dir: z
    .string()
    .default(() => defaultCacheDir())
    .describe("Folder for downloaded models and for models created from Modelfiles."),
  hub_url: option(z.url(), "https://huggingface.co", "Address of the model hub; also HUB_URL."),
  hub_token: z.string().optional().describe("Access token for gated models; also HUB_TOKEN."),
  models: z
    .strictObject({
      default: z
        .string()
        .optional()
        .describe("Alias, hub spec or file of the default model; by default the one that ships."),
      load: z
        .array(z.string())
        .optional()
        .describe("Models to load at startup; by default the default model, if it is on disk."),
      aliases_file: z
        .string()
        .optional()
        .describe("A TOML file with aliases that extend and override configs/models.toml."),
      dirs: option(
        z.array(z.string()),
        [],
        "Folders whose GGUF files are models, with their subfolders; also Ollama's (~/.ollama/models) and the Hugging Face cache. Their files stay where they are.",
      ),
      allowed_dirs: option(
        z.array(z.string()),
        [],
        "If not empty, paths in load requests and Modelfiles must be inside these folders.",
      ),
      auto_load: option(
        z.boolean(),
        true,
        "Load a model on disk when a request names it, and unload idle models where it needs their memory. If false, such a request is 404 model_not_loaded; Ollama's API loads models all the same.",
      ),
      keep_alive: option(
        duration,
        300_000,
        "How long an automatically loaded model stays loaded after its last request.",
      ),
      memory_budget: option(
        z.int().min(0),
        0,
        "Bytes of memory that all engines together may use; 0 means 80 percent of the machine's or container's memory. Never more than the daemon and other programs leave free.",
      ),
      context_size: option(
        z.int().refine((tokens) => tokens === 0 || tokens >= MIN_CONTEXT, {
          error: `must be 0 or at least ${MIN_CONTEXT}`,
        }),
        0,
        "Context in tokens, unless the request or the model says otherwise; at most what the model was trained for. 0 chooses: what the model was trained for, at most 32768, or less where that would take more than half of the free memory.",
      ),
      repetition_guard: option(
        z.boolean(),
        false,
        "Stop answers that run in circles, unless the request or the model says otherwise: the same tokens at least four times, for 512 tokens in all (256 for up to four tokens, 4096 for numbers).",
      ),
      saved_prompts: option(
        z.int().min(0),
        2 * 1024 * MIB,
        "Bytes of disk, in the cache folder, for what models have computed of their conversations: a model that is loaded again finds its last ones, and clients can save prompts by name. The oldest are removed first. 0 saves nothing.",
      ),
      speculation: option(
        z.enum(["auto", "ngram", "off"]),
        "auto",
        "Guess tokens and check several in one step, unless the request, the load or the model (PARAMETER speculation) says otherwise; it changes no answer. auto: with models that have a draft model; ngram: with all, from what the text repeats; off: draft models are not loaded either.",
      ),
      prompt_cache: option(
        z.int().min(-1),
        -1,
        "Bytes of memory per model for prompts that no slot holds any more, so that conversations which take turns are not read again; part of the memory budget. 0 turns it off; -1 chooses: as many as four contexts take, at most 1 GiB and an eighth of what the model leaves free.",
      ),
      slots: option(z.int().min(1).max(64), 4, "Requests that one model processes at the same time."),
      queue_size: option(z.int().min(0), 64, "Requests that may wait for a slot of one model; more are 503."),
    })
    .prefault({}),
  engine: z
    .strictObject({
      ...namedLoadSettings,
      threads: option(z.int().min(0).max(32), 0, "Threads per engine; 0 chooses by the number of cores."),
      batch_size: option(
        z.int().min(0).max(8192),
        0,
        "Maximum prompt tokens processed in one step, unless the load or the model says otherwise; 0 chooses as many as fit into 128 MiB of memory.",
      ),
      kernels: option(
        z.enum(["auto", "stock"]),
        "auto",
        "auto: Daybreak's own SIMD kernels; stock: llama.cpp's kernels, many times slower.",
      ),
      flash_attention: option(
        z.enum(["auto", "true", "false"]),
        "auto",
        "Flash attention. auto: on a GPU that has it, and with a quantized cache_type_v, which needs it.",
      ),
      load_timeout: option(duration, 600_000, "Maximum time without progress while loading a model."),
      request_timeout: option(duration, 600_000, "Maximum time that a request may run once it has a slot."),
      stall_timeout: option(duration, 120_000, "An engine that does not respond for this long is ended."),
    })
    .prefault({}),
  batches: z
    .strictObject({
      max_file_size: option(
        z.int().min(1024),
        200 * MIB,
        "Maximum size of an uploaded file of a batch in bytes; larger ones are 413.",
      ),
      max_total_size: option(
        z.int().min(0),
        10 * 1024 * MIB,
        "Bytes of disk, in the cache folder, for the files and answers of all batches together; while they take more, uploads are refused. 0 refuses all.",
      ),
      max_lines: option(z.int().min(1), 50_000, "Maximum requests of one batch."),
      retention: option(
        duration,
        30 * 24 * 3_600_000,
        "How long files and finished batches are kept, unless a request says less; -1: forever.",
      ),
    })
    .prefault({}),
  gpu: z
    .strictObject({
      mode: option(
        z.enum(["auto", "off", "require"]),
        "auto",
        "For models loaded without a number of GPU layers: auto uses a GPU if there is one, require fails without one, off uses the CPU.",
      ),
      adapter: z
        .string()
        .optional()
        .describe("Part of the name of the GPU to use, as shown by daybreak gpu; by default the best one."),
      replay: option(
        z.boolean(),
        true,
        "Repeat what the GPU was told to compute before, where a step has the same shape, instead of describing it again.",
      ),
      memory: option(
        z.int().min(0),
        0,
        "Bytes of GPU memory that all models together may use; layers that do not fit stay on the CPU. 0: nine tenths of the GPU's memory, if the operating system reports it.",
      ),
    })
    .prefault({}),
  sandbox: option(
    z.enum(["auto", "require", "off"]),
    "auto",
    "Operating system sandbox for engines, in addition to Node's permission model: auto uses the best one that works on this machine; require loads no model without one, and disables native code and therefore the GPU; off uses none.",
  ),
  log: z
    .strictObject({
      level: option(
        z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]),
        "info",
        "Lowest level that is logged.",
      ),
      format: option(
        z.enum(["auto", "json", "text"]),
        "auto",
        "auto: text on a terminal, JSON lines elsewhere.",
      ),
    })
    .prefault({}),
  tracing: z
    .strictObject({
      otlp_endpoint: z
        .url({ protocol: /^https?$/ })
        .optional()
        .describe(
          "Send a trace of each request, without its texts, to this OpenTelemetry receiver (OTLP over HTTP); also OTEL_EXPORTER_OTLP_ENDPOINT. By default none is made.",
        ),
    })
    .prefault({}),
  fleet: z
    .strictObject({
      nats: z
        .string()
        .refine(areNatsServers, {
          // The message does not quote the value, which may contain a password.
          error:
            "is not the address of a NATS server, such as nats://host:4222, or several separated by commas",
        })
        .optional()
        .describe(
          "Join the machines that use this NATS server, such as nats://host:4222; several servers of one cluster are separated by commas. A user and password, or a token, may stand before the host. By default the daemon works alone.",
        ),
      name: z
        .string()
        .min(1)
        .max(64)
        .optional()
        .describe("Name of this machine in the fleet; by default the host's name."),
      prefix: option(
        z
          .string()
          .regex(/^[\w-]+(\.[\w-]+)*$/, "must be letters, digits, - and _, in parts separated by dots"),
        "daybreak",
        "What all subjects begin with; fleets with different prefixes do not see each other.",
      ),
      credentials: z.string().optional().describe("A NATS credentials file (.creds)."),
      tls_ca: z
        .string()
        .optional()
        .describe("A PEM file with the authority that the NATS server's certificate must come from."),
      share_files: option(
        z.boolean(),
        true,
        "Give other machines the files that this one has from the hub, also those of gated and private models, and take theirs instead of downloading again.",
      ),
    })
    .prefault({}),
  drain_timeout: option(
    duration,
    30_000,
    "How long running requests may continue after SIGTERM before they are aborted.",
  ),
  ui: option(z.boolean(), true, "Serve the page under /ui/."),
});

export type Config = z.output<typeof configSchema>;
export type ConfigInput = z.input<typeof configSchema>;
