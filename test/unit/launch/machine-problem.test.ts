import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { machineProblem, wasmProblem } from "../../../src/launch/machine-problem.mjs";

const LAUNCHER = fileURLToPath(new URL("../../../src/launch/daybreak.mjs", import.meta.url));

describe("a machine", () => {
  it.each(["x64", "arm64", "riscv64", "loong64", "ppc64"])("with %s, little-endian, is supported", (arch) => {
    expect(machineProblem({ arch, endianness: "LE" })).toBeUndefined();
  });

  it.each([
    ["arm", "LE", /needs a 64-bit Node on a 64-bit system, and this one is for 32 bits \(arm\)/],
    ["ia32", "LE", /32 bits \(ia32\)/],
    ["s390x", "BE", /does not run on this processor \(s390x\): it needs one that is little-endian/],
    ["ppc64", "BE", /\(ppc64\).*little-endian/],
  ])("with %s (%s) is not supported, with an explanation", (arch, endianness, problem) => {
    expect(machineProblem({ arch, endianness })).toMatch(problem);
  });
});

describe("a Node that is new enough", () => {
  it("has the WebAssembly features that models need", () => {
    expect(wasmProblem()).toBeUndefined();
  });

  it("without JSPI or memory64 is not supported, with an explanation", () => {
    const [yes, no] = [(): boolean => true, (): boolean => false];
    const Suspending = Object;
    expect(wasmProblem({ validate: yes })).toMatch(/lacks .*JSPI/);
    expect(wasmProblem(Object.assign({ validate: no }, { Suspending }))).toMatch(/lacks .*memory64/);
    expect(wasmProblem(Object.assign({ validate: yes }, { Suspending }))).toBeUndefined();
  });

  it("without WebAssembly is not supported, which is reported before other modules are loaded", () => {
    const args = ["--jitless", LAUNCHER, "--version"];
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect(status).toBe(1);
    expect(stderr).toMatch(/^Models run in WebAssembly, which this Node has switched off: .*\n$/);
  });
});
