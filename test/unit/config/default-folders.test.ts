import os from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { defaultSocket } from "../../../src/config/schema.ts";
import { defaultCacheDir } from "../../../src/launch/default-cache-dir.mjs";

const home = os.homedir();

it.each([
  ["win32", { LOCALAPPDATA: "C:\\Users\\ada\\Local" }, path.join("C:\\Users\\ada\\Local", "daybreak")],
  ["win32", { LOCALAPPDATA: "" }, path.join(home, "AppData", "Local", "daybreak")],
  ["win32", {}, path.join(home, "AppData", "Local", "daybreak")],
  ["darwin", {}, path.join(home, "Library", "Caches", "daybreak")],
  ["linux", { XDG_CACHE_HOME: "/x" }, path.join("/x", "daybreak")],
  ["linux", {}, path.join(home, ".cache", "daybreak")],
] as const)("the cache folder on %s with %j is %s", (platform, env, folder) => {
  expect(defaultCacheDir(env, platform)).toBe(folder);
});

it("on Windows the socket is a named pipe of the user's own", () => {
  expect(defaultSocket({}, "win32")).toBe(`\\\\.\\pipe\\daybreak-${os.userInfo().username}`);
});
