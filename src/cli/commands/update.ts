import { Command } from "commander";
import { z } from "zod";
import { packageVersion } from "../../daemon/package-version.ts";
import { reasonOf } from "../../errors/service-error.ts";
import { type CliIo, writeJson, writeLine, writeLines } from "../cli-io.ts";
import { findInstallation, type Installation, packageRoot } from "../install/installation.ts";
import { printable } from "../terminal/format.ts";

const REGISTRY = "https://registry.npmjs.org/";

/** daybreak update: prints the command only, since package managers may need rights or ask questions. */
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
      return writeLines(io.stdout, advice(installation).map(printable));
    });
}

function describeRelease(version: string, release: Release): string {
  if ("problem" in release) return `Cannot tell whether there is a newer version: ${release.problem}.`;
  if (isNewer(release.version, version)) return `There is a newer version: ${release.version}.`;
  return `The registry has no newer version (${release.version}).`;
}

function advice({ folder, command, advice: further }: Installation): string[] {
  const location = folder === undefined ? "" : ` in ${folder}`;
  return [
    ...(command === undefined ? [] : [`To update it, run${location}: ${command}`]),
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
    ...(!known && { problem: release.problem }),
    installation: { kind, folder, command, advice: further },
  };
}

/** Registries usually answer within a second. */
const DEADLINE_MS = 4000;

const releaseSchema = z.object({
  version: z.string(),
  // Distinguishes Daybreak from another package of the same name.
  bin: z.object({ daybreak: z.string() }),
});

/** Newest release in the package registry, or why it is unknown. */
type Release = { readonly version: string } | { readonly problem: string };

interface ReleaseQuery {
  readonly registry: string;
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
  readonly deadlineMs?: number;
}

/** Fetches the newest release from an npm registry. Rejects with the signal's reason only. */
export async function newestRelease(query: ReleaseQuery): Promise<Release> {
  const { registry, signal, deadlineMs = DEADLINE_MS } = query;
  const address = URL.parse("daybreak/latest", registry.endsWith("/") ? registry : `${registry}/`);
  if (address === null) return { problem: `${registry} is not a registry address` };
  const { hostname } = address;
  const timeout = AbortSignal.timeout(deadlineMs);
  try {
    const answer = await query.fetch(address, { signal: AbortSignal.any([signal, timeout]) });
    if (answer.status === 404) return { problem: `${hostname} has no package with that name` };
    if (!answer.ok) return { problem: `${hostname} answers with status ${answer.status}` };
    const release = releaseSchema.safeParse(await answer.json());
    if (release.success) return { version: release.data.version };
    return { problem: `the package with that name at ${hostname} is another program` };
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.aborted) return { problem: `${hostname} has not answered within ${deadlineMs / 1000} s` };
    return { problem: `${hostname} cannot be reached (${innermostReason(error)})` };
  }
}

/** Message of the innermost cause: fetch itself only says "fetch failed". */
function innermostReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof AggregateError) return innermostReason(error.cause.errors[0]);
  return error.cause instanceof Error ? innermostReason(error.cause) : reasonOf(error);
}

/** True if a version comes after another by the rules of semver.org. */
export function isNewer(version: string, than: string): boolean {
  return sortKey(version) > sortKey(than);
}

/** Longest number in a version. */
const MAX_DIGITS = 16;

/** Text by which versions sort: numbers come before words, and a prerelease before its release. */
function sortKey(version: string): string {
  const [text = ""] = version.split("+");
  const [core = "", ...prerelease] = text.split("-");
  const parts = [...core.split("."), ...(prerelease.length === 0 ? ["~"] : prerelease.join("-").split("."))];
  return parts
    .map((part) => (/^\d+$/.test(part) ? `0${part.padStart(MAX_DIGITS, "0")}` : `1${part}`))
    .join("\0");
}
