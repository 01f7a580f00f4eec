import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { ConfigError } from "../../config/config-error.ts";
import { configOptions } from "../../config/config-options.ts";
import { defaultConfigFile } from "../../config/default-paths.ts";
import { loadConfig } from "../../config/load-config.ts";
import type { Config } from "../../config/schema.ts";
import { toError } from "../../errors/to-error.ts";
import { CliError, EXIT, usageError } from "../cli-error.ts";
import {
  MARK,
  type RunTool,
  serviceError,
  type ServiceManager,
  type ServiceState,
  type ToolCall,
} from "./service-manager.ts";
import type { SystemdScope } from "./systemd.ts";

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

/** Seconds that the daemon takes beyond the drain timeout, to stop engines. */
const MARGIN_SECONDS = 30;

const NO_HOME =
  "This account has no home folder, so it cannot have services. As root, install one for the system with --system.";

export interface ServiceSettings {
  /** As the daemon will find it. */
  readonly config: Config;
  /** The configuration file that it reads, when there is one. */
  readonly file: string;
  /** What it is given beside that file. */
  readonly env: Readonly<Record<string, string>>;
  readonly args: readonly string[];
  readonly stopSeconds: number;
  /** Variables that are set here and that it will not have. */
  readonly lostVariables: readonly string[];
}

interface SettingsQuestion {
  readonly env: NodeJS.ProcessEnv;
  readonly scope: SystemdScope;
  /** From --config. */
  readonly file: string | undefined;
}

/**
 * Reads the configuration as a service would: without the variables of any shell. Throws a usage error when the
 * configuration is wrong: such a service could not start.
 */
export function serviceSettings({ env, scope, file }: SettingsQuestion): ServiceSettings {
  const variables = configOptions.flatMap((option) => option.env);
  const lostVariables = variables.filter((name) => Boolean(env[name]));
  const named = file ?? (env["SERVICE_CONFIG"] || undefined);
  const absolute = named === undefined ? undefined : path.resolve(named);
  const ofSystem = {
    SERVICE_CACHE_DIR: "/var/cache/daybreak",
    SERVICE_SOCKET: "/run/daybreak/daybreak.sock",
    // With which the default configuration file is /etc/daybreak/daybreak.toml.
    XDG_CONFIG_HOME: "/etc",
  };
  const given: Readonly<Record<string, string>> = scope === "system" ? ofSystem : {};
  const seen = { ...without(env, variables), SERVICE_CONFIG: undefined, ...given };
  const read = absolute ?? defaultConfigFile(seen);
  if (read === undefined) throw usageError(NO_HOME);
  try {
    const { config, origins } = loadConfig({ env: seen, file: absolute });
    return {
      config,
      file: read,
      // The journal has its own times and levels, and people read it; but the user's choice wins.
      env: { ...given, ...(origins.has("log.format") ? {} : { SERVICE_LOG_FORMAT: "text" }) },
      args: absolute === undefined ? [] : ["--config", absolute],
      stopSeconds: Math.ceil(config.drain_timeout / 1000) + MARGIN_SECONDS,
      lostVariables,
    };
  } catch (error) {
    if (error instanceof ConfigError) throw usageError(error.message);
    throw error;
  }
}

function without(env: NodeJS.ProcessEnv, names: readonly string[]): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));
}

const OTHERS_READ = 0o004;
const OTHERS_ENTER = 0o001;

/** The first folder on the way to a file, or the file itself, that accounts other than its owner cannot use. */
export function closedToOthers(
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
