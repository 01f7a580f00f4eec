import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { toError } from "../../errors/to-error.ts";
import { CliError } from "../cli-error.ts";
import { EXIT } from "../exit-codes.ts";
import { type RunTool, serviceError } from "./run-tool.ts";
import { MARK, type ServiceManager, type ServiceState, type ToolCall } from "./service-manager.ts";

export interface ServiceReport extends ServiceState {
  readonly installed: boolean;
  /** False when the file is there as the command would write it, or is not there at all. */
  readonly outdated: boolean;
}

/** How the service is. Throws a CliError when the service manager cannot be asked. */
export async function serviceReport(manager: ServiceManager, run: RunTool): Promise<ServiceReport> {
  const content = readIfThere(manager);
  return {
    ...(await stateOf(manager, run)),
    installed: content !== undefined,
    outdated: content !== undefined && content !== encoded(manager),
  };
}

/**
 * Writes the service's file and makes it take effect; does nothing that is done already. Throws a CliError when the file
 * belongs to something else, when it cannot be written, or when the service manager refuses.
 * @param beforeStart called when the service does not run yet; what it throws ends the installation before anything is changed
 */
export async function installService(
  manager: ServiceManager,
  run: RunTool,
  beforeStart: () => Promise<void>,
): Promise<ServiceReport> {
  const { file, title, encoding } = manager;
  // Asked first: nothing is written where there is no such service manager.
  const state = await stateOf(manager, run);
  const before = readIfThere(manager);
  if (before !== undefined) requireOurs(before, file);
  if (state.running !== true) await beforeStart();
  const hasChanged = before !== encoded(manager);
  if (hasChanged) {
    try {
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, encoded(manager), encoding);
    } catch (error) {
      throw serviceError(`The ${title} cannot be written: ${messageOf(error)}.`);
    }
  }
  for (const call of manager.activate(state, hasChanged)) {
    const { code, stdout, stderr } = await run(call);
    if (code === 0) continue;
    const said = lastLine(stderr) ?? lastLine(stdout) ?? `exit code ${code}`;
    throw serviceError(`"${call.join(" ")}" failed, after ${file} was written: ${said}`);
  }
  return await serviceReport(manager, run);
}

/**
 * Ends the service and removes what {@link installService} has made. True when there was anything. Throws a CliError
 * when the file belongs to something else or the service keeps running.
 */
export async function uninstallService(manager: ServiceManager, run: RunTool): Promise<boolean> {
  const { file, title } = manager;
  const content = readIfThere(manager);
  if (content === undefined) return false;
  requireOurs(content, file);
  const problems = await runAll(manager.deactivate, run);
  const { enabled, running } = await stateOf(manager, run);
  // The state decides: parts may have been undone before.
  if (enabled || running === true)
    throw serviceError(`The ${title} cannot be stopped. ${problems.join(" ")}`);
  rmSync(file);
  await runAll(manager.forget, run);
  return true;
}

/** Runs all, and returns the messages of those that failed. */
async function runAll(calls: readonly ToolCall[], run: RunTool): Promise<string[]> {
  const problems: string[] = [];
  for (const call of calls) {
    const { code, stdout, stderr } = await run(call);
    if (code !== 0) problems.push(`"${call.join(" ")}": ${lastLine(stderr) ?? lastLine(stdout) ?? code}.`);
  }
  return problems;
}

async function stateOf(manager: ServiceManager, run: RunTool): Promise<ServiceState> {
  const answer = await run(manager.query);
  try {
    return manager.readState(answer);
  } catch (error) {
    throw serviceError(
      `The service manager cannot be asked ("${manager.query.join(" ")}"): ${messageOf(error)}.`,
    );
  }
}

/** As it is on disk: some systems want a byte order mark. */
function encoded({ content, encoding }: ServiceManager): string {
  return encoding === "utf16le" ? `\uFEFF${content}` : content;
}

function readIfThere({ file, encoding }: ServiceManager): string | undefined {
  try {
    return readFileSync(file, encoding);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw serviceError(`The service's file cannot be read: ${messageOf(error)}.`);
  }
}

function requireOurs(content: string, file: string): void {
  if (content.includes(MARK)) return;
  throw new CliError(
    EXIT.conflict,
    "service_exists",
    `${file} was not made by this command and is left unchanged. Remove or rename it first.`,
  );
}

function lastLine(text: string): string | undefined {
  return text.trim().split("\n").at(-1) || undefined;
}

function messageOf(error: unknown): string {
  return toError(error).message.replace(/\.$/, "");
}
