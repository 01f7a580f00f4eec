import { ConfigError } from "../../config/read-config-file.ts";
import { defaultConfigFile } from "../../config/default-paths.ts";
import { loadConfig, type LoadedConfig } from "../../config/load-config.ts";
import { configSchema } from "../../config/schema.ts";
import { packageVersion } from "../../daemon/package-version.ts";
import { GpuFinder } from "../../engine/gpu/gpu-finder.ts";
import { SandboxFinder, type SandboxState } from "../../engine/sandbox/sandbox-finder.ts";
import { http1Fetch } from "../../models/hub/remote/http1-fetch.ts";
import { daemonCheck, findDaemon, fleetCheck, type FoundDaemon } from "./daemon-checks.ts";
import { gpuCheck, memoryCheck, runtimeCheck, sandboxCheck } from "./machine-checks.ts";
import { type Check, createCheck, note, ok, problem, type Result } from "./run-checks.ts";
import { cacheCheck, modelsCheck } from "./storage-checks.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { HubNetworkFailure } from "../../models/hub/remote/hub-error.ts";
import { closeBody, HubFetch } from "../../models/hub/remote/hub-fetch.ts";
import { formatDuration } from "../../json/quantities.ts";

/** All checks of this machine and installation, in the order in which they are shown. */
export function allChecks(
  read: ReadConfiguration,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): readonly Check[] {
  const { config, origins } = read;
  const { gpu, sandbox } = config;
  const localDaemon = {
    socket: config.socket,
    http: { ...config.http, isExplicit: origins.has("http.addr") },
    apiKey: env["SERVICE_API_KEY"] || config.api_keys[0],
  };
  const daemon = findDaemon(localDaemon, signal);
  // Checks that await it report the failure; without a handler here Node would call it unhandled.
  daemon.catch(() => {});
  return [
    runtimeCheck(),
    memoryCheck(),
    configurationCheck(read, env),
    daemonCheck({ where: localDaemon, daemon, version: packageVersion() }),
    fleetCheck(daemon, config.fleet.nats !== undefined),
    sandboxCheck(async () => await findSandboxState(daemon, sandbox)),
    gpuCheck(gpu.mode, async () => {
      const finder = new GpuFinder({ mode: gpu.mode, adapter: gpu.adapter, sandbox });
      await finder.ready;
      return finder;
    }),
    cacheCheck(config.cache_dir),
    modelsCheck(config.cache_dir),
    hubCheck({ hubUrl: config.hub_url, token: config.hub_token, fetch: http1Fetch }),
  ];
}

/** Returns the daemon's sandbox state if it runs, since it may have other rights than this command. */
async function findSandboxState(
  daemon: Promise<FoundDaemon>,
  mode: SandboxState["mode"],
): Promise<SandboxState> {
  const reported = (await daemon).status?.sandbox;
  if (reported && reported.wall !== "unknown") return { ...reported, problem: reported.problem };
  const finder = new SandboxFinder({ mode });
  // Throws if one is required and none works, which the state also says.
  await finder.find().catch(() => undefined);
  return finder.state;
}

/** Loaded configuration, or the defaults and the error. */
type ReadConfiguration = LoadedConfig & { readonly error?: string };

/** Loads the configuration; falls back to the defaults, so that the other checks can run. */
export function readConfiguration(
  env: NodeJS.ProcessEnv,
  { config: file, socket }: { config?: string; socket?: string },
): ReadConfiguration {
  try {
    return loadConfig({ env, file, flags: { socket } });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const config = configSchema.parse({});
    return { config, file: undefined, warnings: [], origins: new Map(), error: error.message };
  }
}

/** Checks the configuration file and variables. */
export function configurationCheck(read: ReadConfiguration, env: NodeJS.ProcessEnv): Check {
  return createCheck("Configuration", () => {
    const { file, warnings, error } = read;
    if (error !== undefined) {
      return problem(error, "Correct it (docs/configuration.md); the checks below use the defaults.");
    }
    if (warnings.length === 0)
      return ok(file === undefined ? describeMissingFile(defaultConfigFile(env)) : `valid: ${file}`);
    const what = file === undefined ? "none is read" : `valid: ${file}`;
    return note(`${what}; the daemon warns when it starts`, warnings.join(" "));
  });
}

