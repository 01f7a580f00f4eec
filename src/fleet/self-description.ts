import { randomBytes } from "node:crypto";
import os from "node:os";
import type { Logger } from "pino";
import type { Config } from "../config/schema.ts";
import type { GpuState } from "../engine/gpu/gpu-finder.ts";
import { machineProcessors } from "../engine/machine-processors.ts";
import type { ServiceEvents } from "../events/service-events.ts";
import type { Life } from "../http/errors/serving.ts";
import type { Inference } from "../inference/inference.ts";
import { memoryTotal } from "../machine/memory-limits.ts";
import { configuredAllowance } from "../models/loading/available-memory.ts";
import type { Model } from "../models/model.ts";
import type { Models } from "../models/models.ts";
import { type Beat, type Card, type CardModel, NOT_DESCRIBED, PROTOCOL } from "./card.ts";
import { ModelIdentities, settingsDigest } from "./model-identity.ts";
import type { SpeedMeter } from "./speed-meter.ts";

/** How often the models on disk are looked at: files may come and go without an event. */
const REFRESH_MS = 10_000;
/** Of models whose speed is told; a beat must stay short. */
const MOST_SPEEDS = 256;

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
  #card: Card;
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

  get card(): Card {
    return this.#card;
  }

  get beat(): Beat {
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
        .slice(-MOST_SPEEDS)
        .map(([alias, { decode, prefill }]) => ({ alias, decode, prefill })),
    };
  }

  /** The model on this machine, as its card has it. */
  model(alias: string): CardModel | undefined {
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
  async #describeModel(model: Model): Promise<CardModel | undefined> {
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
