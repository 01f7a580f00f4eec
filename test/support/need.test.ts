import { describe, expect, test, vi } from "vitest";
import { both, need, unless } from "./need.ts";

describe("a part that tests need", () => {
  test("is named in their titles where the machine lacks it", () => {
    vi.stubEnv("CI", "");
    expect(need("ps", false)).toEqual({ isMissing: true, reason: "no ps", note: " [skipped: no ps]" });
  });

  test("leaves their titles alone where it is there", () => {
    expect(need("ps", true)).toEqual({ isMissing: false, reason: "", note: "" });
  });

  test.skipIf(process.platform !== "linux")("is an error with its name where CI lacks it", () => {
    vi.stubEnv("CI", "true");
    expect(() => need("ps", false)).toThrow("CI has no ps");
  });

  test("of two is the one that is missing", () => {
    const [here, missing] = [unless(true, "never"), unless(false, "no ps")];
    expect([both(here, missing), both(missing, here)]).toEqual([missing, missing]);
    expect(both(here, here).isMissing).toBe(false);
  });
});
