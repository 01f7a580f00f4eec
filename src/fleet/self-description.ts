import { createHash, type Hash, randomBytes } from "node:crypto";
import { open, stat } from "node:fs/promises";
import os from "node:os";
import type { Logger } from "pino";
import type { LoadSettings } from "../config/load-settings.ts";
import type { Config } from "../config/schema.ts";
import type { GpuState } from "../engine/gpu/gpu-finder.ts";
import { machineProcessors } from "../engine/machine-limits.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import type { DaemonState } from "../http/errors.ts";
import type { Inference } from "../inference/inference.ts";
import { isRecord, withoutUndefined } from "../json/json-values.ts";
import { memoryTotal } from "../machine/memory.ts";
import { configuredAllowance } from "../models/loading/available-memory.ts";
import type { Model } from "../models/model.ts";
import type { Models } from "../models/models.ts";
import {
  type Heartbeat,
  type MemberInfo,
  type MemberModel,
  memberModelSchema,
  INITIAL_REVISION,
  PROTOCOL,
} from "./members.ts";
import type { SpeedMeter } from "./speed-meter.ts";

/** Interval of listing the models: files may change without an event. */
const REFRESH_INTERVAL_MS = 10_000;
/** Maximum number of speeds in a heartbeat, which must stay short. */
const MAX_SPEEDS = 256;

export interface SelfDescriptionOptions {
  readonly config: Pick<Config, "fleet" | "models">;
  readonly models: Pick<Models, "list">;
  /** Inference of this machine only. */
  readonly inference: () => Pick<Inference, "loads">;
  readonly events: ServiceEvents;
  readonly gpu: GpuState;
  readonly life: DaemonState;
  readonly speeds: SpeedMeter;
  readonly engineSha256: string;
  readonly version: string;
  readonly logger: Logger;
}

/** Member info and heartbeat of this machine, kept up to date. */
export class SelfDescription {
  readonly #options: SelfDescriptionOptions;
  readonly #fileHashes = new ModelFileHashes();
  readonly #timer: NodeJS.Timeout;
  readonly #unsubscribe: () => void;
  #info: MemberInfo;
  #loaded: readonly Model[] = [];
  #isGone = false;
  #refreshing: Promise<void> | undefined;
  #isStale = false;
  /** Called when the next heartbeat should be sent at once. */
  onChange: () => void = () => undefined;

