import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import os from "node:os";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Logger } from "pino";
import { IMAGE_SHA256 } from "../../wasm/engine-image.ts";
import { STOCK_SHA256 } from "../../wasm/llama-cpp-build.ts";
import type { BatchService } from "../batches/batch-service.ts";
import type { RunOutcome } from "../batches/batch.ts";
import type { Config } from "../config/schema.ts";
import type { MachineMemory, ManagementServices } from "../api/management/management-services.ts";
import { EngineImage, fallbackFolders } from "../engine/engine-image.ts";
import { GpuFinder, type GpuState } from "../engine/gpu/gpu-finder.ts";
import { SandboxFinder } from "../engine/sandbox/sandbox-finder.ts";
import { isModuleMissing, rethrowExhaustion, ServiceError } from "../errors/service-error.ts";
import { type ServiceEvent, ServiceEvents } from "../events/service-events.ts";
import type { DaemonState } from "../http/errors.ts";
import { REQUEST_LINE } from "../http/middleware/request-log.ts";
import { createInference } from "../inference/create-inference.ts";
import type { Inference } from "../inference/inference.ts";
import type { CompileOffThread } from "../inference/schema-compiler.ts";
import { memoryTotal, residentBytes } from "../machine/memory.ts";
import { createMetrics } from "../metrics/create-metrics.ts";
import type { ScrapedGauges } from "../metrics/scraped-gauges.ts";
import type { Model } from "../models/model.ts";
import type { Models } from "../models/models.ts";
import { Activity } from "./activity/activity.ts";
import { createModels } from "./create-models.ts";
import { BATCH_FORMATS } from "./create-apis.ts";
import { GrammarThread } from "./grammars/grammar-thread.ts";
import { BrowserScripts, compatWasm, pageFile, readDefaultModels } from "./package-files.ts";
import { packageVersion } from "./package-version.ts";
import { isBatchWork } from "./run-batch-line.ts";
import type { Traces } from "./open-traces.ts";

/** Events that are logged as warnings. */
const WARNING_EVENTS: ReadonlySet<ServiceEvent["type"]> = new Set([
  "model-failed",
  "engine-restarted",
  "gpu-lost",
  "gpu-abandoned",
]);

export interface DaemonContext {
  readonly logger: Logger;
  /** Aborted when draining begins. */
  readonly draining: AbortSignal;
  /** Starts the shutdown; returns at once. */
  readonly shutdown: () => void;
  /** Records requests, events and log lines; absent: a new one, without log lines. */
  readonly activity?: Activity;
}

/** The services of a running daemon. */
export interface DaemonServices extends ManagementServices {
  readonly batches?: BatchService | undefined;
  /** Stops the engines and sends the remaining traces. */
  close(): Promise<void>;
}

/** Creates and connects all services, the lowest layers first. Nothing listens or loads yet. */
export async function createServices(
  config: Config,
  { logger, draining, shutdown, activity = new Activity() }: DaemonContext,
): Promise<DaemonServices> {
  const startedAt = performance.now();
  const version = packageVersion();
  const events = new ServiceEvents();
  const gpu = new GpuFinder({
    mode: config.gpu.mode,
    adapter: config.gpu.adapter,
    sandbox: config.sandbox,
  });
  const sandbox = new SandboxFinder({
    mode: config.sandbox,
    onProblem: (problem) => logger.warn(`Only Node's permission model confines engines. ${problem}`),
  });
  // Loading a model reports a failure.
  void sandbox.find().catch(() => {});
  const engine = await EngineImage.prepare(
    { cacheDir: config.cache_dir, kernels: config.engine.kernels, fallbacks: fallbackFolders() },
    (problem) => logger.warn(problem),
  );
  const {
    models: localModels,
    hub,
    store,
  } = await createModels(config, events, logger, gpu, engine, sandbox);
  const metrics = createMetrics({
    version,
    uptimeSecs: () => (performance.now() - startedAt) / 1000,
    isInFleet: config.fleet.nats !== undefined,
    readGauges: async () => ({
      ...(await readGauges(localModels, gpu, inference.loads)),
      fleet: fleet?.report(),
      batches: batches?.running ?? 0,
    }),
  });
  const batchParts = {
    formats: BATCH_FORMATS,
    events,
    onLine: (outcome: RunOutcome) => metrics.batchLine(outcome),
  };
  const batchModule = await import("../batches/local-batches.ts").catch((error: unknown) => {
    if (!isModuleMissing(error, "local-batches")) throw error;
    logger.warn("This installation has no batches.");
    return undefined;
  });
  const localBatches = batchModule && new batchModule.LocalBatches({ ...batchParts, config, logger });
  const openFile = createFileOpener();
  const life: DaemonState = { state: "starting" };
  const host = {
    where: "daemon",
    machine: describeMachine(),
    engineSha256: engine.prepared.kernels === "stock" ? STOCK_SHA256 : IMAGE_SHA256,
  } as const;
  // Loaded lazily, because most daemons have no fleet.
  const fleet =
    config.fleet.nats === undefined
      ? undefined
      : (await import("../fleet/start-fleet.ts")).startFleet({
          config,
          models: localModels,
          files: store.files,
          inference: () => localInference,
          metrics,
          isLowPriority: isBatchWork,
          followWork: activity.followWork,
          followRequest: activity.followRequest,
          events,
          gpu,
          life,
          engineSha256: host.engineSha256,
          version,
          logger,
        });
  const batches = (localBatches && fleet?.batches({ ...batchParts, local: localBatches })) ?? localBatches;
  if (fleet?.peers) store.usePeers(fleet.peers);
  const grammars = new GrammarThread();
  const makeOffThread: CompileOffThread = (work, signal) => grammars.make(work, signal);
  const localInference: Inference = createInference({
    models: localModels,
    metrics,
    config,
    onRepetition: (model) => {
      metrics.repetitionStopped();
      logger.warn({ model }, "An answer was stopped because it ran in circles");
    },
    isLowPriority: isBatchWork,
    observeWork: fleet?.followWork ?? activity.followWork,
    compileOffThread: makeOffThread,
  });
  const inference = fleet?.wrapInference(localInference, makeOffThread) ?? localInference;
  activity.subscribe(events);
  activity.onRequestEnd(({ head, end, isSocketChat, logged }) => {
    // HTTP requests are logged by the request log.
    if (!isSocketChat) return;
    const { id, method, path } = head;
    logger.info({ request_id: id, method, path, status: end.status, ms: end.ms, ...logged }, REQUEST_LINE);
  });
  const traces = await startTraces(config.tracing.otlp_endpoint, version, logger);
  if (traces) activity.onRequestEnd((ended) => traces.add(ended));
  events.subscribe((event) => {
    if (event.type === "engine-restarted") metrics.engineRestarted();
    else if (event.type === "gpu-lost") metrics.gpuLost();
    else if (event.type === "gpu-abandoned") metrics.gpuAbandoned();
    const { time: _time, type, ...fields } = event;
    if (WARNING_EVENTS.has(type)) logger.warn(fields, type);
    else logger.info(fields, type);
  });
  return {
    config,
    models: fleet?.models ?? localModels,
    hub,
    inference,
    batches,
    metrics,
    events,
    activity,
    logger,
    host,
    fleet,
    shared: fleet?.records,
    version,
    startedAt,
    life,
    draining,
    shutdown,
    gpu,
    kernels: engine.prepared.kernels,
    sandbox,
    endpoints: { http: "", ipc: "" },
    machineMemory: async () => machineMemory(await localModels.list()),
    defaultModels: readDefaultModels,
    close: async () => {
      await batches?.close();
      await fleet?.close();
      await localModels.close();
      await grammars.close();
      // Last, because requests end with their engines.
      await traces?.close();
    },
    openFile,
    engineImage: async () => await openFile((await engine.ensure()).wasmPath),
    compatImage: async () => await openFile(compatWasm()),
    browserScripts: new BrowserScripts(),
    pageFile,
  };
}

