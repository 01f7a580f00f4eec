import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { ServiceError, throwExhaustion } from "../../errors/service-error.ts";
import type { RegistryOptions } from "../models-options.ts";
import { readModelfile } from "../modelfile/read-modelfile.ts";
import { fileStem, shardOf } from "../names/model-file-names.ts";
import { buildRecord, derivedRecord, usableRecords, type ModelRecord } from "./model-record.ts";

const GGUF = ".gguf";
/** A model derived from another in the same folder, with a projector or an adapter that also ships. */
const MODELFILE = ".modelfile";

/** The models that ship with the project: the GGUF files and Modelfiles of one folder, by their names. */
export class ShippedModels {
  readonly #options: RegistryOptions;
  readonly #hidden = new Set<string>();

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  /** All usable models. */
  async list(): Promise<readonly ModelRecord[]> {
    return await usableRecords(
      [...(await this.#entries())].filter(([alias]) => !this.#hidden.has(alias)),
      async ([alias, file]) => await this.#record(alias, file),
      // Projectors and adapters are among the files, but are not models.
      (error, [, file]) => this.#options.logger.debug({ err: error, path: file }, "Not a model that ships"),
    );
  }

  async find(alias: string): Promise<ModelRecord | undefined> {
    return this.#hidden.has(alias) ? undefined : await this.findEvenHidden(alias);
  }

  /** For models created from it, because its file still exists. */
  async findEvenHidden(alias: string): Promise<ModelRecord | undefined> {
    const file = (await this.#entries()).get(alias);
    return file === undefined ? undefined : await this.#record(alias, file);
  }

  /** Hides a model until the next start, or until it is requested again; its file stays. */
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
    const base = await this.findEvenHidden(definition.from);
    if (!base) throw new ServiceError("model_not_found", `${definition.from} does not ship with ${alias}.`);
    const source = { kind: "shipped", base: definition.from } as const;
    return await derivedRecord({ alias, source }, definition, base, [], inspect);
  }

  /** Files by model name; a Modelfile takes precedence over the projector or adapter with the same name. */
  async #entries(): Promise<ReadonlyMap<string, string>> {
    const names = await readdir(this.#options.shippedDir).catch((error: unknown) => {
      throwExhaustion(error);
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
