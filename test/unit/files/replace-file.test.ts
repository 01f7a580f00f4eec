import { expect, it } from "vitest";
import { replaceFile } from "../../../src/files/replace-file.ts";

/** A rename that fails with these codes before it works. */
function failing(...codes: string[]) {
  const calls: [unknown, unknown][] = [];
  return {
    calls,
    rename: async (from: unknown, to: unknown) => {
      calls.push([from, to]);
      const code = codes.shift();
      if (code !== undefined) throw Object.assign(new Error(code), { code });
    },
    sleep: async () => {},
  };
}

it("waits on Windows until a scanner lets go of the file", async () => {
  const { calls, ...rest } = failing("EPERM", "EBUSY", "EACCES");
  await replaceFile("a", "b", { platform: "win32", ...rest });
  expect(calls).toHaveLength(4);
});

it("does not wait for ever", async () => {
  const { calls: _, ...rest } = failing(...Array.from({ length: 50 }, () => "EPERM"));
  await expect(replaceFile("a", "b", { platform: "win32", ...rest })).rejects.toMatchObject({
    code: "EPERM",
  });
});

it.each([
  ["win32", "ENOENT"],
  ["linux", "EPERM"],
  ["darwin", "EACCES"],
] as const)("fails at once on %s with %s", async (platform, code) => {
  const { calls, ...rest } = failing(code);
  await expect(replaceFile("a", "b", { platform, ...rest })).rejects.toMatchObject({ code });
  expect(calls).toHaveLength(1);
});
