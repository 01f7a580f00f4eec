import { expect, test } from "vitest";
import { missingDawn } from "../../../../src/engine/gpu/find-dawn.ts";

test("names the package of the platform and how to add it", () => {
  expect(missingDawn({ platform: "win32", arch: "arm64" })).toMatch(
    /^The optional package @daybreak-llm\/dawn-win32-arm64, .* npm install @daybreak-llm\/dawn-win32-arm64 /,
  );
});

test("says so for a platform that Dawn is not built for", () => {
  expect(missingDawn({ platform: "linux", arch: "riscv64" })).toBe(
    "Dawn, through which Daybreak uses GPUs, is not available for linux on riscv64.",
  );
});
