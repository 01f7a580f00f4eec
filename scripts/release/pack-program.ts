import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { PLATFORMS } from "../../src/launch/platform-packages.mjs";
import { npmPack, type PackedPackage } from "./npm-pack.ts";
import { platformOf, releasedManifest } from "./platform-manifests.ts";
import { projectManifest, ROOT } from "./project.ts";
import { runCommand } from "./run-command.ts";

/** Files that npm packs, whatever `files` lists. */
const ALWAYS_PACKED = ["README.md", "LICENSE"];

/**
 * Builds the program and packs it as it is published.
 * @param work a folder in which it may put together what is packed
 * @param out where the package goes
 */
export async function packProgram(work: string, out: string): Promise<PackedPackage> {
  await runCommand(process.execPath, [path.join(ROOT, "scripts/release/build.ts")], { cwd: ROOT });
  const project = projectManifest();
  const folder = path.join(work, "program");
  mkdirSync(folder);
  for (const file of [...project.files, ...ALWAYS_PACKED]) {
    cpSync(path.join(ROOT, file), path.join(folder, file), { recursive: true });
  }
  const manifest = releasedManifest(project, PLATFORMS.map(platformOf));
  writeFileSync(path.join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  return npmPack(folder, out);
}
