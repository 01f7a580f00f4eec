import { type PlatformPackages, platformPackages } from "../../src/launch/platform-packages.mjs";
import { lockedPackage, type Manifest } from "./project.ts";

export interface Platform extends PlatformPackages {
  /** As in process.platform and process.arch. */
  readonly platform: string;
  readonly arch: string;
}

/**
 * @param name `<process.platform>-<process.arch>`
 * @throws Error when nothing is released for it
 */
export function platformOf(name: string): Platform {
  const [platform = "", arch = ""] = name.split("-");
  const packages = platformPackages(platform, arch);
  if (!packages) throw new Error(`Nothing is released for ${name}.`);
  return { platform, arch, ...packages };
}

/** Fields that differ between the packages of the platforms. */
interface Own {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly type?: "module";
  readonly main?: string;
}

/** package.json of a package with the files of one platform; nothing runs when it is installed. */
function manifest(project: Manifest, { platform, arch }: Platform, own: Own) {
  return {
    ...own,
    homepage: project.homepage,
    repository: project.repository,
    bugs: project.bugs,
    os: [platform],
    cpu: [arch],
    ...(platform === "linux" && { libc: ["glibc"] }),
    preferUnplugged: true,
    publishConfig: project.publishConfig,
  };
}

/** package.json of the package with Node's binary: without `bin`, so that the user's own `node` stays in place. */
export function nodeManifest(project: Manifest, platform: Platform) {
  const { version } = lockedPackage(platform.nodeSource);
  return manifest(project, platform, {
    name: platform.node,
    version,
    description: `Node.js ${version} for ${platform.platform} on ${platform.arch}: the binary alone, which Daybreak runs on`,
    license: "MIT",
  });
}

/** package.json of the package with Dawn. */
export function dawnManifest(project: Manifest, platform: Platform) {
  const { version } = lockedPackage(platform.dawnSource);
  return manifest(project, platform, {
    name: platform.dawn,
    version,
    description: `Dawn (WebGPU for Node) for ${platform.platform} on ${platform.arch}, through which Daybreak uses GPUs`,
    license: "BSD-3-Clause",
    type: "module",
    main: "index.js",
  });
}

/** package.json of what is published: the repository's, except for scripts and dependencies. */
export function releasedManifest(project: Manifest, platforms: readonly Platform[]) {
  const leftOut = new Set(["private", "scripts", "devDependencies", "allowScripts"]);
  const kept = Object.entries(project).filter(([name]) => !leftOut.has(name));
  const optional = [
    ...platforms.map(({ dawn, dawnSource }) => [dawn, lockedPackage(dawnSource).version]),
    ...platforms.map(({ node, nodeSource }) => [node, lockedPackage(nodeSource).version]),
  ];
  return { ...Object.fromEntries(kept), optionalDependencies: Object.fromEntries(optional) };
}
