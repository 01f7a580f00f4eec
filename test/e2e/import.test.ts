import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addToHubCache, addToOllama } from "../support/model-stores.ts";
import { sharedDaemon } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { runCli } from "../unit/cli/run-cli.ts";

/** Folder on another file system on most Linux systems, from which files cannot be cloned or linked. */
const OTHER_DISK = "/dev/shm";

/** Creates a folder there; returns the other folder without permission. */
function folderOnOtherDisk(otherwise: string): string {
  try {
    return mkdtempSync(path.join(OTHER_DISK, "daybreak-import-"));
  } catch {
    return otherwise;
  }
}

let daemon: TestDaemon;
let folder: string;
let otherFileSystem: string;
beforeAll(async () => {
  daemon = await sharedDaemon();
  folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-import-"));
  otherFileSystem = folderOnOtherDisk(folder);
});
afterAll(() => {
  for (const each of [folder, otherFileSystem]) rmSync(each, { recursive: true, force: true });
});

async function command(...args: string[]) {
  return await runCli(args, { env: { SERVICE_SOCKET: daemon.socket, SERVICE_HTTP_PORT: "1" } });
}

test("a model of Ollama is imported, answers in a sandboxed engine, and is deleted", async () => {
  const store = path.join(otherFileSystem, "ollama");
  const weights = addToOllama(store, {
    name: "tiny:1b",
    system: "Be brief.",
    params: { num_predict: 2 },
    config: { parser: "tiny" },
  });
  const isOther = statSync(otherFileSystem).dev !== statSync(daemon.cacheDir).dev;
  const { code, stdout, stderr } = await command("import", "--from", store);
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining("1 imported.") });
  expect(stdout).toMatch(
    isOther ? /^tiny:1b .* used where it is +imported/m : /^tiny:1b .* (?:linked|cloned) +imported/m,
  );
  const answer = await command("run", "-m", "tiny:1b", "Hello");
  expect(answer.code).toBe(0);
  expect((await command("import", "--from", store)).stdout).toMatch(/there already/);
  expect((await command("rm", "tiny:1b")).code).toBe(0);
  expect(existsSync(weights)).toBe(true);
});

test("models of the Hugging Face cache are linked and unlinked", async () => {
  const hub = path.join(folder, "hub");
  addToHubCache(hub, "ada/tiny-GGUF", "imported-Q8_0.gguf");
  expect((await command("import", "--from", hub)).stdout).toMatch(
    /^imported-Q8_0 .* (?:linked|cloned) +imported/m,
  );
  const { stdout } = await command("show", "imported-Q8_0", "--json");
  const { path: file }: { path: string } = JSON.parse(stdout);
  expect(file.startsWith(daemon.cacheDir)).toBe(true);
  await command("rm", "imported-Q8_0");
  expect(existsSync(file)).toBe(false);
});

test("a missing folder and a client behind a proxy are refused", async () => {
  const missing = await command("import", "--from", path.join(folder, "nothing"));
  expect(missing.code).not.toBe(0);
  expect(missing.stderr).toMatch(/There is no folder/);
  const headers = { "content-type": "application/json", "x-forwarded-for": "192.0.2.1" };
  const body = JSON.stringify({ from: folder });
  const answer = await fetch(`${daemon.url}/api/models/import`, { method: "POST", headers, body });
  expect([answer.status, await answer.json()]).toMatchObject([400, { error: { code: "path_not_allowed" } }]);
});
