import { Command } from "commander";
import { packageVersion } from "../../daemon/package-version.ts";
import type { CliIo } from "../cli-io.ts";
import { isNewer } from "../install/compare-versions.ts";
import { findInstallation, type Installation } from "../install/installation.ts";
import { newestRelease, type Release } from "../install/newest-release.ts";
import { packageRoot } from "../install/package-root.ts";
import { printable } from "../terminal/printable.ts";
import { writeJson, writeLine } from "../terminal/write.ts";

const REGISTRY = "https://registry.npmjs.org/";

/** daybreak update: only says how, since package managers need rights and answers that only the user can give. */
export function updateCommand(io: CliIo): Command {
  return new Command("update")
    .description("say how to update this installation, and whether there is a newer version; changes nothing")
    .option("--json", "print what was found as JSON")
    .action(async (options: { json?: boolean }) => {
      const { http1Fetch } = await import("../../models/hub/remote/http1-fetch.ts");
      const registry = io.env["npm_config_registry"] || REGISTRY;
      const release = await newestRelease({ registry, fetch: http1Fetch, signal: io.signal });
      const version = packageVersion();
      const installation = findInstallation(packageRoot());
      if (options.json) return await writeJson(io.stdout, toJson(version, release, installation));
      await writeLine(io.stdout, `This is Daybreak ${version}, ${printable(installation.description)}.`);
      await writeLine(io.stdout, printable(describeRelease(version, release)));
      for (const line of advice(installation)) await writeLine(io.stdout, printable(line));
      return undefined;
    });
}

function describeRelease(version: string, release: Release): string {
  if ("unknown" in release) return `Cannot tell whether there is a newer version: ${release.unknown}.`;
  if (isNewer(release.version, version)) return `There is a newer version: ${release.version}.`;
  return `The registry has no newer version (${release.version}).`;
}

function advice({ folder, command, advice: further }: Installation): string[] {
  const place = folder === undefined ? "" : ` in ${folder}`;
  return [
    ...(command === undefined ? [] : [`To update it, run${place}: ${command}`]),
    ...(further === undefined ? [] : [further]),
    "A running daemon keeps its version until it is restarted: daybreak stop stops it.",
  ];
}

function toJson(version: string, release: Release, installation: Installation): unknown {
  const { kind, folder, command, advice: further } = installation;
  const known = "version" in release;
  return {
    version,
    ...(known && { newest: release.version, newer: isNewer(release.version, version) }),
    ...(!known && { problem: release.unknown }),
    installation: { kind, folder, command, advice: further },
  };
}
