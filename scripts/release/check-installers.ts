#!/usr/bin/env node
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { PLATFORMS } from "../../src/launch/platform-packages.mjs";
import {
  checkInstaller,
  checkNpx,
  checkPlugAndPlay,
  checkWithoutOptional,
  installTools,
} from "./installer-checks.ts";
import type { ProjectOptions } from "./installer-project.ts";
import { INSTALLERS } from "./installers.ts";
import { startLocalRegistry } from "./local-registry.ts";
import { dawnManifest, nodeManifest, platformOf } from "./platform-manifests.ts";
import { projectManifest, ROOT } from "./project.ts";
import { runCommand } from "./run-command.ts";

const HELP = `Installs what scripts/release/all.ts has made, with each installer in a project of its own, and sees that it answers.

  node scripts/release/check-installers.ts [--from DIR]

  --from DIR   where the packages are (default release/)

npm is that of the system; pnpm, yarn 1, yarn 4 and bun are fetched from npm's registry into a temporary folder, and so
are the packages that Daybreak needs. Its own come from a registry on this machine. It takes a minute and 2 GB of
temporary disk, and runs on Linux and macOS.`;

const { values } = parseArgs({
  options: {
    help: { type: "boolean", short: "h" },
    from: { type: "string", default: path.join(ROOT, "release") },
  },
});
if (values.help) console.log(HELP);
else {
  await checkInstallers(path.resolve(values.from)).catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}

async function checkInstallers(from: string): Promise<void> {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-installers-"));
  try {
    const upstream = (await runCommand("npm", ["config", "get", "registry"], { cwd: folder })).trim();
    await using registry = await startLocalRegistry({ folder: from, others: platformManifests(), upstream });
    const options: ProjectOptions = {
      folder,
      tools: await installTools(path.join(folder, "tools"), INSTALLERS),
      registry: registry.url,
      path: systemPath(),
    };
    for (const installer of INSTALLERS) console.log(await checkInstaller(installer, options));
    for (const check of [checkNpx, checkWithoutOptional, checkPlugAndPlay]) console.log(await check(options));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns the registry's documents of all platform packages, whether they have been made or not. */
function platformManifests(): object[] {
  const project = projectManifest();
  return PLATFORMS.map(platformOf).flatMap((each) => [
    nodeManifest(project, each),
    dawnManifest(project, each),
  ]);
}

/** PATH without what npm has put there for its own scripts. */
function systemPath(): string {
  const folders = (process.env["PATH"] ?? "").split(path.delimiter);
  return folders.filter((folder) => !folder.includes("node_modules")).join(path.delimiter);
}
