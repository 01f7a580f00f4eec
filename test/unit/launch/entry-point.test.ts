import { describe, expect, it } from "vitest";
import { findEntryPoint } from "../../../src/launch/entry-point.mjs";

const folder = new URL("file:///app/");
const having =
  (...files: string[]) =>
  (file: URL) =>
    files.includes(file.pathname);

describe("findEntryPoint", () => {
  it("runs the sources in a clone of the repository, built or not", () => {
    const exists = having("/app/src/cli/main.ts", "/app/dist/cli/main.js");
    expect(findEntryPoint(folder, exists)?.pathname).toBe("/app/src/cli/main.ts");
  });

  it("runs the built program in the published package", () => {
    expect(findEntryPoint(folder, having("/app/dist/cli/main.js"))?.pathname).toBe("/app/dist/cli/main.js");
  });

  it("finds nothing where neither is there", () => {
    expect(findEntryPoint(folder, having())).toBeUndefined();
  });
});