function describeMissingFile(defaultFile: string | undefined): string {
  return defaultFile === undefined ? "no file" : `no file; one could be at ${defaultFile}`;
}

const TOKEN = "Hub token";

/** Deadline of the request. */
const HUB_DEADLINE_MS = 5000;

/** Clock skew that certificates and signed URLs tolerate. */
const MAX_CLOCK_SKEW_MS = 5 * 60_000;

interface HubCheckOptions {
  readonly hubUrl: string;
  readonly token: string | undefined;
  readonly fetch: typeof fetch;
  /** Unix milliseconds. */
  readonly now?: () => number;
}

/** Checks whether the hub answers and accepts the token, and whether the clocks agree. */
export function hubCheck(options: HubCheckOptions): Check {
  return createCheck(
    "Hub",
    async (signal) =>
      await checkHub(options, AbortSignal.any([signal, AbortSignal.timeout(HUB_DEADLINE_MS)])),
    HUB_DEADLINE_MS + 1000,
  );
}

async function checkHub(options: HubCheckOptions, signal: AbortSignal): Promise<Result | readonly Result[]> {
  const { hubUrl, token, fetch, now = Date.now } = options;
  const base = hubUrl.replace(/\/+$/, "");
  const hub = new HubFetch({ hubUrl, token, fetch });
  const path = token === undefined ? "/api/models?limit=1" : "/api/whoami-v2";
  const startedAt = now();
  try {
    const { response } = await hub.request(base + path, { signal });
    const answeredAt = (startedAt + now()) / 2;
    await closeBody(response);
    const { status, headers } = response;
    const clock = clockFinding(headers, answeredAt);
    return [
      status >= 500
        ? note(`${base} answers with status ${status}`, "Try again later.")
        : ok(`${base} answers`),
      ...(token === undefined ? [] : [{ name: TOKEN, ...tokenFinding(status, base) }]),
      ...(clock ? [{ name: "Clock", ...clock }] : []),
    ];
  } catch (error) {
    return failureFinding(error, base);
  }
}

function tokenFinding(status: number, base: string): Result {
  if (status >= 200 && status < 300) return ok("accepted");
  if (status === 401 || status === 403) {
    return problem(
      `${base} does not accept it (status ${status})`,
      `Make a new one at ${base}/settings/tokens and set HUB_TOKEN to it, or unset HUB_TOKEN: only gated models need one.`,
    );
  }
  return note(`${base} does not say whether the token is valid (status ${status})`);
}

function clockFinding(headers: Headers, now: number): Result | undefined {
  const date = Date.parse(headers.get("date") ?? "");
  if (Number.isNaN(date)) return undefined;
  // A cached response is as old as its age header says.
  const hubTime = date + Number(headers.get("age") ?? 0) * 1000;
  const difference = now - hubTime;
  if (Math.abs(difference) <= MAX_CLOCK_SKEW_MS) return ok("agrees with the hub's");
  const how = `${formatDuration(Math.abs(difference))} ${difference > 0 ? "ahead of" : "behind"}`;
  return note(
    `${how} the hub's; certificates and signed URLs may be rejected`,
    "Set the clock, preferably from the network (Linux: timedatectl set-ntp true).",
  );
}

function failureFinding(error: unknown, base: string): Result {
  if (error instanceof ServiceError)
    return { name: TOKEN, ...problem(error.message, "Set HUB_TOKEN again, without spaces or line ends.") };
  const isTimeout = error instanceof Error && (error.name === "TimeoutError" || error.name === "AbortError");
  const reason = isTimeout
    ? `no answer in ${HUB_DEADLINE_MS / 1000} s`
    : error instanceof Error
      ? error.message
      : String(error);
  if (error instanceof HubNetworkFailure && error.isFinal) {
    return problem(
      `${base} cannot be used: ${reason}`,
      "Until then nothing can be downloaded; models on disk work.",
    );
  }
  return note(
    `${base} cannot be reached (${reason})`,
    "Models on disk work without it. To download, check the network connection, and set HTTPS_PROXY if a proxy is needed.",
  );
}
