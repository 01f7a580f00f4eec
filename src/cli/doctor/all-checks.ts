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
  const where = {
    socket: config.socket,
    http: { ...config.http, isChosen: origins.has("http.addr") },
    apiKey: env["SERVICE_API_KEY"] || config.api_keys[0],
  };
  const daemon = findDaemon(where, signal);
  // Those who await it see its failure; otherwise it does not matter.
  daemon.catch(() => {});
  return [
    runtimeCheck(),
    memoryCheck(),
    configurationCheck(read, env),
    daemonCheck({ where, daemon, version: packageVersion() }),
    fleetCheck(daemon, config.fleet.nats !== undefined),
    sandboxCheck(async () => await wallOf(daemon, sandbox)),
    gpuCheck(gpu.mode, async () => {
      const { mode, adapter, power_preference: powerPreference } = gpu;
      const finder = new GpuFinder({ mode, adapter, powerPreference, sandbox });
      await finder.ready;
      return finder;
    }),
    cacheCheck(config.cache_dir),
    modelsCheck(config.cache_dir),
    hubCheck({ hubUrl: config.hub_url, token: config.hub_token, fetch: http1Fetch }),
  ];
}

/** A daemon may run with other rights than this command: its report counts. */
async function wallOf(daemon: Promise<FoundDaemon>, mode: SandboxState["mode"]): Promise<SandboxState> {
  const said = (await daemon).status?.sandbox;
  if (said && said.wall !== "unknown") return { ...said, problem: said.problem };
  const wall = new SandboxFinder({ mode });
  // Throws where one is required and none works: the state says so too.
  await wall.find().catch(() => undefined);
  return wall.state;
}

const NAME = "Configuration";

/** What was read, or why nothing could be. */
export type ReadConfiguration = LoadedConfig & { readonly error?: string };

/** Reads the configuration; when it is wrong, the defaults, which the other checks can still use. */
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

/** The configuration's file and variables. */
export function configurationCheck(read: ReadConfiguration, env: NodeJS.ProcessEnv): Check {
  const look = () => {
    const { file, warnings, error } = read;
    if (error !== undefined) {
      return problem(NAME, error, "Correct it (docs/configuration.md); the checks below use the defaults.");
    }
    if (warnings.length === 0)
      return ok(NAME, file === undefined ? noFile(defaultConfigFile(env)) : `valid: ${file}`);
    const what = file === undefined ? "none is read" : `valid: ${file}`;
    return note(NAME, `${what}; the daemon warns when it starts`, warnings.join(" "));
  };
  return { name: NAME, deadlineMs: 5000, look: async () => [look()] };
}

function noFile(place: string | undefined): string {
  return place === undefined ? "no file" : `no file; one could be at ${place}`;
}
