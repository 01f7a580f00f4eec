import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { x as extract } from "tar";
import { z } from "zod";
import type { LockedPackage } from "./project.ts";
import { runCommand } from "./run-command.ts";

const packedSchema = z.array(
  z.object({ filename: z.string(), files: z.array(z.object({ path: z.string() })) }),
);

export interface PackedPackage {
  readonly tarball: string;
  /** Paths of the files in it. */
  readonly files: readonly string[];
}

/**
 * Packs a folder, or a published package, into a folder. No script of either runs.
 * @param what a folder, or `<name>@<version>`
 */
export async function npmPack(what: string, folder: string): Promise<PackedPackage> {
  const args = ["pack", what, "--json", "--ignore-scripts", "--pack-destination", folder];
  const [packed] = packedSchema.parse(JSON.parse(await runCommand("npm", args, { cwd: folder })));
  if (!packed) throw new Error(`npm has packed nothing of ${what}.`);
  return { tarball: path.join(folder, packed.filename), files: packed.files.map((file) => file.path) };
}

/**
 * Fetches a package from the registry and unpacks some of its files.
 * @param wanted whether a file, named by its path in the package, is unpacked
 * @throws Error when its hash is not that of the lock file
 */
export async function fetchPackage(
  { name, version, integrity }: LockedPackage,
  { download, target, wanted }: { download: string; target: string; wanted: (file: string) => boolean },
): Promise<void> {
  const { tarball } = await npmPack(`${name}@${version}`, download);
  const found = `sha512-${createHash("sha512").update(readFileSync(tarball)).digest("base64")}`;
  if (found !== integrity)
    throw new Error(
      `${name}@${version} has the hash ${found}, and not ${integrity} as in package-lock.json.`,
    );
  await unpack(tarball, target, wanted);
}

/** Unpacks a package's tarball without the folder that all of its files are in. */
export async function unpack(
  tarball: string,
  target: string,
  wanted: (file: string) => boolean = () => true,
): Promise<void> {
  await extract({
    file: tarball,
    cwd: target,
    strip: 1,
    filter: (file) => wanted(file.split("/").slice(1).join("/")),
  });
}
