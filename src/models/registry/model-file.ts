import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import { ServiceError, rethrowExhaustion } from "../../errors/service-error.ts";

/** A model's file as named, and the folders its real path must be in; none: anywhere. */
export interface ModelFile {
  readonly path: string;
  readonly within: readonly string[];
}

/**
 * Returns the real path of a model's file: absolute, without symlinks, a regular file inside its allowed folders.
 * Errors do not reveal which files exist outside of those folders. Throws `path_not_allowed` or `model_file_not_found`.
 */
export async function realModelPath(file: ModelFile): Promise<string> {
  const folders = await Promise.all(file.within.map(realFolder));
  const asNamed = path.resolve(file.path);
  const real = await realpath(asNamed).catch(rethrowExhaustion);
  const confined = folders.length > 0;
  if (real === undefined) {
    const parent = await realFolder(path.dirname(asNamed));
    if (confined && !folders.some((folder) => isInside(parent, folder))) throw notAllowed(file.path);
    throw new ServiceError("model_file_not_found", `There is no file ${asNamed}.`);
  }
  if (confined && !folders.some((folder) => isInside(real, folder))) throw notAllowed(file.path);
  if (!(await stat(real)).isFile()) {
    throw new ServiceError("path_not_allowed", `${asNamed} is not a regular file.`);
  }
  return real;
}

function notAllowed(named: string): ServiceError {
  return new ServiceError(
    "path_not_allowed",
    `${named} lies outside the folders that models may come from (models.allowed_dirs).`,
  );
}

async function realFolder(folder: string): Promise<string> {
  return await realpath(folder).catch((error: unknown) => {
    rethrowExhaustion(error);
    return path.resolve(folder);
  });
}

/** True if a path is the folder or inside it. Both are real paths. */
export function isInside(real: string, folder: string): boolean {
  const relative = path.relative(folder, real);
  return relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}
