import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Installs the program into a new folder within `parent`, with links in place of packages, as pnpm makes them.
 * @param without packages that are left out
 * @returns the folder that holds src and node_modules
 */
export function linkedInstallation(parent: string, without: readonly string[] = []): string {
  const home = fs.mkdtempSync(path.join(parent, "installation-"));
  for (const part of ["src", "wasm", "package.json", "configs"]) {
    fs.cpSync(path.join(REPOSITORY, part), path.join(home, part), { recursive: true });
  }
  const packages = path.join(home, "node_modules");
  fs.mkdirSync(packages);
  for (const name of fs.readdirSync(path.join(REPOSITORY, "node_modules"))) {
    if (name.startsWith(".") || without.includes(name)) continue;
    fs.symlinkSync(path.join(REPOSITORY, "node_modules", name), path.join(packages, name), "junction");
  }
  return home;
}
