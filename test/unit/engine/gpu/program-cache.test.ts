import fs from "node:fs";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { programCacheVariables } from "../../../../src/engine/gpu/program-cache.ts";
import { temporaryFolder } from "../../../support/engine-fixture.ts";

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

test("drivers cache programs in a private folder of limited size", () => {
  const cache = path.join(folder, "new", "gpu");
  const variables = programCacheVariables(cache, {}, "linux");
  expect(variables).toMatchObject({
    MESA_SHADER_CACHE_DIR: cache,
    MESA_SHADER_CACHE_MAX_SIZE: "256M",
    __GL_SHADER_DISK_CACHE_PATH: cache,
    __GL_SHADER_DISK_CACHE_SIZE: "268435456",
  });
  // Windows has no such permissions.
  const others = process.platform === "win32" ? 0 : 0o077;
  expect(fs.statSync(cache).mode & others).toBe(0);
});

test("the user's variables for a driver are not changed", () => {
  const variables = programCacheVariables(
    path.join(folder, "a"),
    { MESA_SHADER_CACHE_DISABLE: "true" },
    "linux",
  );
  expect(Object.keys(variables).filter((name) => name.startsWith("MESA_"))).toEqual([]);
  expect(variables["__GL_SHADER_DISK_CACHE_PATH"]).toBe(path.join(folder, "a"));
});

test("no variables are set on other systems than Linux, nor for a folder that cannot be created", () => {
  expect(programCacheVariables(path.join(folder, "b"), {}, "win32")).toEqual({});
  expect(fs.existsSync(path.join(folder, "b"))).toBe(false);
  const file = path.join(folder, "file");
  fs.writeFileSync(file, "");
  expect(programCacheVariables(path.join(file, "gpu"), {}, "linux")).toEqual({});
});
