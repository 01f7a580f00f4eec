import { mkdir } from "node:fs/promises";
import path from "node:path";
import { onTestFinished } from "vitest";
import type { QuantizeTensors } from "../../../src/engine/quantize/quantize-tensors.ts";
import type { FreeSpace } from "../../../src/files/file-operations.ts";
import { configSchema, type ConfigInput } from "../../../src/config/schema.ts";
import type { ServiceEvent } from "../../../src/events/service-events.ts";
import type { CachedModel, HubPullRequest, PullProgress } from "../../../src/models/hub/hub-types.ts";
import type { EstimateMemory, OffloadLayers } from "../../../src/models/models-options.ts";
import type { Models } from "../../../src/models/models.ts";
import { DiskHubStore } from "../../../src/models/hub/disk-hub-store.ts";
import { ModelsService } from "../../../src/models/models-service.ts";
import type { HubSpec } from "../../../src/models/names/hub-spec.ts";
import type { AliasTable } from "../../../src/models/names/alias-table.ts";
import { NameResolver } from "../../../src/models/names/name-resolver.ts";
import { writeGguf, type GgufFile } from "../../support/gguf-writer.ts";
import { tinyLlama } from "../../support/tiny-models.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { FakeEngines } from "../../support/fake-engine.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const MIB = 1024 * 1024;

/** Default alias table of tests, with one alias. */
export const ALIAS = "tiny:1b";
const ALIASES: AliasTable = new Map([[ALIAS, { repo: "ada/tiny-GGUF", file: "tiny.gguf", tags: [] }]]);

/** Fake hub whose cache is a folder of files `owner--repo--file`. */
class FakeHub extends DiskHubStore {
  readonly folder: string;
  readonly #cached = new Map<string, CachedModel>();
  /** Promise that pulls wait for. */
  untilPulled: Promise<void> = Promise.resolve();
  pulls = 0;

  constructor(folder: string) {
    super({ cacheDir: folder, hubUrl: "http://hub.invalid" });
    this.folder = folder;
  }

  async add(owner: string, repo: string, file: string, model: GgufFile = tinyLlama()): Promise<CachedModel> {
    await mkdir(this.folder, { recursive: true });
    const target = path.join(this.folder, `${owner}--${repo}--${file}`);
    const sizeBytes = writeGguf(target, model);
    const spec = `hf:${owner}/${repo}:${file}`;
    const cached: CachedModel = {
      spec,
      repo: `${owner}/${repo}`,
      revision: "0".repeat(40),
      file,
      files: [target],
      projector: undefined,
      sizeBytes,
    };
    this.#cached.set(spec, cached);
    return cached;
  }

  override async find({ owner, repo, file }: HubSpec): Promise<CachedModel | undefined> {
    return [...this.#cached.values()].find(
      (cached) => cached.repo === `${owner}/${repo}` && (file === undefined || cached.file === file),
    );
  }

  override async list(): Promise<readonly CachedModel[]> {
    return [...this.#cached.values()];
  }

  override async pull(
    { spec }: HubPullRequest,
    onProgress: (progress: PullProgress) => void,
  ): Promise<CachedModel> {
    this.pulls++;
    await this.untilPulled;
    onProgress({ status: "verifying" });
    return await this.add(spec.owner, spec.repo, spec.file ?? "model.gguf");
  }

  override async discard(): Promise<number> {
    return 0;
  }

  override async remove(cached: CachedModel): Promise<void> {
    this.#cached.delete(cached.spec);
  }
}

export interface Fixture {
  readonly models: Models;
  readonly engines: FakeEngines;
  readonly clock: FakeClock;
  readonly hub: FakeHub;
  readonly events: ServiceEvent[];
  readonly warnings: string[];
  readonly cacheDir: string;
  readonly shippedDir: string;
  /** Folder for files of the user. */
  readonly userDir: string;
  /** Writes a model file of the user and returns its path. */
  readonly userFile: (name: string, model?: GgufFile) => string;
  /** Restarts the service, optionally with another configuration. */
  readonly restart: (config?: ConfigInput["models"]) => Promise<Fixture>;
}

export interface FixtureOptions {
  readonly config?: ConfigInput["models"];
  readonly engineConfig?: ConfigInput["engine"];
  readonly estimateMemory?: EstimateMemory;
  readonly offloadLayers?: OffloadLayers;
  readonly quantizeTensors?: QuantizeTensors;
  readonly measureSpace?: FreeSpace;
  readonly root?: string;
  readonly hub?: FakeHub;
  readonly aliases?: AliasTable;
  /** Hub in place of the fake one of this file. */
  readonly store?: (cacheDir: string) => DiskHubStore;
}

/** Starts a models service in a new folder with the shipped model, a fake hub and fake engines. */
export async function startModels(options: FixtureOptions = {}): Promise<Fixture> {
  const root = options.root ?? (await temporaryFolder());
  const cacheDir = path.join(root, "cache");
  const shippedDir = path.join(root, "models");
  const userDir = path.join(root, "user");
  await Promise.all(
    [cacheDir, shippedDir, userDir].map(async (folder) => await mkdir(folder, { recursive: true })),
  );
  writeGguf(path.join(shippedDir, "daybreak-mini.gguf"), tinyLlama({ name: "daybreak-mini" }));
  const engines = new FakeEngines();
  const clock = new FakeClock();
  const hub = options.hub ?? new FakeHub(path.join(cacheDir, "hub"));
  const events: ServiceEvent[] = [];
  const warnings: string[] = [];
  const models = await ModelsService.create({
    config: configSchema.parse({
      cache_dir: cacheDir,
      models: { memory_budget: 100 * MIB, ...options.config },
      engine: options.engineConfig,
    }),
    startEngine: engines.start,
    memory: {
      estimate: options.estimateMemory ?? (() => 10 * MIB),
      estimateGpu: () => 0,
      gpuBudget: () => Number.POSITIVE_INFINITY,
      offloadLayers:
        options.offloadLayers ??
        (async (_gguf, spec, preferred) => ({ spec: { ...spec, gpuLayers: preferred ?? 0 } })),
    },
    quantizeTensors:
      options.quantizeTensors ??
      (() => {
        throw new Error("this test quantizes nothing");
      }),
    ...(options.measureSpace && { measureSpace: options.measureSpace }),
    hub: options.store?.(cacheDir) ?? hub,
    resolver: new NameResolver(options.aliases ?? ALIASES),
    shippedDir,
    events: { emit: (event) => void events.push(event) },
    logger: {
      debug: () => {},
      warn: (_fields: unknown, message?: string) => void warnings.push(message ?? ""),
    },
    clock,
    processors: { usable: 4, cores: 2 },
    kernels: "daybreak",
  });
  onTestFinished(async () => await models.close());
  return {
    models,
    engines,
    clock,
    hub,
    events,
    warnings,
    cacheDir,
    shippedDir,
    userDir,
    userFile: (name, model = tinyLlama({ name })) => {
      const file = path.join(userDir, name);
      writeGguf(file, model);
      return file;
    },
    restart: async (config) => await startModels({ ...options, root, hub, ...(config ? { config } : {}) }),
  };
}
