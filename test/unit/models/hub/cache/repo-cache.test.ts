import { lstat, mkdir, readdir, readFile, readlink, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { linkInSnapshot } from "../../../../../src/models/hub/cache/repo-cache.ts";
import { FILES_HAVE_LINKS } from "../../../../support/links.ts";
import { temporaryFolder } from "../../temporary-folder.ts";

async function scene() {
  const root = await temporaryFolder();
  const blob = path.join(root, "blobs", "digest");
  const target = path.join(root, "snapshots", "commit", "deep", "x.gguf");
  await mkdir(path.dirname(blob));
  await writeFile(blob, "content");
  return { blob, target, next: path.join(root, ".next") };
}

const refused = () => Promise.reject(Object.assign(new Error("operation not permitted"), { code: "EPERM" }));

describe("linkInSnapshot()", () => {
  it.skipIf(!FILES_HAVE_LINKS)("creates a relative link, so that the cache can be moved", async () => {
    const { blob, target, next } = await scene();

    await linkInSnapshot(blob, target, next);

    expect(await readlink(target)).toBe(path.join("..", "..", "..", "blobs", "digest"));
  });

  it("replaces an existing file and leaves no temporary one", async () => {
    const { blob, target, next } = await scene();
    await mkdir(path.dirname(target), { recursive: true });
    await writeFile(target, "half a fi");

    await linkInSnapshot(blob, target, next);

    expect(await readFile(target, "utf8")).toBe("content");
    expect(await readdir(path.dirname(target))).toEqual(["x.gguf"]);
  });

  it("replaces the temporary file of a killed process", async () => {
    const { blob, target, next } = await scene();
    await writeFile(next, "");

    await linkInSnapshot(blob, target, next);

    expect(await readFile(target, "utf8")).toBe("content");
    expect(await readdir(path.dirname(next))).toEqual(["blobs", "snapshots"]);
  });

  it("creates a hard link where symlinks are not allowed", async () => {
    const { blob, target, next } = await scene();

    await linkInSnapshot(blob, target, next, refused);

    expect((await lstat(target)).isFile()).toBe(true);
    expect((await stat(target)).ino).toBe((await stat(blob)).ino);
    expect(await readdir(path.dirname(target))).toEqual(["x.gguf"]);
  });

  it("may create the same link twice", async () => {
    const { blob, target, next } = await scene();
    await linkInSnapshot(blob, target, next, refused);

    await linkInSnapshot(blob, target, next, refused);

    expect(await readdir(path.dirname(target))).toEqual(["x.gguf"]);
  });

  it("moves the blob where hard links are not supported either", async () => {
    const { blob, target, next } = await scene();

    await linkInSnapshot(blob, target, next, refused, refused);

    expect(await readFile(target, "utf8")).toBe("content");
    expect(await readdir(path.dirname(blob))).toEqual([]);
  });
});
