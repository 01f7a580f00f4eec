import { readFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { usageError } from "../cli-error.ts";
import { launchd } from "./launchd.ts";
import type { ServiceManager, ServiceProgram } from "./service-manager.ts";
import { systemd, type SystemdScope } from "./systemd.ts";
import { taskScheduler } from "./task-scheduler.ts";

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
