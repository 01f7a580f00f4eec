import path from "node:path";
import {
  SERVICE_NAME,
  type ServiceManager,
  type ServiceProgram,
  type ServiceState,
  type ToolCall,
  type ToolResult,
} from "./service-manager.ts";
import { type SystemdScope, systemdUnit } from "./systemd-unit.ts";

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
