import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";

/** The repository. */
export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const manifestSchema = z.looseObject({
  name: z.string(),
  version: z.string(),
  license: z.string(),
  homepage: z.string(),
  repository: z.looseObject({ url: z.string() }),
  bugs: z.looseObject({ url: z.string() }),
  publishConfig: z.record(z.string(), z.unknown()),
  files: z.array(z.string()),
});
export type Manifest = z.infer<typeof manifestSchema>;

/** package.json of the repository: the one place that says where the project is and what it is called. */
export function projectManifest(): Manifest {
  return manifestSchema.parse(readJson("package.json"));
}

const lockSchema = z.object({
  packages: z.record(z.string(), z.object({ version: z.string(), integrity: z.string().optional() })),
});

/** Packages whose files, or bundles made of them, are in the program, so that no folder node_modules has them. */
export const BUNDLED = [
  "swagger-ui-dist",
  "@noble/hashes",
  "@preact/signals",
  "@preact/signals-core",
  "@wllama/wllama-compat",
  "core-js",
  "dompurify",
  "highlight.js",
  "idb",
  "marked",
  "preact",
] as const;

export interface LockedPackage {
  readonly name: string;
  readonly version: string;
  /** As in the lock file: `sha512-` and base64. */
  readonly integrity: string;
}

/**
 * A package in the version that package-lock.json names.
 * @throws Error when it names none, or no hash
 */
export function lockedPackage(name: string): LockedPackage {
  const { version, integrity } = lockSchema.parse(readJson("package-lock.json")).packages[
    `node_modules/${name}`
  ] ?? { version: "", integrity: undefined };
  if (integrity === undefined) throw new Error(`package-lock.json has no hash of ${name}.`);
  return { name, version, integrity };
}

/** SPDX identifier of the license of a package that is installed here. */
export function licenseOf(name: string): string {
  return z.object({ license: z.string() }).parse(readJson(`node_modules/${name}/package.json`)).license;
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(new URL(`../../${file}`, import.meta.url), "utf8"));
}
