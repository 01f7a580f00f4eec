import { mapSteps } from "../progress-steps.ts";
import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import { isSystemError, ServiceError, throwExhaustion } from "../../errors/service-error.ts";
import { type FoundModel, modelfileOf } from "../folders/found-model.ts";
import { isStore, STORES, type Store, storeFolders } from "../folders/known-stores.ts";
import { readModelFolder } from "../folders/read-model-folder.ts";
import type { ImportedFiles, ImportRequest, ImportStep, LinkedModel } from "./imported-files.ts";
import { filesOf, readModelfile } from "../modelfile/read-modelfile.ts";
import { isInside } from "../registry/model-file.ts";

/** What an import needs of the other models. */
interface ImportTools {
  readonly files: ImportedFiles;
  readonly cacheDir: string;
  /** Folders that models may come from; none: any. */
  readonly allowedDirs: readonly string[];
  /** The created model whose Modelfile begins with this line. */
  readonly findByFirstLine: (
    line: string,
  ) => { readonly alias: string; readonly modelfile: string } | undefined;
  /** A name that no model has, as near to the wish as names allow. */
  readonly freeName: (wish: string) => Promise<string>;
  /** Creates a model, or replaces a created one. */
  readonly create: (alias: string, modelfile: string) => Promise<unknown>;
}

/** Longest list of names in an error. */
const MAX_SHOWN = 10;

/**
 * Makes models of those that another program has, without copying their files where the system can. A second import
 * changes nothing but what has changed there.
 * @throws ServiceError model_file_not_found when the folder is not there, path_not_allowed, model_not_found for a name that
 *   it does not have
 */
export async function* importModels(
  request: ImportRequest,
  tools: ImportTools,
  signal: AbortSignal,
): AsyncGenerator<ImportStep, void> {
  const named = isStore(request.from) ? await storeFolder(request.from) : request.from;
  await checkFolder(named, tools);
  const { folder, models, leftOut } = await readModelFolder(named);
  const wanted = chosen(models, request.names, folder, tools);
  yield { status: "reading", folder, models: wanted.length };
  for (const { name, reason } of request.names ? [] : leftOut) yield { status: "skipped", name, reason };
  for (const found of wanted) {
    signal.throwIfAborted();
    try {
      yield* importModel(found, folder, request, tools, signal);
    } catch (error) {
      signal.throwIfAborted();
      throwExhaustion(error);
      if (!(error instanceof ServiceError) && !isSystemError(error)) throw error;
      yield { status: "skipped", name: found.name, reason: error.message.replace(/\.$/, "") };
    }
  }
}

async function* importModel(
  found: FoundModel,
  folder: string,
  { copy }: ImportRequest,
  { files, findByFirstLine, freeName, create }: ImportTools,
  signal: AbortSignal,
): AsyncGenerator<ImportStep, void> {
  const { name, wish } = found;
  const mark = markOf(folder, name);
  const earlier = findByFirstLine(mark);
  let placed: LinkedModel | undefined;
  let isMade = false;
  try {
    placed = yield* mapSteps(files.place(found, copy, signal), (step) => ({
      status: "copying" as const,
      name,
      ...step,
    }));
    const about = { name, placement: placed.placement, sizeBytes: placed.sizeBytes };
    const [modelfile, plainer] = modelfilesOf(mark, placed, found.settings);
    if (earlier && [modelfile, plainer].includes(earlier.modelfile)) {
      isMade = true;
      yield { status: "present", alias: earlier.alias, ...about, notes: found.notes };
      return;
    }
    const alias = earlier?.alias ?? (await freeName(wish));
    const notes = [...found.notes, ...(await createEither(alias, modelfile, plainer, create))];
    isMade = true;
    if (earlier) await files.remove(filesOf(readModelfile(earlier.modelfile, undefined)));
    yield { status: earlier ? "updated" : "imported", alias, ...about, notes };
  } catch (error) {
    throw error instanceof ServiceError && placed ? await withOrigins(error, placed) : error;
  } finally {
    if (!isMade && placed) await files.remove(placed.added);
  }
}

/** The first line of the Modelfile of an imported model. */
function markOf(folder: string, name: string): string {
  return `# Imported from ${JSON.stringify(folder)}: ${JSON.stringify(name)}`;
}

