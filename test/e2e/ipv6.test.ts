import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PROGRAM } from "../support/program.ts";
import { need } from "../support/need.ts";
import { onIpv6Alone } from "../support/system-limits.ts";
import { cleanEnv } from "./cli-process.ts";

const LAUNCHER = path.join(PROGRAM, "src/launch/daybreak.mjs");
/** Port in a separate network namespace, where every port is free. */
const PORT = "8080";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-ipv6-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

const through = process.platform === "linux" ? onIpv6Alone() : undefined;
const IPV6_ALONE = need("user namespaces with a network of IPv6 alone (unshare, ip)", through !== undefined);

test.skipIf(IPV6_ALONE.isMissing)(
  `on a machine with IPv6 alone the daemon is there by default, and commands find it${IPV6_ALONE.note}`,
  async () => {
    const [unshare = "", ...args] = through ?? [];
    const env = { ...cleanEnv(), SERVICE_CACHE_DIR: folder, SERVICE_SOCKET: "", SERVICE_HTTP_PORT: PORT };
    const serve = [process.execPath, LAUNCHER, "serve", "--models-load", "", "--gpu-mode", "off"];
    const daemon = spawn(unshare, [...args, ...serve], { env, stdio: ["ignore", "pipe", "ignore"] });
    try {
      for await (const line of createInterface(daemon.stdout)) {
        if (!line.includes("listens on")) continue;
        expect(line).toContain(`listens on http://[::1]:${PORT} (on all addresses: http://0.0.0.0:${PORT})`);
        break;
      }
      const there = ["--target", String(daemon.pid), "--user", "--net", "--preserve-credentials"];
      const status = [process.execPath, LAUNCHER, "status", "--json"];
      const { stdout } = await promisify(execFile)("nsenter", [...there, ...status], { env });
      expect(JSON.parse(stdout)).toMatchObject({ http_endpoint: `http://0.0.0.0:${PORT}` });
      daemon.kill("SIGTERM");
      await once(daemon, "exit");
    } finally {
      daemon.kill("SIGKILL");
    }
  },
);
