import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { licenseTexts } from "./license-texts.ts";
import { unpack } from "./npm-pack.ts";
import type { Platform } from "./platform-manifests.ts";
import { type Manifest, ROOT } from "./project.ts";
import { runCommand } from "./run-command.ts";
import { sbom } from "./sbom.ts";
import { startScript } from "./start-scripts.ts";
import { writeArchive } from "./write-archive.ts";

/** Packages of one platform, as they have been packed. */
export interface PackedPlatform {
  readonly platform: Platform;
  readonly node: string;
  readonly dawn: string;
}

/**
 * Makes, for each platform, an archive that runs where it is unpacked, without npm, and a list of what is in it.
 * @param program the packed program
 */
export async function makeArchives(
  packed: readonly PackedPlatform[],
  program: string,
  { project, work, out }: { project: Manifest; work: string; out: string },
): Promise<void> {
  const common = path.join(work, "common");
  mkdirSync(common);
  await unpack(program, common);
  const nodeModules = await installDependencies(path.join(work, "dependencies"));
  cpSync(nodeModules, path.join(common, "node_modules"), { recursive: true });

  for (const { platform, node, dawn } of packed) {
    const name = `${project.name}-${project.version}-${platform.platform}-${platform.arch}`;
    const folder = path.join(work, name);
    cpSync(common, folder, { recursive: true });
    for (const [packageName, tarball] of [
      [platform.node, node],
      [platform.dawn, dawn],
    ] as const) {
      const target = path.join(folder, "node_modules", packageName);
      mkdirSync(target, { recursive: true });
      await unpack(tarball, target);
    }
    writeFileSync(path.join(out, `${name}.cdx.json`), await sbom(folder, platform));
    writeFileSync(path.join(folder, "LICENSES.txt"), licenseTexts(path.join(folder, "node_modules")));
    const { name: start, text } = startScript(platform);
    writeFileSync(path.join(folder, start), text, { mode: 0o755 });
    await writeArchive(
      folder,
      path.join(out, `${name}${platform.platform === "win32" ? ".zip" : ".tar.gz"}`),
    );
    rmSync(folder, { recursive: true });
  }
}

/** Installs what the program needs on every platform, as the lock file says. */
async function installDependencies(folder: string): Promise<string> {
  mkdirSync(folder);
  for (const file of ["package.json", "package-lock.json"])
    cpSync(path.join(ROOT, file), path.join(folder, file));
  const quiet = ["--no-audit", "--no-fund", "--no-bin-links"];
  const args = ["ci", "--omit=dev", "--omit=optional", "--ignore-scripts", ...quiet];
  await runCommand("npm", args, { cwd: folder });
  return path.join(folder, "node_modules");
}
