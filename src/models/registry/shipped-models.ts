import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { ServiceError, rethrowExhaustion } from "../../errors/service-error.ts";
import type { RegistryOptions } from "../models-options.ts";
import { readModelfile } from "../modelfile/read-modelfile.ts";
import { fileStem, shardOf } from "../names/model-file-names.ts";
import { buildRecord, derivedRecord, usableRecords, type ModelRecord } from "./model-record.ts";

const GGUF = ".gguf";
/** Extension of a shipped Modelfile, which derives a model from another one in the same folder. */
const MODELFILE = ".modelfile";

/** Models that ship with the project: the GGUF files and Modelfiles of one folder, named after their files. */
export class ShippedModels {
  readonly #options: RegistryOptions;
  readonly #hidden = new Set<string>();

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  /** Returns all usable models. */
  async list(): Promise<readonly ModelRecord[]> {
    return await usableRecords(
      [...(await this.#entries())].filter(([alias]) => !this.#hidden.has(alias)),
      async ([alias, file]) => await this.#record(alias, file),
      // The folder also has projectors and adapters.
      (error, [, file]) => this.#options.logger.debug({ err: error, path: file }, "Not a model that ships"),
    );
  }

  async find(alias: string): Promise<ModelRecord | undefined> {
    return this.#hidden.has(alias) ? undefined : await this.findIncludingHidden(alias);
  }

  /** Like find(), but also finds hidden models, which models created from them still need. */
  async findIncludingHidden(alias: string): Promise<ModelRecord | undefined> {
    const file = (await this.#entries()).get(alias);
    return file === undefined ? undefined : await this.#record(alias, file);
  }

  /** Hides a model until the next start or restore(); its file stays. */
  hide(alias: string): void {
    this.#hidden.add(alias);
  }

  isHidden(alias: string): boolean {
    return this.#hidden.has(alias);
  }

  /** Undoes {@link hide}. */
  restore(alias: string): void {
    this.#hidden.delete(alias);
  }

  async #record(alias: string, file: string): Promise<ModelRecord> {
    const { shippedDir: folder, inspect } = this.#options;
    if (file.endsWith(GGUF)) {
      const source = { kind: "shipped", base: undefined } as const;
      return await buildRecord(
        { alias, source, path: path.join(folder, file), projector: undefined, within: [] },
        inspect,
      );
    }
    const definition = readModelfile(await readFile(path.join(folder, file), "utf8"), folder);
    const base = await this.findIncludingHidden(definition.from);
    if (!base) throw new ServiceError("model_not_found", `${definition.from} does not ship with ${alias}.`);
    const source = { kind: "shipped", base: definition.from } as const;
    return await derivedRecord({ alias, source }, definition, base, [], inspect);
  }

  /** Files by model name; a Modelfile takes precedence over a projector or adapter with the same name. */
  async #entries(): Promise<ReadonlyMap<string, string>> {
    const names = await readdir(this.#options.shippedDir).catch((error: unknown) => {
      rethrowExhaustion(error);
      return [];
    });
    const models = names.filter((name) => name.endsWith(GGUF) && (shardOf(name)?.index ?? 1) === 1);
    const modelfiles = names.filter((name) => name.endsWith(MODELFILE));
    return new Map([
      ...models.map((name) => [fileStem(name), name] as const),
      ...modelfiles.map((name) => [path.basename(name, MODELFILE), name] as const),
    ]);
  }
}
