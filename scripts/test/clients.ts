#!/usr/bin/env node
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const HELP = `Tries clients that people use with Daybreak, in the versions that test/clients/package-lock.json pins.

  npm run test:clients -- [options] [file…]

  --help, -h   show this

Installs them into test/clients when they are missing or others than the lock file names: over a gigabyte, from the
npm registry. Then checks, lints and runs test/clients, or the files that are named.
`;

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const CLIENTS = path.join(ROOT, "test/clients");

/** Which lock file has been installed; npm removes it with the folder before it installs. */
const INSTALLED = path.join(CLIENTS, "node_modules/.installed-lock");

/** The errors of npm that mean that the registry cannot be reached. */
const UNREACHABLE =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT)\b/;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { help: { type: "boolean", short: "h" } },
});
if (values.help) console.log(HELP);
else process.exitCode = installClients() || tryClients();

/** @returns the exit code */
function installClients(): number {
  const lock = createHash("sha256")
    .update(readFileSync(path.join(CLIENTS, "package-lock.json")))
    .digest("hex");
  if (existsSync(INSTALLED) && readFileSync(INSTALLED, "utf8") === lock) return 0;
  console.log("Installing the clients into test/clients …");
  const args = ["ci", "--prefix", "test/clients", "--no-audit", "--no-fund", "--loglevel=error"];
  const { status, stdout, stderr } = spawnSync("npm", args, {
    cwd: ROOT,
    encoding: "utf8",
    shell: process.platform === "win32", // npm is a script there
  });
  if (status === 0) {
    writeFileSync(INSTALLED, lock);
    return 0;
  }
  process.stderr.write(`${stdout ?? ""}${stderr ?? ""}`);
  console.error(
    UNREACHABLE.test(stderr ?? "")
      ? "The clients are not installed, and the npm registry cannot be reached. Connect this machine to the network and run the command again; once they are installed it needs none."
      : "The clients could not be installed: npm's own words are above.",
  );
  return 1;
}

/** @returns the exit code of the first check that fails */
function tryClients(): number {
  const checks = [
    ["typescript/bin/tsc", "--noEmit", "-p", "test/clients"],
    [
      "oxlint/bin/oxlint",
      "--type-aware",
      "--deny-warnings",
      "-c",
      "test/clients/oxlint.json",
      "test/clients",
    ],
    // More at once, and agents wait for daemons.
    ["vitest/vitest.mjs", "run", "--project", "clients", "--maxWorkers=2", ...positionals],
  ];
  for (const [program = "", ...args] of checks) {
    const script = path.join(ROOT, "node_modules", program);
    const { status } = spawnSync(process.execPath, [script, ...args], { cwd: ROOT, stdio: "inherit" });
    if (status !== 0) return status ?? 1;
  }
  return 0;
}
