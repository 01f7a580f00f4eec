import { Argument, Command } from "commander";
import { fileURLToPath } from "node:url";
import { CliError, EXIT, usageError } from "../cli-error.ts";
import { type CliIo, write, writeJson, writeLine, writeLines } from "../cli-io.ts";
import { DaemonClient } from "../client/daemon-client.ts";
import { localEndpoints } from "../client/send-request.ts";
import { findInstallation, PACKAGE_FOLDER, packageRoot, stablePath } from "../install/installation.ts";
import {
  findInaccessiblePath,
  installService,
  serviceReport,
  type ServiceReport,
  serviceSettings,
  type ServiceSettings,
  uninstallService,
} from "../service/install-service.ts";
import { findManager } from "../service/find-manager.ts";
import { type ServiceManager, toolRunner } from "../service/service-manager.ts";
import { formatFields } from "../terminal/format.ts";

interface ServiceOptions {
  readonly system?: boolean;
  readonly config?: string;
  readonly print?: boolean;
  readonly json?: boolean;
}

interface ServiceTask {
  readonly io: CliIo;
  readonly options: ServiceOptions;
  readonly manager: ServiceManager;
  readonly settings: ServiceSettings;
}

const WILDCARD_ADDRESSES = new Set(["0.0.0.0", "::"]);

const ACTIONS = { install, uninstall, status };

/** daybreak service install | uninstall | status */
export function serviceCommand(io: CliIo): Command {
  return new Command("service")
    .description("run the daemon as a service of this account or system: install, uninstall, or show it")
    .addArgument(new Argument("<action>", "what to do").choices(Object.keys(ACTIONS)))
    .option("--system", "for the whole system, from boot, under a separate account (systemd; needs root)")
    .option("--config <file>", "configuration file of the service, instead of the default")
    .option("--print", "print what would be written and run, but change nothing")
    .option("--json", "print the outcome as JSON")
    .action(async (action: keyof typeof ACTIONS, options: ServiceOptions) => {
      const scope = options.system ? "system" : "user";
      const settings = serviceSettings({ env: io.env, scope, file: options.config });
      const launcher = fileURLToPath(new URL("src/launch/daybreak.mjs", PACKAGE_FOLDER));
      const program = {
        command: [stablePath(process.execPath), stablePath(launcher), "serve", ...settings.args],
        stopSeconds: settings.stopSeconds,
        env: settings.env,
      } as const;
      const manager = findManager({ scope, program, env: io.env });
      if (options.system && action !== "status" && !options.print) requireRoot(action);
      if (options.system && action === "install" && !options.print)
        for (const file of program.command.slice(0, 2)) requireReadableByAll(file);
      await ACTIONS[action]({ io, options, manager, settings });
    });
}

async function install(task: ServiceTask): Promise<void> {
  const { io, options, manager, settings } = task;
  const notes = notesFor(settings);
  if (options.print) {
    const calls = manager.activationCalls({ enabled: false, running: false }, true);
    return await print(task, calls, notes, manager.content);
  }
  const run = toolRunner(io.env, io.signal);
  const report = await installService(manager, run, async () => await requireNoDaemon(io, settings));
  if (options.json) return await writeJson(io.stdout, toJson(manager, report));
  await writeLine(io.stdout, `The ${manager.title} is installed and started: ${manager.file}`);
  await writeLines(io.stdout, [...manager.nextSteps, ...notes]);
}

async function uninstall(task: ServiceTask): Promise<void> {
  const { io, options, manager } = task;
  if (options.print)
    return await print(
      task,
      [...manager.callsBeforeRemoval, ["rm", manager.file], ...manager.callsAfterRemoval],
      [],
    );
  const removed = await uninstallService(manager, toolRunner(io.env, io.signal));
  if (options.json) return await writeJson(io.stdout, { removed, file: manager.file });
  return await writeLine(
    io.stdout,
    removed
      ? `The ${manager.title} is stopped and removed (${manager.file}). Models and configuration are kept.`
      : `There is no ${manager.title} (${manager.file}).`,
  );
}

async function status({ io, options, manager }: ServiceTask): Promise<void> {
  const report = await serviceReport(manager, toolRunner(io.env, io.signal));
  if (options.json) return await writeJson(io.stdout, toJson(manager, report));
  const fields = [
    ["Service", manager.title],
    ["File", manager.file],
    ["Installed", describeInstalled(report)],
    ["Enabled", report.enabled ? "yes" : "no"],
    ["Running", describeRunning(report)],
  ] as const;
  await writeLines(io.stdout, formatFields(fields));
}

function describeInstalled({ installed, outdated }: ServiceReport): string {
  if (!installed) return "no (daybreak service install)";
  return outdated ? 'yes, but out of date ("daybreak service install" updates it)' : "yes";
}

function describeRunning({ running, pid }: ServiceReport): string {
  if (running === undefined) return "unknown (try: daybreak status)";
  return running ? `yes${pid === undefined ? "" : `, process ${pid}`}` : "no";
}

function toJson({ title, file }: ServiceManager, report: ServiceReport): unknown {
  return { service: title, file, ...report };
}

async function print(
  { io, options, manager }: ServiceTask,
  calls: readonly (readonly string[])[],
  notes: readonly string[],
  content?: string,
): Promise<void> {
  const { file } = manager;
  if (options.json) return await writeJson(io.stdout, { file, content, commands: calls });
  if (content !== undefined) {
    await writeLine(io.stdout, `${file} would contain:\n`);
    await write(io.stdout, `${content}\n`);
  }
  await writeLine(io.stdout, "These commands would run:\n");
  for (const call of calls) await writeLine(io.stdout, `  ${call.join(" ")}`);
  await writeLines(io.stderr, notes);
}

function notesFor({ lostVariables, file, config }: ServiceSettings): string[] {
  const notes: string[] = [];
  if (WILDCARD_ADDRESSES.has(config.http.addr) && config.api_keys.length === 0) {
    notes.push(
      `It listens on all addresses and asks for no key. To serve this machine only, set addr = "127.0.0.1" under [http] in ${file}`,
    );
  }
  if (lostVariables.length > 0) {
    notes.push(
      `These variables are set in this shell but not for the service: ${lostVariables.join(", ")}. Set them in ${file}.`,
    );
  }
  if (findInstallation(packageRoot()).kind === "npx") {
    notes.push(
      "This runs from npx's cache, which npm may remove. Run npm install --global daybreak, then install the service again.",
    );
  }
  return notes;
}

function requireRoot(action: string): void {
  if (process.getuid?.() === 0) return;
  throw usageError(`A system service needs root: sudo daybreak service ${action} --system`);
}

function requireReadableByAll(file: string): void {
  const inaccessible = findInaccessiblePath(file);
  if (inaccessible === undefined) return;
  throw usageError(
    `The service runs under a separate account, which cannot read ${file} because ${inaccessible} is closed to other accounts. Install Daybreak where every account can read it, for example with: sudo npm install --global daybreak`,
  );
}

async function requireNoDaemon(io: CliIo, { config }: ServiceSettings): Promise<void> {
  const client = new DaemonClient({ endpoints: localEndpoints(config), signal: io.signal });
  if ((await client.health()) === undefined) return;
  throw new CliError(
    EXIT.conflict,
    "daemon_runs",
    'A daemon that is not this service is already running, and both would use the same address. Stop it with "daybreak stop", then install the service.',
  );
}