/** An error that names files as the user knows them, not the links and copies that are gone when it is read. */
async function withOrigins(error: ServiceError, { origins }: LinkedModel): Promise<ServiceError> {
  let { message } = error;
  for (const [now, file] of origins)
    for (const known of new Set([await realOrNamed(now), now]))
      message = message.replaceAll(known, () => file);
  return new ServiceError(error.code, message, { cause: error });
}

/** The Modelfile of an imported model, and the same without its template. */
function modelfilesOf(
  mark: string,
  placed: LinkedModel,
  settings: readonly string[],
): [modelfile: string, plainer: string] {
  const plainer = settings.filter((line) => !line.startsWith("TEMPLATE "));
  return [`${mark}\n${modelfileOf(placed, settings)}`, `${mark}\n${modelfileOf(placed, plainer)}`];
}

/** Creates a model, without its template if that does not work here; returns a note about it then. */
async function createEither(
  alias: string,
  modelfile: string,
  plainer: string,
  create: ImportTools["create"],
): Promise<string[]> {
  try {
    await create(alias, modelfile);
    return [];
  } catch (error) {
    const isTemplate = error instanceof ServiceError && error.code === "invalid_template";
    if (!isTemplate || plainer === modelfile) throw error;
    await create(alias, plainer);
    return [`TEMPLATE is left out: ${error.message}`];
  }
}

/** The first folder of a program that is there. */
async function storeFolder(store: Store): Promise<string> {
  const candidates = await storeFolders(store);
  for (const folder of candidates) {
    const stats = await stat(folder).catch(throwExhaustion);
    if (stats?.isDirectory()) return folder;
  }
  throw new ServiceError(
    "model_file_not_found",
    `There are no models of ${STORES[store]} in ${candidates.join(" or ") || "the home folder, for there is none"}; name the folder that has them instead.`,
    { param: "from" },
  );
}

/** @throws ServiceError path_not_allowed for a folder that may not be read, or that is the daemon's own */
async function checkFolder(folder: string, { allowedDirs, cacheDir }: ImportTools): Promise<void> {
  if (!path.isAbsolute(folder)) {
    const known = Object.keys(STORES).join(", ");
    const message = `${JSON.stringify(folder.slice(0, 100))} is neither the absolute path of a folder nor one of ${known}.`;
    throw new ServiceError("invalid_parameter", `from: ${message}`, { param: "from" });
  }
  const real = await realOrNamed(folder);
  const allowed = await Promise.all(allowedDirs.map(realOrNamed));
  if (allowed.length > 0 && !allowed.some((dir) => isInside(real, dir))) {
    throw new ServiceError(
      "path_not_allowed",
      `${folder} lies outside the folders that models may come from (models.allowed_dirs).`,
      { param: "from" },
    );
  }
  if (isInside(real, await realOrNamed(cacheDir))) {
    throw new ServiceError(
      "path_not_allowed",
      `${folder} is the daemon's own; its models are listed already.`,
      {
        param: "from",
      },
    );
  }
}

async function realOrNamed(folder: string): Promise<string> {
  return (await realpath(folder).catch(throwExhaustion)) ?? path.resolve(folder);
}

function isCalled(model: FoundModel, name: string): boolean {
  return [name, `${name}:latest`].some((each) => each === model.name || each === model.wish);
}

function chosen(
  models: readonly FoundModel[],
  names: readonly string[] | undefined,
  folder: string,
  { findByFirstLine }: Pick<ImportTools, "findByFirstLine">,
): readonly FoundModel[] {
  if (names === undefined) return models;
  // The name that an earlier import has given it counts where no model is called so there.
  const named = names.map((name) => {
    const called = models.filter((model) => isCalled(model, name));
    if (called.length > 0) return called;
    return models.filter((model) => findByFirstLine(markOf(folder, model.name))?.alias === name);
  });
  const missing = names.find((_name, at) => named[at]?.length === 0);
  if (missing === undefined) return models.filter((model) => named.some((some) => some.includes(model)));
  const shown = models.slice(0, MAX_SHOWN).map(({ name }) => name);
  const more = models.length - shown.length;
  throw new ServiceError(
    "model_not_found",
    `${folder} has no model ${JSON.stringify(missing)}. It has ${shown.join(", ") || "none"}${more > 0 ? ` and ${more} more` : ""}.`,
    { param: "models" },
  );
}