  constructor(options: SelfDescriptionOptions) {
    this.#options = options;
    const { config, version, engineSha256 } = options;
    const { usable, cores } = machineProcessors();
    const total = memoryTotal();
    this.#info = {
      protocol: PROTOCOL,
      id: randomBytes(16).toString("hex"),
      revision: INITIAL_REVISION,
      name: config.fleet.name ?? os.hostname(),
      version,
      engine: engineSha256,
      processor: {
        name: os.cpus()[0]?.model.trim() || "unknown processor",
        system: `${process.platform} ${process.arch}`,
        usable,
        cores,
      },
      gpus: [],
      memory: { total, models: configuredAllowance(config.models.memory_budget, total).bytes },
      models: [],
    };
    this.#timer = setInterval(() => this.refresh(), REFRESH_INTERVAL_MS).unref();
    this.#unsubscribe = options.events.subscribe(() => this.refresh());
    this.refresh();
  }

  get info(): MemberInfo {
    return this.#info;
  }

  get heartbeat(): Heartbeat {
    const { life, inference, speeds } = this.#options;
    const loads = new Map(inference().loads.map((load) => [load.model, load]));
    return {
      protocol: PROTOCOL,
      id: this.#info.id,
      revision: this.#info.revision,
      state: this.#isGone ? "gone" : life.state === "ready" ? "ready" : "draining",
      memoryUsed: this.#loaded.reduce((sum, { memoryBytes }) => sum + (memoryBytes ?? 0), 0),
      loaded: this.#loaded.map(({ alias, slots, contextSize, gpuLayers }) => ({
        alias,
        slots: slots ?? 1,
        // Low-priority requests are preempted, so their slots count as free.
        running: (loads.get(alias)?.running ?? 0) - (loads.get(alias)?.lowPriority ?? 0),
        waiting: loads.get(alias)?.waiting ?? 0,
        contextSize,
        gpuLayers,
      })),
      speeds: [...speeds.speeds]
        .slice(-MAX_SPEEDS)
        .map(([alias, { decode, prefill }]) => ({ alias, decode, prefill })),
    };
  }

  /** Returns the model of this machine as in its member info. */
  model(alias: string): MemberModel | undefined {
    return this.#info.models.find((each) => each.alias === alias);
  }

  /** Lists the models again; never rejects. */
  refresh(): void {
    if (this.#refreshing) {
      this.#isStale = true;
      return;
    }
    this.#refreshing = this.#describe()
      .catch((error: unknown) => this.#options.logger.debug({ err: error }, "fleet: cannot list the models"))
      .finally(() => {
        this.#refreshing = undefined;
        if (!this.#isStale) return;
        this.#isStale = false;
        this.refresh();
      });
  }

  /** Sets the state of the next heartbeat to "gone". */
  markGone(): void {
    this.#isGone = true;
    clearInterval(this.#timer);
    this.#unsubscribe();
  }

  async #describe(): Promise<void> {
    const { models, gpu } = this.#options;
    const list = await models.list();
    this.#loaded = list.filter(({ state }) => state === "loaded");
    const onDisk = list.filter(({ state }) => state !== "downloading");
    const described = await Promise.all(onDisk.map(async (model) => await this.#describeModel(model)));
    const next = {
      ...this.#info,
      gpus: gpu.adapter
        ? [{ name: gpu.adapter.name, backend: gpu.adapter.backend, memory: gpu.adapter.memory }]
        : [],
      models: described.filter((model) => model !== undefined),
    };
    const { revision } = this.#info;
    if (revision === INITIAL_REVISION || JSON.stringify(next) !== JSON.stringify(this.#info))
      this.#info = { ...next, revision: revision + 1 };
    this.onChange();
  }

  /** Returns undefined if the files cannot be read, so that the model could not be loaded either, or beyond limits. */
  async #describeModel(model: Model): Promise<MemberModel | undefined> {
    const { source, gguf, adapters } = model;
    try {
      // Leaves out the fields that other machines do not need.
      return memberModelSchema.parse({
        ...model,
        ...(source.kind === "hub" && { spec: source.spec }),
        files: await this.#fileHashes.hashFiles(model),
        settings: settingsDigest(model),
        bytes: gguf.fileSize,
        adapters: adapters.map(({ name }) => name),
      });
    } catch {
      return undefined;
    }
  }
}

/** Hashed parts of each file: its header, and samples from the rest. */
const HEADER_BYTES = 1024 * 1024;
const SAMPLE_BYTES = 64 * 1024;
const SAMPLES = 16;

/** Load settings that affect the speed of answers only. */
const SPEED_SETTINGS = new Set(["batchSize", "flashAttention"]);
/** Defaults of load settings, some of which a loaded model reports even if they are not set. */
const DEFAULT_SETTINGS: LoadSettings = {
  cacheTypeK: "f16",
  cacheTypeV: "f16",
  contextShift: false,
  numKeep: 0,
  cacheReuse: 0,
};

/**
 * Identifies model files by their content. Hashing whole files would take minutes, so size, header and samples must
 * suffice.
 */
class ModelFileHashes {
  /** Digests by path, each with the file's size and modification time. */
  readonly #known = new Map<string, { readonly state: string; readonly digest: string }>();

  /** Returns the SHA-256 of a model's files. @throws if one cannot be read */
  async hashFiles({ files, projector, adapters }: Model): Promise<string> {
    const hash = createHash("sha256");
    const otherFiles = [...(projector === undefined ? [] : [projector]), ...adapters.map(({ path }) => path)];
    for (const file of [...files, ...otherFiles]) hash.update(await this.#digestOf(file));
    return hash.digest("hex");
  }

  async #digestOf(file: string): Promise<string> {
    const { size, mtimeMs } = await stat(file);
    const state = `${size} ${mtimeMs}`;
    const known = this.#known.get(file);
    if (known?.state === state) return known.digest;
    const digest = await digestFile(file, size);
    this.#known.set(file, { state, digest });
    return digest;
  }
}

async function digestFile(file: string, size: number): Promise<string> {
  const hash = createHash("sha256").update(`${size} `);
  await using handle = await open(file);
  const read = async (position: number, length: number): Promise<void> => {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(length), 0, length, position);
    hash.update(buffer.subarray(0, bytesRead));
  };
  await read(0, Math.min(HEADER_BYTES, size));
  const rest = size - HEADER_BYTES - SAMPLE_BYTES;
  if (rest <= 0) return hash.digest("hex");
  for (let sample = 0; sample <= SAMPLES; sample += 1) {
    await read(HEADER_BYTES + Math.floor((rest * sample) / SAMPLES), SAMPLE_BYTES);
  }
  return hash.digest("hex");
}

/**
 * Returns the SHA-256 of the settings on which a model's answers depend, equal for a loaded and an unloaded model.
 * Memory limits and the choice of processor are not included.
 */
export function settingsDigest({
  settings,
  loadSettings,
  adapters,
  gguf,
}: Pick<Model, "settings" | "loadSettings" | "adapters"> & {
  readonly gguf: Pick<Model["gguf"], "purpose">;
}): string {
  const {
    contextSize: _size,
    gpuLayers: _layers,
    load: _load,
    speculation: _speculation,
    ...rest
  } = settings;
  // Only generating models support context shift.
  const effective = { ...loadSettings, ...(gguf.purpose !== "generate" && { contextShift: false }) };
  const load = Object.entries({ ...DEFAULT_SETTINGS, ...withoutUndefined(effective) }).filter(
    ([key]) => !SPEED_SETTINGS.has(key),
  );
  const scales = adapters.map(({ name, scale }) => [name, scale]);
  return updateSorted(createHash("sha256"), [rest, Object.fromEntries(load), scales]).digest("hex");
}

function updateSorted(hash: Hash, value: unknown): Hash {
  return hash.update(JSON.stringify(value, sortKeys));
}

/** JSON replacer that sorts the members of objects. */
function sortKeys(_key: string, value: unknown): unknown {
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value;
}
