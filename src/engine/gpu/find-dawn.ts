import { fileURLToPath } from "node:url";
import { platformPackages } from "../../launch/platform-packages.mjs";

/** The entry file of the optional package with Dawn; undefined when none is installed. */
export function findDawn(): string | undefined {
  const packages = platformPackages(process.platform, process.arch);
  for (const name of packages ? [packages.dawn, packages.dawnSource] : []) {
    try {
      return fileURLToPath(import.meta.resolve(name));
    } catch {
      // not installed
    }
  }
  return undefined;
}

/** The message for when {@link findDawn} finds nothing, with what to do. */
export function missingDawn({ platform, arch }: Pick<NodeJS.Process, "platform" | "arch">): string {
  const name = platformPackages(platform, arch)?.dawn;
  return name === undefined
    ? `Dawn, through which Daybreak uses GPUs, is not available for ${platform} on ${arch}.`
    : `The optional package ${name}, through which Daybreak uses GPUs, is not installed; add it with: npm install ${name} (with -g if Daybreak is installed globally; in a clone: npm ci)`;
}
