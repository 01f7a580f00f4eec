import { readFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { usageError } from "../cli-error.ts";
import {
  FILE_MARKER,
  SERVICE_NAME,
  type ServiceManager,
  type ServiceProgram,
  type ToolCall,
  xmlText,
} from "./service-manager.ts";
import { systemd, type SystemdScope } from "./systemd.ts";

interface ManagerOptions {
  readonly scope: SystemdScope;
  readonly program: ServiceProgram;
  readonly env: NodeJS.ProcessEnv;
  readonly platform?: NodeJS.Platform;
}

/** Returns the service manager of this system. @throws CliError if it is unknown, or lacks that scope */
export function findManager({
  scope,
  program,
  env,
  platform = process.platform,
}: ManagerOptions): ServiceManager {
  if (scope === "system" && platform !== "linux") {
    throw usageError(
      "--system needs systemd. On this system Daybreak runs as a service of your account: leave --system out.",
    );
  }
  // A system unit needs no account: it creates its own.
  const { username, homedir } =
    scope === "system" ? { username: "root", homedir: "/root" } : currentAccount();
  const home = env["HOME"] || homedir;
  switch (platform) {
    case "linux": {
      const configFolder = env["XDG_CONFIG_HOME"] || path.join(home, ".config");
      return systemd({ scope, program, configFolder, gpuGroups: gpuGroups(), account: username });
    }
    case "darwin":
      return launchd({ program, home, uid: process.getuid?.() ?? 0 });
    case "win32": {
      const domain = env["USERDOMAIN"];
      return taskScheduler({
        program,
        dataFolder: env["LOCALAPPDATA"] || path.join(homedir, "AppData", "Local"),
        account: domain ? `${domain}\\${username}` : username,
      });
    }
    default:
      throw usageError(
        `Daybreak does not know this system's service manager. Configure it to run "daybreak serve".`,
      );
  }
}

/** Name and home of this account. A container may run under a user id without either. */
function currentAccount(): Pick<os.UserInfo<string>, "username" | "homedir"> {
  try {
    return os.userInfo();
  } catch {
    throw usageError(
      "The system does not know this account, so it cannot have services. As root, install one for the system with --system.",
    );
  }
}

/** Groups that own GPU devices on Linux. */
const GPU_GROUPS = ["video", "render"];

/** GPU groups of this system; systemd does not start a unit that names others. */
export function gpuGroups(file = "/etc/group"): readonly string[] {
  try {
    const lines = readFileSync(file, "utf8").split("\n");
    return GPU_GROUPS.filter((group) => lines.some((line) => line.startsWith(`${group}:`)));
  } catch {
    return [];
  }
}

interface LaunchdOptions {
  readonly program: ServiceProgram;
  readonly home: string;
  /** User id, which names the session in launchd. */
  readonly uid: number;
}

/** Agent of the account, which launchd starts at login. */
export function launchd({ program, home, uid }: LaunchdOptions): ServiceManager {
  const file = path.posix.join(home, "Library", "LaunchAgents", `${SERVICE_NAME}.plist`);
  const log = path.posix.join(home, "Library", "Logs", `${SERVICE_NAME}.log`);
  const domain = `gui/${uid}`;
  const target = `${domain}/${SERVICE_NAME}`;
  const end: ToolCall = ["launchctl", "bootout", target];
  const start: ToolCall = ["launchctl", "bootstrap", domain, file];
  return {
    title: "launchd agent of this account",
    file,
    content: launchdAgent(program, log),
    encoding: "utf8",
    query: ["launchctl", "print", target],
    readState: ({ code, stdout }) => {
      const pid = Number(/^\s*pid = (\d+)$/m.exec(stdout)?.[1]);
      return { enabled: code === 0, running: code === 0 && pid > 0, ...(pid > 0 && { pid }) };
    },
    activationCalls: ({ enabled }, hasChanged) => {
      if (!enabled) return [start];
      return hasChanged ? [end, start] : [["launchctl", "kickstart", target]];
    },
    callsBeforeRemoval: [end],
    callsAfterRemoval: [],
    nextSteps: [
      "It runs while this account is logged in.",
      `Its log: ${log}`,
      `After an update: launchctl kickstart -k ${target}`,
    ],
  };
}

/** Property list of the agent. Its output is appended to a log file that is never rotated. */
function launchdAgent({ command, env, stopSeconds }: ServiceProgram, log: string): string {
  const strings = command.map((word) => `    <string>${xmlText(word)}</string>`);
  const variables = Object.entries(env).map(
    ([name, value]) => `    <key>${xmlText(name)}</key>\n    <string>${xmlText(value)}</string>`,
  );
  const stop =
    stopSeconds === Number.POSITIVE_INFINITY
      ? "" // launchd cannot express it: its default applies
      : `  <key>ExitTimeOut</key>\n  <integer>${stopSeconds}</integer>\n`;
  return `<?xml version="1.0" encoding="UTF-8"?>
<!-- ${FILE_MARKER} -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${SERVICE_NAME}</string>
  <key>ProgramArguments</key>
  <array>
${strings.join("\n")}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
${variables.join("\n")}
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
${stop}  <key>StandardOutPath</key>
  <string>${xmlText(log)}</string>
  <key>StandardErrorPath</key>
  <string>${xmlText(log)}</string>
</dict>
</plist>
`;
}

const TASK_NAME = "Daybreak";

interface TaskOptions {
  readonly program: ServiceProgram;
  /** Folder for local data of the account (LOCALAPPDATA). */
  readonly dataFolder: string;
  /** DOMAIN\name */
  readonly account: string;
}

/** Task of Windows' scheduler that starts at login. */
export function taskScheduler({ program, dataFolder, account }: TaskOptions): ServiceManager {
  const folder = path.win32.join(dataFolder, "daybreak");
  const file = path.win32.join(folder, "service.xml");
  const log = path.win32.join(folder, "service.log");
  const [node, launcher] = program.command;
  return {
    title: "scheduled task of this account",
    file,
    content: scheduledTask(program, account, log),
    encoding: "utf16le",
    query: ["schtasks", "/Query", "/TN", TASK_NAME],
    // schtasks reports whether it runs only in the system's language.
    readState: ({ code }) => ({ enabled: code === 0, running: undefined }),
    activationCalls: () => [
      ["schtasks", "/Create", "/TN", TASK_NAME, "/XML", file, "/F"],
      ["schtasks", "/Run", "/TN", TASK_NAME],
    ],
    // The scheduler would kill the daemon during requests.
    callsBeforeRemoval: [
      [node, launcher, "stop"],
      ["schtasks", "/Delete", "/TN", TASK_NAME, "/F"],
    ],
    callsAfterRemoval: [],
    nextSteps: [
      "It runs while this account is logged in.",
      `Its log: ${log}`,
      "After an update: daybreak stop, then schtasks /Run /TN Daybreak",
    ],
  };
}

/** Task in the scheduler's XML. It runs without a console window, and its output goes to a file. */
function scheduledTask({ command, env }: ServiceProgram, account: string, log: string): string {
  const variables = Object.entries(env).map(([name, value]) => `set "${name}=${value}"&& `);
  const line = `${variables.join("")}${command.map((word) => `"${word}"`).join(" ")} >> "${log}" 2>&1`;
  return `<?xml version="1.0" encoding="UTF-16"?>
<!-- ${FILE_MARKER} -->
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>Daybreak, a local server of language models</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <UserId>${xmlText(account)}</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>${xmlText(account)}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>255</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>conhost.exe</Command>
      <Arguments>${xmlText(`--headless cmd.exe /d /s /c "${line}"`)}</Arguments>
    </Exec>
  </Actions>
</Task>
`;
}
