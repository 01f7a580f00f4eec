import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defaultSocket } from "../../../src/config/default-paths.ts";
import { findCacheDir, usualCacheDir } from "../../../src/launch/default-cache-dir.mjs";
import { canUseFolder, privateTemporaryFolder } from "../../../src/launch/own-folder.mjs";

const home = os.tmpdir();
const uid = process.getuid?.();

it.each([
  ["win32", { LOCALAPPDATA: "C:\\Users\\ada\\Local" }, path.join("C:\\Users\\ada\\Local", "daybreak")],
  ["win32", { LOCALAPPDATA: "" }, path.join(home, "AppData", "Local", "daybreak")],
  ["win32", {}, path.join(home, "AppData", "Local", "daybreak")],
  ["darwin", { XDG_CACHE_HOME: "/x" }, path.join(home, "Library", "Caches", "daybreak")],
  ["linux", { XDG_CACHE_HOME: "/x" }, path.join("/x", "daybreak")],
  ["linux", {}, path.join(home, ".cache", "daybreak")],
] as const)("the cache folder on %s with %j is %s", (platform, env, folder) => {
  expect(usualCacheDir(env, platform, home)).toBe(folder);
});

it("the default socket on Windows is a named pipe of the user", () => {
  expect(defaultSocket({}, "win32")).toBe(`\\\\.\\pipe\\daybreak-${os.userInfo().username}`);
});

it.skipIf(uid === undefined)("a default socket with a too long path is in a private temporary folder", () => {
  const short = defaultSocket({ XDG_CACHE_HOME: home }, "linux");
  expect(short).toBe(path.join(home, "daybreak", "run", "daybreak.sock"));
  const long = defaultSocket({ XDG_CACHE_HOME: path.join(home, "x".repeat(100)) }, "linux");
  expect(long).toBe(path.join(privateTemporaryFolder() ?? "", "daybreak.sock"));
});

describe.skipIf(uid === undefined)("without a usable default cache folder", () => {
  const name = `daybreak-${uid}`;
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), "daybreak-folders-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** Creates a shared folder for temporary files. */
  function sharedFolder(kind: string, mode = 0o1777): string {
    const made = path.join(folder, kind);
    mkdirSync(made);
    chmodSync(made, mode);
    return made;
  }

  it.each([
    ["there is no home folder", undefined, /this account has no home folder/],
    ["the default one cannot be created", "/dev/null/cache", /\/dev\/null\/cache cannot be used/],
  ])("%s: the cache is in a private temporary folder, with a warning", (kind, usual, problem) => {
    const shared = sharedFolder(kind.replaceAll(" ", "-"));
    const found = findCacheDir({}, () => usual, [shared]);
    expect(found).toEqual({ folder: path.join(shared, name), problem: expect.stringMatching(problem) });
    expect(found.problem).toMatch(/set SERVICE_CACHE_DIR/);
    expect(lstatSync(found.folder).mode & 0o777).toBe(0o700);
    expect(findCacheDir({}, () => usual, [shared]).folder).toBe(found.folder);
  });

  it("privateTemporaryFolder refuses folders that others can open, and links", () => {
    const open = sharedFolder("open");
    mkdirSync(path.join(open, name));
    const linked = sharedFolder("linked");
    symlinkSync(folder, path.join(linked, name));
    const unprotected = sharedFolder("unprotected", 0o777);
    const good = sharedFolder("good");
    expect(privateTemporaryFolder([open, linked, unprotected])).toBeUndefined();
    expect(privateTemporaryFolder([open, linked, unprotected, good])).toBe(path.join(good, name));
    expect(existsSync(path.join(unprotected, name))).toBe(false);
  });

  it("canUseFolder accepts folders that exist or can be created", () => {
    const there = sharedFolder("there");
    const folders = [there, path.join(there, "a", "b"), "/dev/null", "/dev/null/a"];
    expect(folders.map((each) => canUseFolder(each))).toEqual([true, true, false, false]);
  });
});
