import { createHash, type Hash, randomBytes } from "node:crypto";
import { open, stat } from "node:fs/promises";
import os from "node:os";
import type { Logger } from "pino";
import type { LoadSettings } from "../config/load-settings.ts";
import type { Config } from "../config/schema.ts";
import type { GpuState } from "../engine/gpu/gpu-finder.ts";
import { machineProcessors } from "../engine/machine-limits.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import type { Life } from "../http/errors.ts";
import type { Inference } from "../inference/inference.ts";
import { withoutUndefined } from "../json/json-values.ts";
import { memoryTotal } from "../machine/memory.ts";
import { configuredAllowance } from "../models/loading/available-memory.ts";
import type { Model } from "../models/model.ts";
import type { Models } from "../models/models.ts";
import { type Heartbeat, type MemberInfo, type MemberModel, NOT_DESCRIBED, PROTOCOL } from "./members.ts";
import type { SpeedMeter } from "./speed-meter.ts";

/** How often the models on disk are looked at: files may come and go without an event. */
const REFRESH_MS = 10_000;
/** Of models whose speed is told; a beat must stay short. */
const MAX_SPEEDS = 256;

export interface SelfDescriptionOptions {
  readonly config: Pick<Config, "fleet" | "models">;
  readonly models: Pick<Models, "list">;
  /** Of this machine alone. */
  readonly inference: () => Pick<Inference, "loads">;
  readonly events: ServiceEvents;
  readonly gpu: GpuState;
  readonly life: Life;
  readonly speeds: SpeedMeter;
  readonly engineSha256: string;
  readonly version: string;
  readonly logger: Logger;
}

/** What this machine tells the others of itself, kept up to date. */
export class SelfDescription {
  readonly #options: SelfDescriptionOptions;
  readonly #identities = new ModelIdentities();
  readonly #timer: NodeJS.Timeout;
  readonly #endSubscription: () => void;
  #card: MemberInfo;
  #loaded: readonly Model[] = [];
  #isGone = false;
  #refreshing: Promise<void> | undefined;
  #isStale = false;
  /** Called when the next beat should not wait. */
  onChange: () => void = () => undefined;

  constructor(options: SelfDescriptionOptions) {
    this.#options = options;
    const { config, version, engineSha256 } = options;
    const { usable, cores } = machineProcessors();
    const total = memoryTotal();
    this.#card = {
      protocol: PROTOCOL,
      id: randomBytes(16).toString("hex"),
      revision: NOT_DESCRIBED,
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
    this.#timer = setInterval(() => this.refresh(), REFRESH_MS);
    this.#timer.unref();
    this.#endSubscription = options.events.subscribe(() => this.refresh());
    this.refresh();
  }

  get card(): MemberInfo {
    return this.#card;
  }

