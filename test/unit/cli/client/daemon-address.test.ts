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

/** Address with this environment, a configuration file and these options. */
function address(env: NodeJS.ProcessEnv, options: Parameters<typeof daemonAddress>[1] = {}) {
  const { endpoints, apiKey, isExplicit } = daemonAddress({ SERVICE_CONFIG: file, ...env }, options);
  return { at: endpoints.map(describeEndpoint), apiKey, isExplicit };
}

describe("daemonAddress", () => {
  it("uses the endpoints and the key of the configuration", () => {
    expect(address({})).toEqual({
      at: [`ipc://${SOCKETS.file}`, "http://127.0.0.1:9000", "http://[::1]:9000"],
      apiKey: "local",
      isExplicit: false,
    });
  });

  it("prefers --socket to SERVICE_SOCKET and SERVICE_URL", () => {
    const env = { SERVICE_SOCKET: SOCKETS.env, SERVICE_URL: "http://box" };
    expect(address(env, { socket: SOCKETS.flag }).at[0]).toBe(`ipc://${SOCKETS.flag}`);
  });

  it("uses SERVICE_URL, or --url, without the local key", () => {
    expect(address({ SERVICE_URL: "http://box:1" })).toEqual({
      at: ["http://box:1"],
      apiKey: undefined,
      isExplicit: true,
    });
    expect(address({ SERVICE_URL: "http://box:1" }, { url: "http://box:2" }).at).toEqual(["http://box:2"]);
  });

  it("adds the configured port to an address without one", () => {
    expect(address({}, { url: "box" }).at).toEqual(["http://box:9000"]);
  });

  it("sends SERVICE_API_KEY to any daemon", () => {
    expect(address({ SERVICE_API_KEY: "mine" }).apiKey).toBe("mine");
    expect(address({ SERVICE_API_KEY: "mine" }, { url: "box" }).apiKey).toBe("mine");
  });

  it.each([
    ["an invalid address", { url: "ftp://box" }, "is not a daemon address"],
    ["a missing configuration file", { config: "/nonexistent.toml" }, path.resolve("/nonexistent.toml")],
  ])("throws a usage error for %s", (_what, options, message) => {
    expect(() => daemonAddress({}, options)).toThrow(
      expect.objectContaining({ exitCode: 2, message: expect.stringContaining(message) }),
    );
  });
});
