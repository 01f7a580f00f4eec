import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { gpuGroups } from "../../../../src/cli/service/find-manager.ts";
import { findInaccessiblePath, serviceSettings } from "../../../../src/cli/service/install-service.ts";
import { temporaryFolder } from "../../models/temporary-folder.ts";

describe.skipIf(process.platform === "win32")("serviceSettings", () => {
  it("uses the account's configuration file without the shell's variables", async () => {
    const folder = await temporaryFolder();
    const file = path.join(folder, "daybreak", "daybreak.toml");
    mkdirSync(path.dirname(file));
    writeFileSync(file, "drain_timeout = -1\n");
    const env = { XDG_CONFIG_HOME: folder, SERVICE_DRAIN_TIMEOUT: "1s", SERVICE_HTTP_PORT: "" };
    expect(serviceSettings({ env, scope: "user", file: undefined })).toMatchObject({
      file,
      args: [],
      stopSeconds: Number.POSITIVE_INFINITY,
      env: { SERVICE_LOG_FORMAT: "text" },
      lostVariables: ["SERVICE_DRAIN_TIMEOUT"],
    });
  });

  it("uses the system's folders for a system service", () => {
    const env = { XDG_CONFIG_HOME: "/home/ada/.config", SERVICE_CACHE_DIR: "/home/ada/models" };
    const settings = serviceSettings({ env, scope: "system", file: undefined });
    expect(settings.file).toBe("/etc/daybreak/daybreak.toml");
    expect(settings.config.cache_dir).toBe("/var/cache/daybreak");
    expect(settings.env).toMatchObject({
      SERVICE_CACHE_DIR: "/var/cache/daybreak",
      SERVICE_SOCKET: "/run/daybreak/daybreak.sock",
      XDG_CONFIG_HOME: "/etc",
    });
  });

  it("passes the file of SERVICE_CONFIG as a flag", async () => {
    const file = path.join(await temporaryFolder(), "own.toml");
    writeFileSync(file, "");
    const { args } = serviceSettings({ env: { SERVICE_CONFIG: file }, scope: "user", file: undefined });
    expect(args).toEqual(["--config", file]);
  });
});

describe("findInaccessiblePath", () => {
  const modes: Readonly<Record<string, number>> = { "/root": 0o700, "/opt/secret.mjs": 0o600 };
  const modeOf = (file: string): number => modes[file] ?? 0o755;

  it.each([
    ["/opt/daybreak/daybreak.mjs", undefined],
    ["/root/daybreak/daybreak.mjs", "/root"],
    ["/opt/secret.mjs", "/opt/secret.mjs"],
  ])("of %s is %s", (file, closed) => {
    expect(findInaccessiblePath(file, modeOf)).toBe(closed);
  });
});

it("gpuGroups returns the GPU groups of the system", async () => {
  const file = path.join(await temporaryFolder(), "group");
  writeFileSync(file, "root:x:0:\nrender:x:105:\nvideos:x:44:\n");
  expect(gpuGroups(file)).toEqual(["render"]);
  expect(gpuGroups(`${file}.none`)).toEqual([]);
});
