import { mapSteps } from "../progress-steps.ts";
import { stat } from "node:fs/promises";
import path from "node:path";
import { isSystemError, ServiceError, rethrowExhaustion } from "../../errors/service-error.ts";
import { type FoundModel, modelfileOf } from "../folders/found-model.ts";
import { isStore, STORES, type Store, storeFolders } from "../folders/known-stores.ts";
import { readModelFolder } from "../folders/read-model-folder.ts";
import type { ImportedFiles, ImportRequest, ImportStep, LinkedModel } from "./imported-files.ts";
import { filesOf, readModelfile } from "../modelfile/read-modelfile.ts";
import { isInside, realPathOrResolved } from "../registry/model-record.ts";
import type { ModelRegistry } from "../registry/model-registry.ts";

interface ImportTools {
  readonly files: ImportedFiles;
  readonly cacheDir: string;
  /** Folders that models may come from; none: any. */
  readonly allowedDirs: readonly string[];
  readonly registry: ModelRegistry;
  readonly create: (alias: string, modelfile: string) => Promise<unknown>;
}

/** Maximum names in an error message. */
const MAX_LISTED_NAMES = 10;

/**
 * Imports the models of another program, without copying their files if the file system allows. A repeated import only
 * updates models that have changed.
 * @throws ServiceError model_file_not_found if there is no such folder, path_not_allowed, or model_not_found for a name
 *   that is not in it
 */
export async function* importModels(
  request: ImportRequest,
  tools: ImportTools,
  signal: AbortSignal,
): AsyncGenerator<ImportStep, void> {
  const named = isStore(request.from) ? await storeFolder(request.from) : request.from;
  await checkFolder(named, tools);
  const { folder, models, skipped } = await readModelFolder(named);
  const selected = selectModels(models, request.names, folder, tools.registry);
  yield { status: "reading", folder, models: selected.length };
  for (const { name, reason } of request.names ? [] : skipped) yield { status: "skipped", name, reason };
  for (const found of selected) {
    signal.throwIfAborted();
    try {
      yield* importModel(found, folder, request, tools, signal);
    } catch (error) {
      signal.throwIfAborted();
      rethrowExhaustion(error);
      if (!(error instanceof ServiceError) && !isSystemError(error)) throw error;
      yield { status: "skipped", name: found.name, reason: error.message.replace(/\.$/, "") };
    }
  }
}

async function* importModel(
  found: FoundModel,
  folder: string,
  { copy }: ImportRequest,
  { files, registry, create }: ImportTools,
  signal: AbortSignal,
): AsyncGenerator<ImportStep, void> {
  const { name, preferredName } = found;
  const firstLine = originLine(folder, name);
  const earlier = registry.defined.findByFirstLine(firstLine);
  let linked: LinkedModel | undefined;
  let isCreated = false;
  try {
    linked = yield* mapSteps(files.link(found, copy, signal), (step) => ({
      status: "copying" as const,
      name,
      ...step,
    }));
    const details = { name, placement: linked.placement, sizeBytes: linked.sizeBytes };
    const [modelfile, withoutTemplate] = modelfilesOf(firstLine, linked, found.settings);
    if (earlier && [modelfile, withoutTemplate].includes(earlier.modelfile)) {
      isCreated = true;
      yield { status: "present", alias: earlier.alias, ...details, notes: found.notes };
      return;
    }
    const alias = earlier?.alias ?? (await registry.freeName(preferredName));
    const notes = [...found.notes, ...(await createWithFallback(alias, modelfile, withoutTemplate, create))];
    isCreated = true;
    if (earlier) await files.remove(filesOf(readModelfile(earlier.modelfile, undefined)));
    yield { status: earlier ? "updated" : "imported", alias, ...details, notes };
  } catch (error) {
    throw error instanceof ServiceError && linked ? await withOriginalPaths(error, linked) : error;
  } finally {
    if (!isCreated && linked) await files.remove(linked.added);
  }
}

/** Returns the first line of an imported model's Modelfile, by which a repeated import finds it. */
function originLine(folder: string, name: string): string {
  return `# Imported from ${JSON.stringify(folder)}: ${JSON.stringify(name)}`;
}

