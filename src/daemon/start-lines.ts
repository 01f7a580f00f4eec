import { title } from "../engine/gpu/choose-adapter.ts";
import type { ManagementServices } from "../dialects/management/management-services.ts";
import { isRefused, natsTrouble } from "../dialects/management/nats-trouble.ts";
import { isLoopbackAddress } from "../http/client-address.ts";
import type { RunningDaemon } from "./start-daemon.ts";

/** "Daybreak 0.1.0 listens on http://127.0.0.1:8080 and ipc:///run/user/1000/daybreak.sock" */
export function listeningLine({ url, services }: RunningDaemon): string {
  const { http, ipc } = services.endpoints;
  const everywhere = http === url ? "" : ` (on all addresses: ${http})`;
  return `Daybreak ${services.version} listens on ${url}${everywhere}${ipc === "" ? "" : ` and ${ipc}`}`;
}

/** "GPU: NVIDIA GeForce RTX 4070 (vulkan)", or why there is none. */
export function gpuLine({ gpu }: ManagementServices): string {
  return gpu.adapter ? `GPU: ${title(gpu.adapter)}` : `No GPU: models run on the CPU. ${gpu.problem ?? ""}`;
}

/** "Ready: daybreak-mini, 4096 tokens of context, 2 threads, CPU" */
export async function readyLine(services: ManagementServices): Promise<string> {
  const loaded = (await services.models.list()).filter((model) => model.state === "loaded");
  if (loaded.length === 0) {
    return "Ready, with no model loaded. GET /api/models lists those on disk; daybreak pull downloads one.";
  }
  const parts = await Promise.all(loaded.map((model) => describe(services, model.alias)));
  return `Ready: ${parts.join("; ")}`;
}

async function describe(services: ManagementServices, alias: string): Promise<string> {
  using lease = await services.models.acquire(alias, services.draining);
  const { contextSize, threads, gpuLayers } = lease.engine.info;
  const place = gpuLayers > 0 ? `${gpuLayers} layers on the GPU` : "CPU";
  return `${alias}, ${contextSize} tokens of context, ${threads} ${threads === 1 ? "thread" : "threads"}, ${place}`;
}

/** "Fleet: joined as desk; 3 machines: desk, laptop, workstation", or that its NATS server is not there. */
export function fleetLine({ fleet }: ManagementServices): string | undefined {
  if (!fleet) return undefined;
  const { name, isConnected, problem, machines } = fleet.report();
  if (!isConnected && isRefused(problem))
    return `Fleet: the NATS server ${natsTrouble(problem)}; ${name} works alone until they are right`;
  if (!isConnected) return `Fleet: the NATS server is not reachable yet; ${name} works alone until it is`;
  const names = machines.map((machine) => machine.name).join(", ");
  return `Fleet: joined as ${name}; ${machines.length} ${machines.length === 1 ? "machine" : "machines"}: ${names}`;
}

/** A warning if anyone on the network can use the daemon. */
export function exposureWarning({ config }: ManagementServices): string | undefined {
  if (isLoopbackAddress(config.http.addr) || config.api_keys.length > 0) return undefined;
  return (
    `Anyone who reaches ${config.http.addr} over the network can use this daemon: no API key is set. ` +
    "Use --http-addr 127.0.0.1 for this machine alone, or set api_keys."
  );
}
