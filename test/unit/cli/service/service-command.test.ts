import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startFakeDaemon } from "../fake-daemon.ts";
import { runCli } from "../run-cli.ts";

/** Fake systemctl that records its calls and simulates the state of a service. */
const SYSTEMCTL = `#!/bin/sh
echo "$*" >> "$FAKE/calls"
[ -e "$FAKE/refuses-$2" ] && { echo "Job failed." >&2; exit 1; }
case "$2" in
  show) [ -e "$FAKE/no-bus" ] && { echo "Failed to connect to bus" >&2; exit 1; }
    [ -e "$FAKE/enabled" ] && echo UnitFileState=enabled || echo UnitFileState=
    [ -e "$FAKE/running" ] && printf 'ActiveState=active\\nMainPID=4242\\n' || printf 'ActiveState=inactive\\nMainPID=0\\n' ;;
  enable) : > "$FAKE/enabled" ;;
  start|restart) : > "$FAKE/running" ;;
  disable) rm -f "$FAKE/enabled" "$FAKE/running" ;;
esac
`;

let home: string;
let fake: string;
let unit: string;

beforeEach(() => {
  home = mkdtempSync(path.join(os.tmpdir(), "daybreak-service-"));
  fake = path.join(home, "fake");
  unit = path.join(home, ".config", "systemd", "user", "daybreak.service");
  mkdirSync(fake);
  writeFileSync(path.join(fake, "systemctl"), SYSTEMCTL);
  chmodSync(path.join(fake, "systemctl"), 0o755);
  configure("");
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** Writes a configuration with an address at which no daemon of the user listens. */
function configure(toml: string, { port = 1, socket = path.join(home, "none.sock") } = {}): void {
  const folder = path.join(home, ".config", "daybreak");
  mkdirSync(folder, { recursive: true });
  const unusedAddress = `[http]\naddr = "127.0.0.1"\nport = ${port}\n`;
  writeFileSync(path.join(folder, "daybreak.toml"), `socket = "${socket}"\n${toml}${unusedAddress}`);
}

function service(args: readonly string[], env: Record<string, string> = {}) {
  const here = {
    HOME: home,
    XDG_CONFIG_HOME: path.join(home, ".config"),
    PATH: `${fake}:/usr/bin:/bin`,
    FAKE: fake,
  };
  return runCli(["service", ...args], { env: { ...here, ...env } });
}

/** Calls of systemctl since the last call of this function, except for queries. */
function changes(): string[] {
  const file = path.join(fake, "calls");
  const calls = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  rmSync(file, { force: true });
  return calls.filter((call) => !call.includes("show"));
}

const mark = (name: string): void => writeFileSync(path.join(fake, name), "");

describe.runIf(process.platform === "linux")("daybreak service", () => {
  it("installs a user unit and prints the next steps", async () => {
    const { code, stdout, stderr } = await service(["install"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain(`is installed and started: ${unit}`);
    expect(stdout).toContain("loginctl enable-linger");
    expect(changes()).toEqual([
      "--user daemon-reload",
      "--user enable daybreak.service",
      "--user start daybreak.service",
    ]);
    const text = readFileSync(unit, "utf8");
    // Paths with spaces are in quotation marks.
    expect(text).toMatch(/^ExecStart="?\/.*node\S* "?\/.+\/src\/launch\/daybreak\.mjs"? serve$/m);
    expect(text).toContain("SERVICE_LOG_FORMAT=text");
  });

  it("keeps an unchanged service running and restarts one whose unit has changed", async () => {
    await service(["install"]);
    changes();
    await service(["install"]);
    expect(changes()).toContain("--user start daybreak.service");
    configure(`drain_timeout = "5m"\n`);
    expect((await service(["status"])).stdout).toMatch(/Installed +yes, but out of date/);
    await service(["install"]);
    expect(changes()).toContain("--user restart daybreak.service");
    expect(readFileSync(unit, "utf8")).toContain("TimeoutStopSec=330");
  });

  it("removes only its own files", async () => {
    await service(["install"]);
    changes();
    const { code, stdout } = await service(["uninstall"]);
    expect(code).toBe(0);
    expect(stdout).toContain("Models and configuration are kept.");
    expect(changes()[0]).toBe("--user disable --now daybreak.service");
    expect(existsSync(unit)).toBe(false);
    expect(existsSync(path.join(home, ".config", "daybreak", "daybreak.toml"))).toBe(true);
    const again = await service(["uninstall", "--json"]);
    expect(JSON.parse(again.stdout)).toEqual({ removed: false, file: unit });
  });

  it("prints the state of the service", async () => {
    expect((await service(["status"])).stdout).toMatch(/Installed +no .*\nEnabled +no\nRunning +no\n/);
    await service(["install"]);
    expect((await service(["status"])).stdout).toMatch(
      /Installed +yes\nEnabled +yes\nRunning +yes, process 4242\n/,
    );
    expect(JSON.parse((await service(["status", "--json"])).stdout)).toMatchObject({
      installed: true,
      outdated: false,
      enabled: true,
      running: true,
      pid: 4242,
    });
  });

  it("changes nothing with --print", async () => {
    const { code, stdout } = await service(["install", "--print"]);
    expect(code).toBe(0);
    expect(stdout).toContain(unit);
    expect(stdout).toContain("Restart=on-failure");
    expect(stdout).toContain("systemctl --user enable daybreak.service");
    expect((await service(["uninstall", "--print"])).stdout).toContain(`rm ${unit}`);
    const system = await service(["install", "--system", "--print"]);
    expect(system.stdout).toContain("DynamicUser=yes");
    expect(changes()).toEqual([]);
    expect(existsSync(unit)).toBe(false);
  });

  it("passes --config as an absolute path and lists variables that the service does not get", async () => {
    const file = path.join(home, "own.toml");
    writeFileSync(file, `[log]\nformat = "json"\n[http]\nport = 1\n`);
    const { stdout } = await service(["install", "--config", file], {
      SERVICE_SOCKET: `${home}/none.sock`,
      HUB_TOKEN: "hf_secret",
    });
    expect(stdout).toContain(`but not for the service: SERVICE_SOCKET, HUB_TOKEN. Set them in ${file}.`);
    expect(stdout).toContain("It listens on all addresses and asks for no key.");
    const text = readFileSync(unit, "utf8");
    expect(text).toContain(` serve --config ${file}\n`);
    expect(text).not.toContain("hf_secret");
    expect(text).not.toContain("SERVICE_LOG_FORMAT");
  });

  it("refuses to install beside another daemon", async () => {
    await using daemon = await startFakeDaemon({ "GET /health": { status: "ok" } });
    configure("", { socket: "", port: Number(new URL(daemon.url).port) });
    const { code, stderr } = await service(["install"]);
    expect(code).toBe(5);
    expect(stderr).toContain("daybreak stop");
    expect(existsSync(unit)).toBe(false);
  });

  it("leaves a unit unchanged that it has not made", async () => {
    mkdirSync(path.dirname(unit), { recursive: true });
    writeFileSync(unit, "[Service]\nExecStart=/bin/true\n");
    for (const action of ["install", "uninstall"]) {
      const { code, stderr } = await service([action]);
      expect(code).toBe(5);
      expect(stderr).toContain("was not made by this command");
    }
    expect(changes()).toEqual([]);
  });

  it("writes nothing with an invalid configuration or without a service manager", async () => {
    configure("nonsense = 1\n");
    expect(await service(["install"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("nonsense"),
    });
    configure("");
    mark("no-bus");
    expect(await service(["install"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("connect to bus"),
    });
    rmSync(path.join(fake, "systemctl"));
    const { code, stderr } = await service(["install", "--json"], { PATH: fake });
    expect(code).toBe(1);
    expect(JSON.parse(stderr).error).toMatchObject({ code: "service_failed" });
    expect(existsSync(unit)).toBe(false);
  });

  it("reports the failed command", async () => {
    mark("refuses-start");
    const { code, stderr } = await service(["install"]);
    expect(code).toBe(1);
    expect(stderr).toContain('"systemctl --user start daybreak.service" failed');
    expect(stderr).toContain("Job failed.");
    rmSync(path.join(fake, "refuses-start"));
    expect((await service(["install"])).code).toBe(0);
    mark("refuses-disable");
    expect((await service(["uninstall"])).stderr).toContain("cannot be stopped");
    expect(existsSync(unit)).toBe(true);
  });
});
