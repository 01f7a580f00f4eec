import path from "node:path";
import {
  MARK,
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
  /** The account's configuration folder; for its own unit. */
  readonly configFolder: string;
  readonly gpuGroups: readonly string[];
  /** The account's name, to be shown. */
  readonly account: string;
}

/** A unit of the account's own manager, or of the system's. */
export function systemd(options: SystemdOptions): ServiceManager {
  const { scope, program, gpuGroups } = options;
  const isUser = scope === "user";
  const folder = isUser ? path.posix.join(options.configFolder, "systemd", "user") : "/etc/systemd/system";
  const tell = (...args: string[]): ToolCall => ["systemctl", ...(isUser ? ["--user"] : []), ...args];
  return {
    title: isUser ? "systemd unit of this account" : "systemd unit of this system",
    file: path.posix.join(folder, UNIT),
    content: systemdUnit({ ...program, scope, gpuGroups }),
    encoding: "utf8",
    query: tell("show", UNIT, "--property=UnitFileState,ActiveState,MainPID"),
    readState: (answer) => readState(answer, scope),
    activate: ({ running }, hasChanged) => [
      tell("daemon-reload"),
      tell("enable", UNIT),
      tell(running === true && hasChanged ? "restart" : "start", UNIT),
    ],
    deactivate: [tell("disable", "--now", UNIT)],
    forget: [tell("daemon-reload"), tell("reset-failed", UNIT)],
    nextSteps: isUser ? userSteps(options.account) : SYSTEM_STEPS,
  };
}

function userSteps(account: string): string[] {
  return [
    `It runs while ${account} is logged in. To run it from boot and after logout: loginctl enable-linger ${account}`,
    `Its log: journalctl --user --unit ${SERVICE_NAME}`,
    `After an update: systemctl --user restart ${SERVICE_NAME}`,
  ];
}

const SYSTEM_STEPS = [
  "It reads /etc/daybreak/daybreak.toml, and secrets such as HUB_TOKEN from /etc/daybreak/daybreak.env.",
  "Its models are in /var/cache/daybreak. Commands reach it at its port; root can also use --socket /run/daybreak/daybreak.sock",
  `Its log: journalctl --unit ${SERVICE_NAME}`,
  `After an update: systemctl restart ${SERVICE_NAME}`,
];

function readState({ code, stdout, stderr }: ToolResult, scope: SystemdScope): ServiceState {
  if (code !== 0) {
    const said = stderr.trim().split("\n")[0] || `exit code ${code}`;
    throw new Error(
      scope === "user" ? `${said.replace(/\.$/, "")}. Log in as that account, or use --system` : said,
    );
  }
  const read = (name: string): string => new RegExp(`^${name}=(.*)$`, "m").exec(stdout)?.[1] ?? "";
  const pid = Number(read("MainPID"));
  return {
    enabled: read("UnitFileState") === "enabled",
    // Waiting for a restart counts as running.
    running: ["active", "activating", "reloading", "deactivating"].includes(read("ActiveState")),
    ...(pid > 0 && { pid }),
  };
}

export type SystemdScope = "user" | "system";

export interface SystemdUnitOptions extends ServiceProgram {
  readonly scope: SystemdScope;
  /** Groups that may use the machine's GPUs; for the system's unit, whose account is in no group. */
  readonly gpuGroups: readonly string[];
}

/** Folders that ProtectHome=yes hides. */
const HOMES = ["/home/", "/root/", "/run/user/"];

/**
 * Restrictions that do not disable the engines' own, stronger sandbox. These would, and are left out: RestrictNamespaces= and
 * SystemCallFilter= (both walls unshare and mount), ProtectHostname= (bubblewrap names the engine's host), ProcSubset=
 * (it reads /proc/sys), and ProtectKernelTunables=, ProtectKernelLogs= and ProtectProc= (where parts of /proc are
 * covered, a kernel may refuse a namespace its own). PrivateDevices= and ProtectClock= hide GPUs;
 * MemoryDenyWriteExecute= ends Node.
 */
const FENCES = [
  "NoNewPrivileges=yes",
  "LockPersonality=yes",
  "RestrictRealtime=yes",
  // Of netlink: bubblewrap sets up an interface in the engines' own network.
  "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
  "SystemCallArchitectures=native",
];

/** The text of a systemd unit that runs the daemon. */
export function systemdUnit(options: SystemdUnitOptions): string {
  const { scope, command, stopSeconds } = options;
  const lines = [
    `# ${MARK}`,
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
    ...FENCES,
    "",
    "[Install]",
    `WantedBy=${scope === "system" ? "multi-user.target" : "default.target"}`,
  ];
  return `${lines.join("\n")}\n`;
}

/** An account that exists while the service runs, with the folders that it may write. */
function systemLines({ command, gpuGroups }: SystemdUnitOptions): string[] {
  const inHome = command.some((word) => HOMES.some((home) => word.startsWith(home)));
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

/** A word of ExecStart, in which % and $ mean something to systemd. */
function unitWord(word: string): string {
  return unitText(word.replaceAll("%", "%%").replaceAll("$", "$$$$"));
}

/** Quoted where systemd would split it. */
function unitText(text: string): string {
  if (/^[\w/.:@%$+=,-]+$/.test(text)) return text;
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
