import os from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { defaultCacheDir } from "../../../src/launch/default-cache-dir.mjs";
import { compileCacheFolder } from "../../../src/launch/keep-compiled-code.mjs";

it.each([
  ["the platform's cache folder", [], {}, defaultCacheDir({})],
  ["the folder of the environment variable", [], { SERVICE_CACHE_DIR: "/env" }, path.resolve("/env")],
  [
    "that of the flag before it",
    ["serve", "--cache-dir", "/flag"],
    { SERVICE_CACHE_DIR: "/env" },
    path.resolve("/flag"),
  ],
  [
    "the folder of the last flag",
    ["serve", "--cache-dir=/first", "--cache-dir=/last"],
    {},
    path.resolve("/last"),
  ],
  ["one in the home folder", [], { SERVICE_CACHE_DIR: "~/models" }, path.join(os.homedir(), "models")],
  ["a relative one", ["serve", "--cache-dir", "here"], {}, path.resolve("here")],
  [
    "the platform's where nothing is named",
    ["serve", "--cache-dir"],
    { SERVICE_CACHE_DIR: "" },
    defaultCacheDir({}),
  ],
])("the compile cache is in %s", (_, args, env, folder) => {
  expect(compileCacheFolder(args, env)).toBe(path.join(folder, "code"));
});
