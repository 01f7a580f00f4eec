import { GpuFinder } from "../../engine/gpu/gpu-finder.ts";
import { SandboxFinder, type WallState } from "../../engine/walls/sandbox-finder.ts";
import { packageVersion } from "../../daemon/package-version.ts";
import { http1Fetch } from "../../models/hub/remote/http1-fetch.ts";
import { cacheCheck } from "./cache-check.ts";
import type { Check } from "./check.ts";
import { configurationCheck, type ReadConfiguration } from "./configuration-check.ts";
import { daemonCheck } from "./daemon-check.ts";
import { type DaemonLook, lookForDaemon } from "./daemon-look.ts";
import { fleetCheck } from "./fleet-check.ts";
import { gpuCheck } from "./gpu-check.ts";
import { hubCheck } from "./hub-check.ts";
import { memoryCheck } from "./memory-check.ts";
import { modelsCheck } from "./models-check.ts";
import { runtimeCheck } from "./runtime-check.ts";
import { wallCheck } from "./wall-check.ts";

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
  const daemon = lookForDaemon(where, signal);
  // Those who await it see its failure; otherwise it does not matter.
  daemon.catch(() => {});
  return [
    runtimeCheck(),
    memoryCheck(),
    configurationCheck(read, env),
    daemonCheck({ where, daemon, version: packageVersion() }),
    fleetCheck(daemon, config.fleet.nats !== undefined),
    wallCheck(async () => await wallOf(daemon, sandbox)),
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
async function wallOf(daemon: Promise<DaemonLook>, mode: WallState["mode"]): Promise<WallState> {
  const said = (await daemon).status?.sandbox;
  if (said && said.wall !== "unknown") return { ...said, problem: said.problem };
  const wall = new SandboxFinder({ mode });
  // Throws where one is required and none works: the state says so too.
  await wall.find().catch(() => undefined);
  return wall.state;
}
