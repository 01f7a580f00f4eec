import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { configOptions } from "../../config/config-options.ts";
import { defaultConfigFile } from "../../config/default-paths.ts";
import type { Config } from "../../config/schema.ts";
import { toError } from "../../errors/service-error.ts";
import { CliError, EXIT, usageError } from "../cli-error.ts";
import { loadConfigOrFail } from "../options/common-options.ts";
import {
  FILE_MARKER,
  type RunTool,
  serviceError,
  type ServiceManager,
  type ServiceState,
  type ToolCall,
} from "./service-manager.ts";
import type { SystemdScope } from "./systemd.ts";

export interface ServiceReport extends ServiceState {
  readonly installed: boolean;
  /** True if the file differs from what the command would write. */
  readonly outdated: boolean;
}

/** Returns the state of the service. @throws CliError if the service manager does not answer */
export async function serviceReport(manager: ServiceManager, run: RunTool): Promise<ServiceReport> {
  const content = readIfExists(manager);
  return {
    ...(await stateOf(manager, run)),
    installed: content !== undefined,
    outdated: content !== undefined && content !== fileText(manager),
  };
}

/**
 * Writes the service's file and starts the service; skips what is already done.
 * @param beforeStart called before any change if the service does not run yet; it may throw to cancel
 * @throws CliError if the file was not made by this command or cannot be written, or if the service manager fails
 */
export async function installService(
  manager: ServiceManager,
  run: RunTool,
  beforeStart: () => Promise<void>,
): Promise<ServiceReport> {
  const { file, title, encoding } = manager;
  // Queried first, so that nothing is written on a system without this service manager.
  const state = await stateOf(manager, run);
  const before = readIfExists(manager);
  if (before !== undefined) requireMarker(before, file);
  if (state.running !== true) await beforeStart();
  const hasChanged = before !== fileText(manager);
  if (hasChanged) {
    try {
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, fileText(manager), encoding);
    } catch (error) {
      throw serviceError(`The ${title} cannot be written: ${messageOf(error)}.`);
    }
  }
  for (const call of manager.activationCalls(state, hasChanged)) {
    const { code, stdout, stderr } = await run(call);
    if (code === 0) continue;
    const reason = lastLine(stderr) ?? lastLine(stdout) ?? `exit code ${code}`;
    throw serviceError(`"${call.join(" ")}" failed, after ${file} was written: ${reason}`);
  }
  return await serviceReport(manager, run);
}

/**
 * Stops the service and removes its file. Returns false if there is none.
 * @throws CliError if the file was not made by this command, or the service keeps running
 */
export async function uninstallService(manager: ServiceManager, run: RunTool): Promise<boolean> {
  const { file, title } = manager;
  const content = readIfExists(manager);
  if (content === undefined) return false;
  requireMarker(content, file);
  const problems = await runAll(manager.callsBeforeRemoval, run);
  const { enabled, running } = await stateOf(manager, run);
  // A call may fail because its work was done before, so the state decides.
  if (enabled || running === true)
    throw serviceError(`The ${title} cannot be stopped. ${problems.join(" ")}`);
  rmSync(file);
  await runAll(manager.callsAfterRemoval, run);
  return true;
}

/** Runs all calls and returns the errors. */
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

/** Text of the file; UTF-16 gets a byte order mark. */
function fileText({ content, encoding }: ServiceManager): string {
  return encoding === "utf16le" ? `\uFEFF${content}` : content;
}

function readIfExists({ file, encoding }: ServiceManager): string | undefined {
  try {
    return readFileSync(file, encoding);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw serviceError(`The service's file cannot be read: ${messageOf(error)}.`);
  }
}

function requireMarker(content: string, file: string): void {
  if (content.includes(FILE_MARKER)) return;
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

/** Seconds to stop engines, in addition to the drain timeout. */
const STOP_MARGIN_SECONDS = 30;

const NO_HOME_MESSAGE =
  "This account has no home folder, so it cannot have services. As root, install one for the system with --system.";

export interface ServiceSettings {
  /** Configuration as the service will read it. */
  readonly config: Config;
  /** Configuration file of the service; it need not exist. */
  readonly file: string;
  /** Variables in the service's file. */
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
  readonly stopSeconds: number;
  /** Options set by variables of this shell, which the service does not get. */
  readonly lostVariables: readonly string[];
}

interface SettingsOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly scope: SystemdScope;
  /** From --config. */
  readonly file: string | undefined;
}

/**
 * Reads the configuration as the service would, without the variables of this shell.
 * @throws CliError if the configuration is invalid, since the service could not start
 */
export function serviceSettings({ env, scope, file }: SettingsOptions): ServiceSettings {
  const variables = configOptions.flatMap((option) => option.env);
  const lostVariables = variables.filter((name) => Boolean(env[name]));
  const named = file ?? (env["SERVICE_CONFIG"] || undefined);
  const absolute = named === undefined ? undefined : path.resolve(named);
  const systemVariables = {
    SERVICE_CACHE_DIR: "/var/cache/daybreak",
    SERVICE_SOCKET: "/run/daybreak/daybreak.sock",
    // Makes /etc/daybreak/daybreak.toml the default configuration file.
    XDG_CONFIG_HOME: "/etc",
  };
  const fixedVariables: Readonly<Record<string, string>> = scope === "system" ? systemVariables : {};
  const serviceEnv = { ...without(env, variables), SERVICE_CONFIG: undefined, ...fixedVariables };
  const configFile = absolute ?? defaultConfigFile(serviceEnv);
  if (configFile === undefined) throw usageError(NO_HOME_MESSAGE);
  const { config, origins } = loadConfigOrFail({ env: serviceEnv, file: absolute });
  return {
    config,
    file: configFile,
    // People read the journal, so text is the default there.
    env: { ...fixedVariables, ...(origins.has("log.format") ? {} : { SERVICE_LOG_FORMAT: "text" }) },
    args: absolute === undefined ? [] : ["--config", absolute],
    stopSeconds: Math.ceil(config.drain_timeout / 1000) + STOP_MARGIN_SECONDS,
    lostVariables,
  };
}

function without(env: NodeJS.ProcessEnv, names: readonly string[]): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));
}

const OTHERS_READ = 0o004;
const OTHERS_ENTER = 0o001;

/** First folder on the way to a file, or the file itself, that other accounts cannot read. */
export function findInaccessiblePath(
  file: string,
  modeOf: (file: string) => number = (each) => statSync(each).mode,
): string | undefined {
  const folders: string[] = [];
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    folders.unshift(folder);
    if (folder === path.dirname(folder)) break;
  }
  const closed = folders.find((folder) => (modeOf(folder) & OTHERS_ENTER) === 0);
  return closed ?? ((modeOf(file) & OTHERS_READ) === 0 ? file : undefined);
}
