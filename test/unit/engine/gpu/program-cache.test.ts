import fs from "node:fs";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { programCacheVariables } from "../../../../src/engine/gpu/program-cache.ts";
import { temporaryFolder } from "../../../support/engine-fixture.ts";

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

test("drivers keep programs in a folder that only this user can read, and not without end", () => {
  const cache = path.join(folder, "new", "gpu");
  const variables = programCacheVariables(cache, {}, "linux");
  expect(variables).toMatchObject({
    MESA_SHADER_CACHE_DIR: cache,
    MESA_SHADER_CACHE_MAX_SIZE: "256M",
    __GL_SHADER_DISK_CACHE_PATH: cache,
    __GL_SHADER_DISK_CACHE_SIZE: "268435456",
  });
  // Windows has no such modes.
  const others = process.platform === "win32" ? 0 : 0o077;
  expect(fs.statSync(cache).mode & others).toBe(0);
});

test("what the user has set for a driver is kept", () => {
  const variables = programCacheVariables(
    path.join(folder, "a"),
    { MESA_SHADER_CACHE_DISABLE: "true" },
    "linux",
  );
  expect(Object.keys(variables).filter((name) => name.startsWith("MESA_"))).toEqual([]);
  expect(variables["__GL_SHADER_DISK_CACHE_PATH"]).toBe(path.join(folder, "a"));
});

test("nothing is set where drivers have places of their own, nor for a folder that cannot be created", () => {
  expect(programCacheVariables(path.join(folder, "b"), {}, "win32")).toEqual({});
  expect(fs.existsSync(path.join(folder, "b"))).toBe(false);
  const file = path.join(folder, "file");
  fs.writeFileSync(file, "");
  expect(programCacheVariables(path.join(file, "gpu"), {}, "linux")).toEqual({});
});
