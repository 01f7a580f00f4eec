import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { need } from "../support/need.ts";
import { PROGRAM } from "../support/program.ts";

const LAUNCHER = path.join(PROGRAM, "src/launch/daybreak.mjs");
/** User id without an account, as in containers. */
const UID = "54321";
const AS_NOBODY_KNOWN = ["--user", `--map-user=${UID}`, `--map-group=${UID}`];

let temporary: string;
beforeAll(() => {
  temporary = mkdtempSync(path.join(os.tmpdir(), "daybreak-homeless-"));
});
afterAll(() => rmSync(temporary, { recursive: true }));

const UNKNOWN_USER = need(
  "user namespaces, to run as an unknown user",
  spawnSync("unshare", [...AS_NOBODY_KNOWN, "true"]).status === 0,
);

/** Runs the program under an unknown user id. */
function daybreak(home: string | undefined, ...args: string[]) {
  const env = { PATH: process.env["PATH"], TMPDIR: temporary, ...(home !== undefined && { HOME: home }) };
  return spawn("unshare", [...AS_NOBODY_KNOWN, process.execPath, LAUNCHER, ...args], {
    env,
    stdio: ["ignore", "pipe", "ignore"],
  });
}

test.skipIf(UNKNOWN_USER.isMissing).each([
  ["no home", undefined],
  ["a home that cannot be made", "/dev/null"],
])(`an account with %s starts a daemon and finds its socket${UNKNOWN_USER.note}`, async (_, home) => {
  const socket = path.join(temporary, `daybreak-${UID}`, "run", "daybreak.sock");
  const daemon = daybreak(home, "serve", "--models-load", "", "--http-port", "0", "--gpu-mode", "off");
  try {
    for await (const line of createInterface(daemon.stdout)) {
      if (!line.includes("listens on")) continue;
      expect(line).toContain(`ipc://${socket}`);
      break;
    }
    expect(statSync(path.join(temporary, `daybreak-${UID}`)).mode & 0o777).toBe(0o700);
    const [code] = await once(daybreak(home, "stop"), "exit");
    expect(code).toBe(0);
    if (daemon.exitCode === null) await once(daemon, "exit");
  } finally {
    daemon.kill("SIGKILL");
  }
});
