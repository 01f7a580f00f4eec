import { realpath } from "node:fs/promises";
import { ServiceError } from "../errors/service-error.ts";
import type { EnginePool } from "./loading/engine-pool.ts";
import { alreadyLoaded } from "./loading/lease.ts";
import type { LoadOptions } from "./models.ts";
import type { ModelRecord } from "./registry/model-record.ts";
import type { ModelRegistry } from "./registry/model-registry.ts";

interface RecordToLoad {
  readonly record: ModelRecord;
  /** Removes what was registered for this load, if it fails. */
  readonly undo: () => Promise<void>;
}

const nothingToUndo = async (): Promise<void> => {};

/** Finds the model of a load request; a new file is registered under its alias. */
export async function recordToLoad(
  options: LoadOptions,
  registry: ModelRegistry,
  pool: Pick<EnginePool, "model">,
): Promise<RecordToLoad> {
  if (options.path !== undefined) return await registerNamed(options, options.path, registry, pool);
  const resolved = registry.resolve(options.alias);
  await registry.restoreShipped(options.alias);
  const record =
    resolved.kind === "path"
      ? await registry.registerFile(resolved.path)
      : await registry.require(options.alias);
  return { record: await withFiles(record, options, registry), undo: nothingToUndo };
}

async function registerNamed(
  options: LoadOptions,
  path: string,
  registry: ModelRegistry,
  pool: Pick<EnginePool, "model">,
): Promise<RecordToLoad> {
  const alias = registry.newName(options.alias);
  if (pool.model(alias)?.state === "loaded") {
    throw alreadyLoaded(alias);
  }
  const record = await registry.files.inspect(alias, path, options.mmproj);
  if (!registry.files.has(alias)) {
    const other = await registry.find(alias);
    if (other && (await isSameFile(other, record))) {
      return { record: await withFiles(other, options, registry), undo: nothingToUndo };
    }
    if (other)
      throw new ServiceError("model_exists", `"${alias}" is another model already; choose another alias.`);
  }
  const undo = await registry.files.add(record);
  return { record: await withFiles(record, { draft: options.draft }, registry), undo };
}

/** A record with the projector and the draft model that a load names. */
async function withFiles(
  record: ModelRecord,
  { mmproj, draft }: Pick<LoadOptions, "mmproj" | "draft">,
  registry: ModelRegistry,
): Promise<ModelRecord> {
  return {
    ...record,
    ...(mmproj !== undefined && { projector: await registry.files.projector(mmproj) }),
    ...(draft !== undefined && { draft: registry.files.draft(draft) }),
  };
}

async function isSameFile(a: ModelRecord, b: ModelRecord): Promise<boolean> {
  const [one, other] = await Promise.all([realpath(a.files[0].path), realpath(b.files[0].path)]);
  return one === other;
}
