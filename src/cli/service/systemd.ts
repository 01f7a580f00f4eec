import path from "node:path";
import {
  FILE_MARKER,
  SERVICE_NAME,
  type ServiceManager,
  type ServiceProgram,
  type ServiceState,
  type ToolCall,
  type ToolResult,
} from "./service-manager.ts";

const UNIT = `${SERVICE_NAME}.service`;

interface SystemdOptions {
  readonly scope: SystemdScope;
  readonly program: ServiceProgram;
  /** Configuration folder of the account, for a user unit. */
  readonly configFolder: string;
  readonly gpuGroups: readonly string[];
  /** Name of the account, for messages. */
  readonly account: string;
}

/** User unit or system unit of systemd. */
export function systemd(options: SystemdOptions): ServiceManager {
  const { scope, program, gpuGroups } = options;
  const isUser = scope === "user";
  const folder = isUser ? path.posix.join(options.configFolder, "systemd", "user") : "/etc/systemd/system";
  const systemctl = (...args: string[]): ToolCall => ["systemctl", ...(isUser ? ["--user"] : []), ...args];
  return {
    title: isUser ? "systemd unit of this account" : "systemd unit of this system",
    file: path.posix.join(folder, UNIT),
    content: systemdUnit({ ...program, scope, gpuGroups }),
    encoding: "utf8",
    query: systemctl("show", UNIT, "--property=UnitFileState,ActiveState,MainPID"),
    readState: (answer) => readState(answer, scope),
    activationCalls: ({ running }, hasChanged) => [
      systemctl("daemon-reload"),
      systemctl("enable", UNIT),
      systemctl(running === true && hasChanged ? "restart" : "start", UNIT),
    ],
    callsBeforeRemoval: [systemctl("disable", "--now", UNIT)],
    callsAfterRemoval: [systemctl("daemon-reload"), systemctl("reset-failed", UNIT)],
    nextSteps: isUser ? userNextSteps(options.account) : SYSTEM_NEXT_STEPS,
  };
}

function userNextSteps(account: string): string[] {
  return [
    `It runs while ${account} is logged in. To run it from boot and after logout: loginctl enable-linger ${account}`,
    `Its log: journalctl --user --unit ${SERVICE_NAME}`,
    `After an update: systemctl --user restart ${SERVICE_NAME}`,
  ];
}

const SYSTEM_NEXT_STEPS = [
  "It reads /etc/daybreak/daybreak.toml, and secrets such as HUB_TOKEN from /etc/daybreak/daybreak.env.",
  "Its models are in /var/cache/daybreak. Commands reach it at its port; root can also use --socket /run/daybreak/daybreak.sock",
  `Its log: journalctl --unit ${SERVICE_NAME}`,
  `After an update: systemctl restart ${SERVICE_NAME}`,
];

function readState({ code, stdout, stderr }: ToolResult, scope: SystemdScope): ServiceState {
  if (code !== 0) {
    const reason = stderr.trim().split("\n")[0] || `exit code ${code}`;
    throw new Error(
      scope === "user" ? `${reason.replace(/\.$/, "")}. Log in as that account, or use --system` : reason,
    );
  }
  const read = (name: string): string => new RegExp(`^${name}=(.*)$`, "m").exec(stdout)?.[1] ?? "";
  const pid = Number(read("MainPID"));
  return {
    enabled: read("UnitFileState") === "enabled",
    // A service that waits for its restart counts as running.
    running: ["active", "activating", "reloading", "deactivating"].includes(read("ActiveState")),
    ...(pid > 0 && { pid }),
  };
}

export type SystemdScope = "user" | "system";

export interface SystemdUnitOptions extends ServiceProgram {
  readonly scope: SystemdScope;
  /** Groups that own GPU devices, for a system unit, whose account is in no group. */
  readonly gpuGroups: readonly string[];
}

/** Folders that ProtectHome=yes hides. */
const HOME_FOLDERS = ["/home/", "/root/", "/run/user/"];

/**
 * Restrictions that leave the stronger sandbox of engines intact. These would break it: RestrictNamespaces= and
 * SystemCallFilter= (bubblewrap and namespaces call unshare and mount), ProtectHostname= (bubblewrap sets the host
 * name), ProcSubset= (bubblewrap reads /proc/sys), and ProtectKernelTunables=, ProtectKernelLogs= and ProtectProc=
 * (with parts of /proc covered, a kernel may refuse to mount /proc in a namespace). PrivateDevices= and ProtectClock=
 * hide GPUs; MemoryDenyWriteExecute= stops Node.
 */
const HARDENING = [
  "NoNewPrivileges=yes",
  "LockPersonality=yes",
  "RestrictRealtime=yes",
  // bubblewrap needs netlink to set up the network of engines.
  "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
  "SystemCallArchitectures=native",
];

/** Text of a systemd unit that runs the daemon. */
export function systemdUnit(options: SystemdUnitOptions): string {
  const { scope, command, stopSeconds } = options;
  const lines = [
    `# ${FILE_MARKER}`,
    "[Unit]",
    "Description=Daybreak, a local LLM server",
    "Documentation=man:daybreak(1)",
    ...(scope === "system" ? ["After=network.target"] : []),
    "",
    "[Service]",
    "Type=exec",
    `ExecStart=${command.map(unitWord).join(" ")}`,
    ...Object.entries(options.env).map(([name, value]) => `Environment=${unitText(`${name}=${value}`)}`),
    ...(scope === "system" ? systemLines(options) : []),
    "SyslogIdentifier=daybreak",
    "Restart=on-failure",
    "RestartSec=5",
    "# Restarting does not fix a wrong configuration.",
    "RestartPreventExitStatus=2",
    "# The daemon drains its requests and stops its engines itself.",
    "KillMode=mixed",
    `TimeoutStopSec=${stopSeconds === Number.POSITIVE_INFINITY ? "infinity" : stopSeconds}`,
    "# The daemon restarts an engine that the kernel kills when memory runs out.",
    "OOMPolicy=continue",
    ...HARDENING,
    "",
    "[Install]",
    `WantedBy=${scope === "system" ? "multi-user.target" : "default.target"}`,
  ];
  return `${lines.join("\n")}\n`;
}

/** Lines for an account that exists while the service runs, with its folders. */
function systemLines({ command, gpuGroups }: SystemdUnitOptions): string[] {
  const inHome = command.some((word) => HOME_FOLDERS.some((home) => word.startsWith(home)));
  return [
    "# Secrets such as HUB_TOKEN, in a file that only root can read.",
    "EnvironmentFile=-/etc/daybreak/daybreak.env",
    "DynamicUser=yes",
    ...(gpuGroups.length > 0 ? [`SupplementaryGroups=${gpuGroups.join(" ")}`] : []),
    "CacheDirectory=daybreak",
    "RuntimeDirectory=daybreak",
    `ProtectHome=${inHome ? "read-only" : "yes"}`,
    "ProtectControlGroups=yes",
    "ProtectKernelModules=yes",
    "CapabilityBoundingSet=",
  ];
}

/** Escapes a word of ExecStart, in which systemd expands % and $. */
function unitWord(word: string): string {
  return unitText(word.replaceAll("%", "%%").replaceAll("$", "$$$$"));
}

/** Quotes a text that systemd would split. */
function unitText(text: string): string {
  if (/^[\w/.:@%$+=,-]+$/.test(text)) return text;
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
