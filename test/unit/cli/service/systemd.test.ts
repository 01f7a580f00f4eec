import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { unless } from "../../../support/need.ts";
import { systemdUnit, type SystemdUnitOptions } from "../../../../src/cli/service/systemd.ts";

const COMMAND = ["/opt/node/bin/node", "/opt/daybreak/dist/src/launch/daybreak.mjs", "serve"] as const;

function unit(options: Partial<SystemdUnitOptions> = {}): string {
  return systemdUnit({
    scope: "user",
    command: COMMAND,
    stopSeconds: 60,
    env: {},
    gpuGroups: [],
    ...options,
  });
}

function lines(text: string): readonly string[] {
  return text.split("\n");
}

describe("systemdUnit", () => {
  it("restarts the daemon after a failure, but not with an invalid configuration", () => {
    const text = lines(unit());
    expect(text).toContain(`ExecStart=${COMMAND.join(" ")}`);
    expect(text).toContain("Restart=on-failure");
    expect(text).toContain("RestartPreventExitStatus=2");
    expect(text).toContain("WantedBy=default.target");
  });

  it("signals only the daemon and lets it drain", () => {
    expect(lines(unit())).toContain("TimeoutStopSec=60");
    expect(lines(unit())).toContain("KillMode=mixed");
    expect(lines(unit({ stopSeconds: Number.POSITIVE_INFINITY }))).toContain("TimeoutStopSec=infinity");
  });

  it("keeps the daemon running when an engine runs out of memory", () => {
    expect(lines(unit())).toContain("OOMPolicy=continue");
  });

  it("has no restriction that breaks the engines' sandbox or hides GPUs", () => {
    for (const scope of ["user", "system"] as const) {
      expect(unit({ scope })).not.toMatch(
        /^(RestrictNamespaces|SystemCallFilter|ProtectHostname|ProcSubset|ProtectProc|ProtectKernelTunables|ProtectKernelLogs|PrivateDevices|ProtectClock|MemoryDenyWriteExecute|MemoryMax)=/m,
      );
    }
  });

  it("escapes spaces and special characters", () => {
    const odd = ["/opt/my node/node", '/opt/100%/a"b\\$HOME', "serve"] as const;
    expect(lines(unit({ command: odd }))).toContain(
      'ExecStart="/opt/my node/node" "/opt/100%%/a\\"b\\\\$$HOME" serve',
    );
    expect(lines(unit({ env: { SERVICE_CACHE_DIR: "/srv/my models" } }))).toContain(
      'Environment="SERVICE_CACHE_DIR=/srv/my models"',
    );
  });

  it("gives a system unit a separate account without access to homes, unless the program is in one", () => {
    const text = lines(unit({ scope: "system", gpuGroups: ["video", "render"] }));
    expect(text).toContain("DynamicUser=yes");
    expect(text).toContain("CacheDirectory=daybreak");
    expect(text).toContain("SupplementaryGroups=video render");
    expect(text).toContain("ProtectHome=yes");
    expect(text).toContain("WantedBy=multi-user.target");
    const atHome = ["/home/ada/node", "/home/ada/daybreak.mjs", "serve"] as const;
    expect(lines(unit({ scope: "system", command: atHome }))).toContain("ProtectHome=read-only");
    expect(unit({ scope: "system" })).not.toContain("SupplementaryGroups");
  });
});

const SYSTEMD = unless(spawnSync("systemd-analyze", ["--version"]).status === 0, "no systemd-analyze");

describe.skipIf(SYSTEMD.isMissing)(`systemd-analyze${SYSTEMD.note}`, () => {
  it.each(["user", "system"] as const)("accepts the %s unit", (scope) => {
    const folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-unit-"));
    const file = path.join(folder, "daybreak.service");
    const command = [process.execPath, "/with a space/100%/daybreak.mjs", "serve"] as const;
    writeFileSync(file, unit({ scope, command, env: { SERVICE_LOG_FORMAT: "text" } }));
    // --man=no: the manual page is not installed.
    const { stdout, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", `--${scope}`, file], {
      encoding: "utf8",
      env: { ...process.env, XDG_RUNTIME_DIR: folder, SYSTEMD_LOG_LEVEL: "warning" },
    });
    rmSync(folder, { recursive: true });
    const aboutIt = `${stdout}${stderr}`.split("\n").filter((line) => line.includes("daybreak"));
    expect(aboutIt).toEqual([]);
  });
});
