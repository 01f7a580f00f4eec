import path from "node:path";
import { describe, expect, it } from "vitest";
import { findInstallation, stablePath } from "../../../../src/cli/install/installation.ts";

/** Installation of a package in `root` if these files exist. */
function find(root: string, ...files: string[]) {
  return findInstallation(root, (file) => files.includes(file.replaceAll(path.sep, "/")));
}

describe("findInstallation", () => {
  it.each([
    ["a clone", "/src/daybreak", ["/src/daybreak/.git"], "clone", "git pull && npm ci"],
    ["npm, global", "/usr/lib/node_modules/daybreak", [], "global", "npm install --global daybreak@latest"],
    [
      "pnpm, global",
      "/home/ada/.local/share/pnpm/global/5/node_modules/daybreak",
      ["/home/ada/.local/share/pnpm/global/5/package.json"],
      "global",
      "pnpm add --global daybreak@latest",
    ],
    [
      "bun, global",
      "/home/ada/.bun/install/global/node_modules/daybreak",
      ["/home/ada/.bun/install/global/package.json"],
      "global",
      "bun add --global daybreak@latest",
    ],
    [
      "yarn, global",
      "/home/ada/.config/yarn/global/node_modules/daybreak",
      ["/home/ada/.config/yarn/global/package.json"],
      "global",
      "yarn global add daybreak@latest",
    ],
    [
      "npm in a project",
      "/app/node_modules/daybreak",
      ["/app/package.json"],
      "project",
      "npm install daybreak@latest",
    ],
    [
      "pnpm in a project",
      "/app/node_modules/daybreak",
      ["/app/package.json", "/app/pnpm-lock.yaml"],
      "project",
      "pnpm add daybreak@latest",
    ],
    [
      "yarn in a project",
      "/app/node_modules/daybreak",
      ["/app/package.json", "/app/yarn.lock"],
      "project",
      "yarn add daybreak@latest",
    ],
    [
      "bun in a project",
      "/app/node_modules/daybreak",
      ["/app/package.json", "/app/bun.lock"],
      "project",
      "bun add daybreak@latest",
    ],
    [
      "npx",
      "/home/ada/.npm/_npx/1f2e/node_modules/daybreak",
      ["/home/ada/.npm/_npx/1f2e/package.json"],
      "npx",
      "npx daybreak@latest",
    ],
    ["an archive", "/opt/daybreak-1.0.0", [], "archive", undefined],
    ["a container", "/opt/daybreak", ["/.dockerenv"], "container", undefined],
    [
      "a clone in a container",
      "/src/daybreak",
      ["/.dockerenv", "/src/daybreak/.git"],
      "clone",
      "git pull && npm ci",
    ],
  ])("recognizes %s", (_what, root, files, kind, command) => {
    const found = find(root, ...files);
    expect([found.kind, found.command]).toEqual([kind, command]);
    expect(found.command ?? found.advice).toBeTruthy();
  });

  it("advises to rebuild the image for a package in a container", () => {
    const found = find("/usr/lib/node_modules/daybreak", "/run/.containerenv");
    expect(found).toMatchObject({
      kind: "global",
      advice: expect.stringContaining("where its image is built"),
    });
  });

  it("recognizes an archive that was unpacked in a container", () => {
    const there = new Set([path.join("/opt/daybreak-0.1.0", "LICENSES.txt"), "/.dockerenv"]);
    expect(findInstallation("/opt/daybreak-0.1.0", (file) => there.has(file)).kind).toBe("archive");
  });

  it("recognizes paths of Windows", () => {
    expect(find("C:\\Users\\Ada\\AppData\\Local\\npm-cache\\_npx\\1f\\node_modules\\daybreak").kind).toBe(
      "npx",
    );
  });
});

describe("stablePath", () => {
  const links: Readonly<Record<string, string>> = {
    "/opt/homebrew/opt/node/bin/node": "/opt/homebrew/Cellar/node/26.1.0/bin/node",
    "/app/node_modules/daybreak/dist/x.mjs":
      "/app/node_modules/.pnpm/daybreak@1.0.0_zod@4/node_modules/daybreak/dist/x.mjs",
  };
  const realPath = (file: string): string => links[file] ?? file;

  it.each(Object.entries(links))("is %s for %s", (lasting, real) => {
    expect(stablePath(real, realPath)).toBe(lasting);
  });

  it("returns the given path if the other one is missing or another file", () => {
    const file = "/opt/homebrew/Cellar/node/26.1.0/bin/node";
    const missing = (name: string): string => {
      if (name !== file) throw new Error("ENOENT");
      return name;
    };
    expect(stablePath(file, missing)).toBe(file);
    expect(stablePath(file, (name) => name)).toBe(file);
    expect(stablePath("/usr/bin/node", missing)).toBe("/usr/bin/node");
  });
});
