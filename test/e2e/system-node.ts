import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";

/** Folders of PATH without node_modules/.bin, which contains a newer Node than the system's. */
export const SYSTEM_PATH = (process.env["PATH"] ?? "")
  .split(path.delimiter)
  .filter((folder) => !folder.includes("node_modules"))
  .join(path.delimiter);

/** Node of this machine's users; this process's if there is no other. */
export const SYSTEM_NODE =
  SYSTEM_PATH.split(path.delimiter)
    .map((folder) => path.join(folder, process.platform === "win32" ? "node.exe" : "node"))
    .find((file) => existsSync(file)) ?? process.execPath;

/** Version as in process.versions.node. */
export const SYSTEM_NODE_VERSION = execFileSync(SYSTEM_NODE, ["--version"], { encoding: "utf8" })
  .slice(1)
  .trim();