/** Replaces the paths of links and copies in an error message, which will be removed, by the original ones. */
async function withOriginalPaths(error: ServiceError, { origins }: LinkedModel): Promise<ServiceError> {
  let { message } = error;
  for (const [now, file] of origins)
    for (const known of new Set([await realPathOrResolved(now), now]))
      message = message.replaceAll(known, () => file);
  return new ServiceError(error.code, message, { cause: error });
}

/** Writes the Modelfile of an imported model, and one without its template. */
function modelfilesOf(
  firstLine: string,
  linked: LinkedModel,
  settings: readonly string[],
): [modelfile: string, plainer: string] {
  const withoutTemplate = settings.filter((line) => !line.startsWith("TEMPLATE "));
  return [
    `${firstLine}\n${modelfileOf(linked, settings)}`,
    `${firstLine}\n${modelfileOf(linked, withoutTemplate)}`,
  ];
}

/** Creates a model, without its template if that is invalid; returns notes for the user. */
async function createWithFallback(
  alias: string,
  modelfile: string,
  withoutTemplate: string,
  create: ImportTools["create"],
): Promise<string[]> {
  try {
    await create(alias, modelfile);
    return [];
  } catch (error) {
    const isTemplate = error instanceof ServiceError && error.code === "invalid_template";
    if (!isTemplate || withoutTemplate === modelfile) throw error;
    await create(alias, withoutTemplate);
    return [`TEMPLATE is left out: ${error.message}`];
  }
}

/** Returns the first existing model folder of a program. */
async function storeFolder(store: Store): Promise<string> {
  const candidates = await storeFolders(store);
  for (const folder of candidates) {
    const stats = await stat(folder).catch(rethrowExhaustion);
    if (stats?.isDirectory()) return folder;
  }
  throw new ServiceError(
    "model_file_not_found",
    `There are no models of ${STORES[store]} in ${candidates.join(" or ") || "the home folder, for there is none"}; name the folder that has them instead.`,
    { param: "from" },
  );
}

/** @throws ServiceError path_not_allowed for a folder outside models.allowed_dirs or in the daemon's cache */
async function checkFolder(folder: string, { allowedDirs, cacheDir }: ImportTools): Promise<void> {
  if (!path.isAbsolute(folder)) {
    const known = Object.keys(STORES).join(", ");
    const message = `${JSON.stringify(folder.slice(0, 100))} is neither the absolute path of a folder nor one of ${known}.`;
    throw new ServiceError("invalid_parameter", `from: ${message}`, { param: "from" });
  }
  const real = await realPathOrResolved(folder);
  const allowed = await Promise.all(allowedDirs.map(realPathOrResolved));
  if (allowed.length > 0 && !allowed.some((dir) => isInside(real, dir))) {
    throw new ServiceError(
      "path_not_allowed",
      `${folder} lies outside the folders that models may come from (models.allowed_dirs).`,
      { param: "from" },
    );
  }
  if (isInside(real, await realPathOrResolved(cacheDir))) {
    throw new ServiceError(
      "path_not_allowed",
      `${folder} is the daemon's own; its models are listed already.`,
      {
        param: "from",
      },
    );
  }
}

function hasName(model: FoundModel, name: string): boolean {
  return [name, `${name}:latest`].some((each) => each === model.name || each === model.preferredName);
}

function selectModels(
  models: readonly FoundModel[],
  names: readonly string[] | undefined,
  folder: string,
  { defined }: ModelRegistry,
): readonly FoundModel[] {
  if (names === undefined) return models;
  // A name that no model has in the folder may be the alias from an earlier import.
  const named = names.map((name) => {
    const called = models.filter((model) => hasName(model, name));
    if (called.length > 0) return called;
    return models.filter((model) => defined.findByFirstLine(originLine(folder, model.name))?.alias === name);
  });
  const missing = names.find((_name, at) => named[at]?.length === 0);
  if (missing === undefined) return models.filter((model) => named.some((some) => some.includes(model)));
  const listed = models.slice(0, MAX_LISTED_NAMES).map(({ name }) => name);
  const moreCount = models.length - listed.length;
  throw new ServiceError(
    "model_not_found",
    `${folder} has no model ${JSON.stringify(missing)}. It has ${listed.join(", ") || "none"}${moreCount > 0 ? ` and ${moreCount} more` : ""}.`,
    { param: "models" },
  );
}
