import { readdir } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "pino";
import { fileStem, shardFiles } from "../gguf/shard-files.ts";
import type { InspectGguf } from "../gguf/inspect-gguf.ts";
import { buildRecord, tryRecord, type RecordParts } from "./build-record.ts";
import type { ModelCatalogue } from "./model-catalogue.ts";
import type { ModelRecord } from "./model-record.ts";

/** A projector lies beside its model under the model's name with this prefix. */
const PROJECTOR_PREFIX = "mmproj-";

/** The models that ship with the project: the GGUF files of one folder. */
export class ShippedModels implements ModelCatalogue {
  readonly #folder: string;
  readonly #inspect: InspectGguf;
  readonly #logger: Pick<Logger, "debug">;
  readonly #hidden = new Set<string>();

  constructor(options: { folder: string; inspect: InspectGguf; logger: Pick<Logger, "debug"> }) {
    this.#folder = options.folder;
    this.#inspect = options.inspect;
    this.#logger = options.logger;
  }

  async list(): Promise<readonly ModelRecord[]> {
    const parts = await this.#parts();
    const records = parts.map(
      async (part) =>
        await tryRecord(part, this.#inspect, (error) =>
          this.#logger.debug({ err: error, path: part.path }, "Not a model that ships"),
        ),
    );
    return (await Promise.all(records)).flat();
  }

  async find(alias: string): Promise<ModelRecord | undefined> {
    const part = (await this.#parts()).find((candidate) => candidate.alias === alias);
    return part && (await buildRecord(part, this.#inspect));
  }

  /** Leaves a model out until the next start; its file stays. */
  hide(alias: string): void {
    this.#hidden.add(alias);
  }

  async #parts(): Promise<RecordParts[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const present = new Set(names);
    return names
      .filter((name) => name.endsWith(".gguf") && !name.startsWith(PROJECTOR_PREFIX))
      .filter((name) => path.basename(shardFiles(name)[0] ?? name) === name)
      .map((name) => ({
        name,
        alias: fileStem(name),
        projector: `${PROJECTOR_PREFIX}${fileStem(name)}.gguf`,
      }))
      .filter(({ alias }) => !this.#hidden.has(alias))
      .map(({ name, alias, projector }) => ({
        alias,
        source: { kind: "shipped" },
        path: path.join(this.#folder, name),
        projector: present.has(projector) ? path.join(this.#folder, projector) : undefined,
        within: [],
      }));
  }
}