async function readGauges(
  models: Models,
  { adapter }: GpuState,
  loads: ScrapedGauges["loads"],
): Promise<Omit<ScrapedGauges, "batches">> {
  const list = await models.list();
  return {
    loads,
    memoryUsedBytes: machineMemory(list).usedBytes,
    daemonMemoryBytes: residentBytes(),
    gpu: adapter && { name: adapter.name, vendor: adapter.vendor, backend: adapter.backend },
    models: list
      .filter((model) => model.state === "loaded")
      .map((model) => ({
        model: model.alias,
        parameters: model.gguf.parameters,
        contextSize: model.contextSize,
        gpuLayers: model.gpuLayers,
        memoryBytes: model.memoryBytes ?? 0,
        gpuMemoryBytes: model.gpuMemoryBytes ?? 0,
      })),
  };
}

/** Describes the machine: "AMD EPYC 9124, linux x64, Node 24.21.0". */
function describeMachine(): string {
  const processor = os.cpus()[0]?.model.trim() || "unknown processor";
  return `${processor}, ${process.platform} ${process.arch}, Node ${process.versions.node}`;
}

function machineMemory(models: readonly Model[]): MachineMemory {
  const engines = models.reduce((sum, model) => sum + (model.memoryBytes ?? 0), 0);
  return { usedBytes: residentBytes() + engines, totalBytes: memoryTotal() };
}

/** Returns a function that opens files. It caches their SHA-256 until they change. */
export function createFileOpener(): ManagementServices["openFile"] {
  const known = new Map<string, Promise<string>>();
  return async (path) => {
    const { size, mtimeMs } = await stat(path).catch((cause: unknown) => {
      rethrowExhaustion(cause);
      throw new ServiceError("model_file_not_found", `The model file ${path} does not exist.`, { cause });
    });
    const key = `${path}:${size}:${mtimeMs}`;
    const digest = known.get(key) ?? sha256(path);
    known.set(key, digest);
    digest.catch(() => known.delete(key));
    return {
      size,
      etag: await digest,
      read: (start, end) =>
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node types its web streams differently
        Readable.toWeb(createReadStream(path, { start, end })) as ReadableStream<Uint8Array>,
    };
  };
}

async function sha256(path: string): Promise<string> {
  const sum = createHash("sha256");
  await pipeline(createReadStream(path), sum);
  return sum.digest("hex");
}

/** Variables that name a receiver. */
const ENDPOINT_VARIABLES = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/**
 * Starts to send traces if the configuration or OpenTelemetry's variables name a receiver; otherwise its packages are
 * not loaded.
 */
export async function startTraces(
  endpoint: string | undefined,
  version: string,
  logger: Logger,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Traces | undefined> {
  if (endpoint === undefined && !isRequested(env)) return undefined;
  const { openTraces } = await import("./open-traces.ts");
  return openTraces({
    endpoint,
    version,
    onProblem: (problem) =>
      logger.warn(
        `Traces cannot be sent (${problem}). Check tracing.otlp_endpoint or OTEL_EXPORTER_OTLP_ENDPOINT; spans are dropped meanwhile.`,
      ),
  });
}

function isRequested(env: NodeJS.ProcessEnv): boolean {
  if (env["OTEL_SDK_DISABLED"]?.toLowerCase() === "true" || env["OTEL_TRACES_EXPORTER"] === "none")
    return false;
  return ENDPOINT_VARIABLES.some((name) => env[name]);
}
