import { ConfigError } from "../../config/config-error.ts";
import { defaultConfigFile } from "../../config/default-paths.ts";
import { loadConfig, type LoadedConfig } from "../../config/load-config.ts";
import { configSchema } from "../../config/schema.ts";
import { packageVersion } from "../../daemon/package-version.ts";
import { GpuFinder } from "../../engine/gpu/gpu-finder.ts";
import { SandboxFinder, type SandboxState } from "../../engine/sandbox/sandbox-finder.ts";
import { http1Fetch } from "../../models/hub/remote/http1-fetch.ts";
import { daemonCheck, type FoundDaemon, fleetCheck, findDaemon } from "./daemon-checks.ts";
import { hubCheck } from "./hub-check.ts";
import { gpuCheck, memoryCheck, runtimeCheck, sandboxCheck } from "./machine-checks.ts";
import { type Check, note, ok, problem } from "./run-checks.ts";
import { cacheCheck, modelsCheck } from "./storage-checks.ts";

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

const CONFIGURATION = "Configuration";

/** Loaded configuration, or the defaults and the error. */
export type ReadConfiguration = LoadedConfig & { readonly error?: string };

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
  const judge = () => {
    const { file, warnings, error } = read;
    if (error !== undefined) {
      return problem(
        CONFIGURATION,
        error,
        "Correct it (docs/configuration.md); the checks below use the defaults.",
      );
    }
    if (warnings.length === 0)
      return ok(
        CONFIGURATION,
        file === undefined ? describeMissingFile(defaultConfigFile(env)) : `valid: ${file}`,
      );
    const what = file === undefined ? "none is read" : `valid: ${file}`;
    return note(CONFIGURATION, `${what}; the daemon warns when it starts`, warnings.join(" "));
  };
  return { name: CONFIGURATION, deadlineMs: 5000, run: async () => [judge()] };
}

function describeMissingFile(defaultFile: string | undefined): string {
  return defaultFile === undefined ? "no file" : `no file; one could be at ${defaultFile}`;
}
