import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { daemonAddress } from "../../../../src/cli/client/daemon-address.ts";
import { describeEndpoint } from "../../../../src/cli/client/send-request.ts";
import { ipcAddress } from "../../../support/ipc-address.ts";

const SOCKETS = {
  file: ipcAddress("/run", "file"),
  env: ipcAddress("/run", "env"),
  flag: ipcAddress("/run", "flag"),
};

let folder: string;
let file: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-address-"));
  file = path.join(folder, "daybreak.toml");
  writeFileSync(file, `api_keys = ["local"]\nsocket = '${SOCKETS.file}'\n[http]\nport = 9000\n`);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Endpoints and key with this environment (a configuration file included) and these options. */
function address(env: NodeJS.ProcessEnv, options: Parameters<typeof daemonAddress>[1] = {}) {
  const { endpoints, apiKey, named } = daemonAddress({ SERVICE_CONFIG: file, ...env }, options);
  return { at: endpoints.map(describeEndpoint), apiKey, named };
}

describe("daemonAddress", () => {
  it("is where the configuration puts the daemon, with its key", () => {
    expect(address({})).toEqual({
      at: [`ipc://${SOCKETS.file}`, "http://127.0.0.1:9000", "http://[::1]:9000"],
      apiKey: "local",
      named: false,
    });
  });

  it("is at --socket rather than at SERVICE_SOCKET or SERVICE_URL", () => {
    const env = { SERVICE_SOCKET: SOCKETS.env, SERVICE_URL: "http://box" };
    expect(address(env, { socket: SOCKETS.flag }).at[0]).toBe(`ipc://${SOCKETS.flag}`);
  });

  it("is at SERVICE_URL, and at --url before that; the local key is not sent there", () => {
    expect(address({ SERVICE_URL: "http://box:1" })).toEqual({
      at: ["http://box:1"],
      apiKey: undefined,
      named: true,
    });
    expect(address({ SERVICE_URL: "http://box:1" }, { url: "http://box:2" }).at).toEqual(["http://box:2"]);
  });

  it("takes the port of the configuration for an address without one", () => {
    expect(address({}, { url: "box" }).at).toEqual(["http://box:9000"]);
  });

  it("takes SERVICE_API_KEY for any daemon", () => {
    expect(address({ SERVICE_API_KEY: "mine" }).apiKey).toBe("mine");
    expect(address({ SERVICE_API_KEY: "mine" }, { url: "box" }).apiKey).toBe("mine");
  });

  it.each([
    ["a wrong address", { url: "ftp://box" }, "is not a daemon address"],
    [
      "a configuration file that is not there",
      { config: "/nonexistent.toml" },
      path.resolve("/nonexistent.toml"),
    ],
  ])("is a usage error with %s", (_what, options, message) => {
    expect(() => daemonAddress({}, options)).toThrow(
      expect.objectContaining({ exitCode: 2, message: expect.stringContaining(message) }),
    );
  });
});
