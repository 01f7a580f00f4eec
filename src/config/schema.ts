import os from "node:os";
import path from "node:path";
import { z } from "zod";
import { defaultCacheDir } from "../launch/default-cache-dir.mjs";
import { canHaveFolder, ownTemporaryFolder } from "../launch/own-folder.mjs";

const MIB = 1024 * 1024;

/** "5m", "1h30m", "300s", "250ms", a number of seconds, or -1 for never. */
const DURATION = /^(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?$/;

/** Parses a duration into milliseconds; Infinity for a negative number, which means never. */
function parseDuration(value: string | number): number | undefined {
  if (typeof value === "number") return value < 0 ? Number.POSITIVE_INFINITY : value * 1000;
  const text = value.trim();
  if (/^-?\d+(\.\d+)?$/.test(text)) return parseDuration(Number(text));
  const match = DURATION.exec(text);
  if (!match || text === "") return undefined;
  const [hours, minutes, seconds, millis] = match.slice(1).map((part) => Number(part ?? 0));
  return ((hours! * 60 + minutes!) * 60 + seconds!) * 1000 + millis!;
}

const duration = z.union([z.string(), z.number()]).transform((value, context) => {
  const millis = parseDuration(value);
  if (millis !== undefined) return millis;
  context.addIssue({
    code: "custom",
    message: 'must be a duration such as "5m", "90s", seconds, or -1 for never',
  });
  return z.NEVER;
});

/** In bytes, on the systems that allow the least (macOS and the BSDs): sun_path less its final zero. */
export const LONGEST_SOCKET_PATH = 103;

/**
 * Where the IPC endpoint listens when none is configured: beside the user's other sockets where that folder can be used,
 * else in the cache folder, else, where that has too long a path, in a folder of the account's own among the temporary
 * files; never in /tmp itself.
 */
export function defaultSocket(env: NodeJS.ProcessEnv = process.env, platform = process.platform): string {
  if (platform === "win32") return `\\\\.\\pipe\\daybreak-${userName(env)}`;
  const runtimeDir = env["XDG_RUNTIME_DIR"];
  const usual =
    runtimeDir && canHaveFolder(runtimeDir)
      ? path.join(runtimeDir, "daybreak.sock")
      : path.join(defaultCacheDir(env), "run", "daybreak.sock");
  if (Buffer.byteLength(usual) <= LONGEST_SOCKET_PATH) return usual;
  const own = ownTemporaryFolder();
  return own === undefined ? usual : path.join(own, "daybreak.sock");
}

/** The system does not know every account, such as those of some services. */
function userName(env: NodeJS.ProcessEnv): string {
  try {
    return os.userInfo().username;
  } catch {
    return env["USERNAME"] || "user";
  }
}

/**
 * Every option of the daemon: this schema is the documentation. An option `a.b_c` is `[a] b_c = …` in the TOML
 * file, `SERVICE_A_B_C` in the environment and `--a-b-c` on the command line (secrets have no flag); flags win
 * over the environment, the environment over the file, the file over the defaults below.
 */
export const configSchema = z.strictObject({
  http: z
    .strictObject({
      addr: z
        .string()
        .min(1)
        .default("0.0.0.0")
        .describe(
          "Address to listen on; 127.0.0.1 for this machine alone. Set to 0.0.0.0 it is IPv4 alone; the default is IPv6 as well.",
        ),
      port: z.int().min(0).max(65_535).default(8080).describe("Port to listen on; 0 lets the system choose."),
      cors_origins: z
        .array(z.string())
        .default(["*"])
        .describe('Origins that pages may call from; "*" for any. Also checked for WebSockets.'),
      allowed_hosts: z
        .array(z.string())
        .default([])
        .describe(
          "Further Host headers to accept when bound to loopback, beside localhost and its addresses.",
        ),
      body_limit: z
        .int()
        .min(1024)
        .default(32 * MIB)
        .describe("Largest request body in bytes; beyond it the answer is 413."),
      rate_limit: z
        .int()
        .min(0)
        .default(0)
        .describe("Requests a minute for each client address; 0 switches the limit off."),
    })
    .prefault({}),
  api_keys: z
    .array(z.string().min(1))
    .default([])
    .describe(
      "When not empty, every route but /health asks for one of these as Bearer token or x-api-key; the IPC socket, which only its owner can open, does not.",
    ),
  socket: z
    .string()
    .default(() => defaultSocket())
    .describe("Path of the Unix socket (mode 0600), or the named pipe on Windows; empty switches IPC off."),
  cache_dir: z
    .string()
    .default(() => defaultCacheDir())
    .describe("Folder for downloaded models and made definitions."),
  hub_url: z.url().default("https://huggingface.co").describe("Address of the model hub; also HUB_URL."),
  hub_token: z.string().optional().describe("Credential for gated models; also HUB_TOKEN."),
  models: z
    .strictObject({
      default: z
        .string()
        .optional()
        .describe("Alias, hub spec or file of the default model; absent: the shipped one."),
      load: z
        .array(z.string())
        .optional()
        .describe("Models to load at the start; absent: the default model when it is on disk."),
      aliases_file: z
        .string()
        .optional()
        .describe("A TOML file of aliases laid over the built-in configs/models.toml."),
      allowed_dirs: z
        .array(z.string())
        .default([])
        .describe("When not empty, paths in load requests and Modelfiles must lie inside these folders."),
      auto_load: z.boolean().default(false).describe("Load a model that is on disk when a request names it."),
      keep_alive: duration
        .default(300_000)
        .describe("How long an auto-loaded model stays after its last request."),
      memory_budget: z
        .int()
        .min(0)
        .default(0)
        .describe(
          "Bytes that all engines together may use; 0 means 80 percent of the machine's memory, or of its container's. Never more than what is left beside the daemon and other programs.",
        ),
      context_size: z
        .int()
        .min(16)
        .default(4096)
        .describe("Context in tokens when neither request nor model says."),
      slots: z.int().min(1).max(64).default(4).describe("Requests that one model works on at once."),
      queue_size: z
        .int()
        .min(0)
        .default(64)
        .describe("Requests that may wait for a slot of one model; then 503."),
    })
    .prefault({}),
  engine: z
    .strictObject({
      threads: z
        .int()
        .min(0)
        .max(32)
        .default(0)
        .describe("Threads of one engine; 0 chooses from the machine's cores."),
      batch_size: z
        .int()
        .min(0)
        .max(8192)
        .default(0)
        .describe(
          "Most prompt tokens processed in one step; 0 chooses as many as 128 MiB of memory are enough for.",
        ),
      kernels: z
        .enum(["auto", "stock"])
        .default("auto")
        .describe(
          "auto: matrices are multiplied by Daybreak's own SIMD code; stock: llama.cpp's as it was compiled, many times slower.",
        ),
      flash_attention: z
        .enum(["auto", "true", "false"])
        .default("auto")
        .describe("Flash attention when the model does not say."),
      load_timeout: duration.default(600_000).describe("Longest time that loading may make no progress."),
      request_timeout: duration
        .default(600_000)
        .describe("Longest time that one request may run once it has a slot."),
      stall_timeout: duration
        .default(120_000)
        .describe("An engine that answers nothing for so long is ended."),
    })
    .prefault({}),
  gpu: z
    .strictObject({
      mode: z
        .enum(["auto", "off", "require"])
        .default("auto")
        .describe(
          "What models loaded without a number of GPU layers do: auto uses a GPU where there is one, require fails without one.",
        ),
      adapter: z
        .string()
        .optional()
        .describe("Part of the name of the GPU to use, as daybreak gpu shows it; absent: the best one."),
      power_preference: z
        .enum(["high-performance", "low-power"])
        .default("high-performance")
        .describe("Which of several GPUs is the best one."),
      memory: z
        .int()
        .min(0)
        .default(0)
        .describe(
          "Bytes of the GPU that all models together may use; what does not fit leaves layers to the CPU. 0: nine tenths of what the GPU has, where the operating system tells.",
        ),
    })
    .prefault({}),
  sandbox: z
    .enum(["auto", "require", "off"])
    .default("auto")
    .describe(
      "The operating system's wall around engines, beside Node's permission model: auto puts up the best one that works here; require loads no model without one, and forbids native code, and with it the GPU; off puts up none.",
    ),
  log: z
    .strictObject({
      level: z
        .enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"])
        .default("info")
        .describe("Least severe level that is logged."),
      format: z
        .enum(["auto", "json", "text"])
        .default("auto")
        .describe("auto: text on a terminal, JSON lines elsewhere."),
    })
    .prefault({}),
  drain_timeout: duration
    .default(30_000)
    .describe("How long running requests may go on after SIGTERM before they are cut."),
  ui: z.boolean().default(true).describe("Serve the page under /ui/."),
});

export type Config = z.output<typeof configSchema>;
export type ConfigInput = z.input<typeof configSchema>;