  get beat(): Heartbeat {
    const { life, inference, speeds } = this.#options;
    const loads = new Map(inference().loads.map((load) => [load.model, load]));
    return {
      protocol: PROTOCOL,
      id: this.#card.id,
      revision: this.#card.revision,
      state: this.#isGone ? "gone" : life.state === "ready" ? "ready" : "draining",
      memoryUsed: this.#loaded.reduce((sum, { memoryBytes }) => sum + (memoryBytes ?? 0), 0),
      loaded: this.#loaded.map(({ alias, slots, contextSize, gpuLayers }) => ({
        alias,
        slots: slots ?? 1,
        // What is done in the background makes room at once.
        running: (loads.get(alias)?.running ?? 0) - (loads.get(alias)?.yielding ?? 0),
        waiting: loads.get(alias)?.waiting ?? 0,
        contextSize,
        gpuLayers,
      })),
      speeds: [...speeds.speeds]
        .slice(-MAX_SPEEDS)
        .map(([alias, { decode, prefill }]) => ({ alias, decode, prefill })),
    };
  }

  /** The model on this machine, as its card has it. */
  model(alias: string): MemberModel | undefined {
    return this.#card.models.find((each) => each.alias === alias);
  }

  /** Looks at the models again; never rejects. */
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

  /** The next beat says that this machine is gone. */
  leave(): void {
    this.#isGone = true;
    clearInterval(this.#timer);
    this.#endSubscription();
  }

  async #describe(): Promise<void> {
    const { models, gpu } = this.#options;
    const list = await models.list();
    this.#loaded = list.filter(({ state }) => state === "loaded");
    const onDisk = list.filter(({ state }) => state !== "downloading");
    const described = await Promise.all(onDisk.map(async (model) => await this.#describeModel(model)));
    const next = {
      ...this.#card,
      gpus: gpu.adapter
        ? [{ name: gpu.adapter.name, backend: gpu.adapter.backend, memory: gpu.adapter.memory }]
        : [],
      models: described.filter((model) => model !== undefined),
    };
    const { revision } = this.#card;
    if (revision === NOT_DESCRIBED || JSON.stringify(next) !== JSON.stringify(this.#card))
      this.#card = { ...next, revision: revision + 1 };
    this.onChange();
  }

  /** Undefined when its files cannot be read: then it cannot be loaded either. */
  async #describeModel(model: Model): Promise<MemberModel | undefined> {
    const { alias, source, gguf, capabilities, contextSize, adapters, modifiedAt, isDefault } = model;
    try {
      return {
        alias,
        ...(source.kind === "hub" && { spec: source.spec }),
        files: await this.#identities.filesOf(model),
        settings: settingsDigest(model),
        bytes: gguf.fileSize,
        gguf: {
          architecture: gguf.architecture,
          name: gguf.name,
          license: gguf.license,
          parameters: gguf.parameters,
          vocabSize: gguf.vocabSize,
          contextLength: gguf.contextLength,
          embeddingLength: gguf.embeddingLength,
          blockCount: gguf.blockCount,
          quantization: gguf.quantization,
          fileSize: gguf.fileSize,
          purpose: gguf.purpose,
        },
        capabilities,
        contextSize,
        adapters: adapters.map(({ name }) => name),
        modifiedAt,
        isDefault,
      };
    } catch {
      return undefined;
    }
  }
}

/** Read of each file: its header, and pieces from all over it. */
const HEAD_BYTES = 1024 * 1024;
const PIECE_BYTES = 64 * 1024;
const PIECES = 16;

/** Settings of a load that change how fast an answer comes, not what it says. */
const SPEED_SETTINGS = new Set(["batchSize", "flashAttention"]);
/** What settings are when nobody has set them. A loaded model tells some of them nevertheless. */
const UNSET: LoadSettings = {
  cacheTypeK: "f16",
  cacheTypeV: "f16",
  contextShift: false,
  numKeep: 0,
  cacheReuse: 0,
};

/**
 * Tells whether models on two machines are the same. To read the whole of their files would take minutes, so their size,
 * header and pieces of them stand for them.
 */
class ModelIdentities {
  /** By path, with the size and time that it had. */
  readonly #known = new Map<string, { readonly state: string; readonly digest: string }>();

  /** SHA-256 of a model's files. @throws when one cannot be read */
  async filesOf({ files, projector, adapters }: Model): Promise<string> {
    const hash = createHash("sha256");
    const further = [...(projector === undefined ? [] : [projector]), ...adapters.map(({ path }) => path)];
    for (const file of [...files, ...further]) hash.update(await this.#digestOf(file));
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
  await read(0, Math.min(HEAD_BYTES, size));
  const rest = size - HEAD_BYTES - PIECE_BYTES;
  if (rest <= 0) return hash.digest("hex");
  for (let piece = 0; piece <= PIECES; piece += 1) {
    await read(HEAD_BYTES + Math.floor((rest * piece) / PIECES), PIECE_BYTES);
  }
  return hash.digest("hex");
}

/**
 * SHA-256 of the settings on which a model's answers depend, the same whether it is loaded or not; how much memory and which
 * processor it uses are not among them.
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
  // Only a model that generates is ever loaded to shift its context.
  const effective = { ...loadSettings, ...(gguf.purpose !== "generate" && { contextShift: false }) };
  const load = Object.entries({ ...UNSET, ...withoutUndefined(effective) }).filter(
    ([key]) => !SPEED_SETTINGS.has(key),
  );
  const scales = adapters.map(({ name, scale }) => [name, scale]);
  return updateInOrder(createHash("sha256"), [rest, Object.fromEntries(load), scales]).digest("hex");
}

function updateInOrder(hash: Hash, value: unknown): Hash {
  return hash.update(JSON.stringify(value, sorted));
}

/** The order in which an object's members were set says nothing. */
function sorted(_key: string, value: unknown): unknown {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value;
}
