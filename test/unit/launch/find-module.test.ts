import { describe, expect, it } from "vitest";
import { findModule } from "../../../src/launch/choose-runtime.mjs";

const having =
  (...files: string[]) =>
  (file: URL) =>
    files.includes(file.pathname);

describe("findModule", () => {
  it("finds the sources in a clone of the repository", () => {
    const exists = having("/app/src/cli/main.ts", "/app/dist/src/cli/main.js");
    expect(findModule("../cli/main", "file:///app/src/launch/daybreak.mjs", exists)?.pathname).toBe(
      "/app/src/cli/main.ts",
    );
  });

  it("finds the built program in the published package", () => {
    const exists = having("/app/dist/src/cli/main.js");
    expect(findModule("../cli/main", "file:///app/dist/src/launch/daybreak.mjs", exists)?.pathname).toBe(
      "/app/dist/src/cli/main.js",
    );
  });

  it("finds nothing if both are missing", () => {
    expect(findModule("../cli/main", "file:///app/src/launch/daybreak.mjs", having())).toBeUndefined();
  });
});
