import { z } from "zod";
import { isQuotaExceeded, noSpaceError, openManifests, removeIfExists } from "./blob-folder.ts";

/** Manifests of stored models: a JSON file per model with its files and settings. */

export const fileSchema = z.object({
  role: z.enum(["model", "projector", "adapter"]),
  name: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  size_bytes: z.number(),
  /** Scale of an adapter. */
  scale: z.number().optional(),
});
const manifestSchema = z.object({
  name: z.string(),
  modelfile: z.string().optional(),
  files: z.array(fileSchema).min(1),
});
export type Manifest = z.output<typeof manifestSchema>;

function manifestName(model: string): string {
  return `${encodeURIComponent(model)}.json`;
}

export async function readManifests(): Promise<Manifest[]> {
  const manifests: Manifest[] = [];
  for await (const handle of (await openManifests()).values()) {
    if (handle.kind !== "file") continue;
    const { data } = manifestSchema.safeParse(await readJson(handle));
    if (data) manifests.push(data);
  }
  return manifests.toSorted((one, other) => one.name.localeCompare(other.name));
}

/** Parses a JSON file. Returns undefined if it is incomplete, after an interrupted write. */
async function readJson(handle: FileSystemFileHandle): Promise<unknown> {
  try {
    return JSON.parse(await (await handle.getFile()).text());
  } catch {
    return undefined;
  }
}

/**
 * Writes the manifest of a model. It is written before the files, so that an interrupted download can be resumed.
 * @throws ServiceError insufficient_disk
 */
export async function writeManifest(manifest: Manifest): Promise<void> {
  const text = JSON.stringify(manifestSchema.parse(manifest));
  try {
    const folder = await openManifests();
    const handle = await folder.getFileHandle(manifestName(manifest.name), { create: true });
    const writable = await handle.createWritable();
    await writable.write(text);
    await writable.close();
  } catch (error) {
    throw isQuotaExceeded(error) ? noSpaceError(error) : error;
  }
}

export async function removeManifest(model: string): Promise<void> {
  await removeIfExists(await openManifests(), manifestName(model));
}
