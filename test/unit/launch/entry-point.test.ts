import { describe, expect, it } from "vitest";
import { findEntryPoint } from "../../../src/launch/entry-point.mjs";

const having =
  (...files: string[]) =>
  (file: URL) =>
    files.includes(file.pathname);

describe("findEntryPoint", () => {
  it("runs the sources in a clone of the repository", () => {
    const exists = having("/app/src/cli/main.ts", "/app/dist/src/cli/main.js");
    expect(findEntryPoint("file:///app/src/launch/daybreak.mjs", exists)?.pathname).toBe(
      "/app/src/cli/main.ts",
    );
  });

  it("runs the built program in the published package", () => {
    const exists = having("/app/dist/src/cli/main.js");
    expect(findEntryPoint("file:///app/dist/src/launch/daybreak.mjs", exists)?.pathname).toBe(
      "/app/dist/src/cli/main.js",
    );
  });

  it("finds nothing where neither is there", () => {
    expect(findEntryPoint("file:///app/src/launch/daybreak.mjs", having())).toBeUndefined();
  });
});
