import { chmodSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { link } from "node:fs/promises";
import { expect, it } from "vitest";
import { type FileSystem, type LinkedFile, linkFile } from "../../../../src/models/import/imported-files.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { FILE_RIGHTS } from "../../../support/need.ts";

const refuses = async (): Promise<never> => {
  throw Object.assign(new Error("another file system"), { code: "EXDEV" });
};

async function linkAll(
  source: string,
  target: string,
  disk: FileSystem,
  { copy = false, signal = new AbortController().signal } = {},
): Promise<LinkedFile & { copied: number }> {
  const steps = linkFile(source, target, copy, signal, disk);
  let copied = 0;
  for (;;) {
    const step = await steps.next();
    if (step.done) return { ...step.value, copied };
    copied += step.value;
  }
}

const WITHOUT_CLONES: FileSystem = { clone: refuses, link };
const WITHOUT_ANY: FileSystem = { clone: refuses, link: refuses };

async function files() {
  const folder = await temporaryFolder();
  const source = path.join(folder, "source.gguf");
  writeFileSync(source, "GGUF and more");
  return { source, target: path.join(folder, "cache", "x", "source.gguf") };
}

it("a file is linked if it cannot be cloned", async () => {
  const { source, target } = await files();
  expect(await linkAll(source, target, WITHOUT_CLONES)).toEqual({
    placement: "linked",
    path: target,
    isNew: true,
    copied: 0,
  });
  expect(statSync(target).ino).toBe(statSync(source).ino);
  expect(await linkAll(source, target, WITHOUT_CLONES)).toMatchObject({ placement: "linked", isNew: false });
});

it("a file that can be neither cloned nor linked stays in place unless copies are allowed", async () => {
  const { source, target } = await files();
  expect(await linkAll(source, target, WITHOUT_ANY)).toEqual({
    placement: "in place",
    path: source,
    isNew: false,
    copied: 0,
  });
  expect(await linkAll(source, target, WITHOUT_ANY, { copy: true })).toEqual({
    placement: "copied",
    path: target,
    isNew: true,
    copied: 13,
  });
  expect(readFileSync(target, "utf8")).toBe("GGUF and more");
  expect(await linkAll(source, target, WITHOUT_ANY)).toMatchObject({
    placement: "copied",
    isNew: false,
    copied: 0,
  });
  writeFileSync(source, "GGUF and even more");
  expect(await linkAll(source, target, WITHOUT_ANY, { copy: true })).toMatchObject({
    isNew: true,
    copied: 18,
  });
  expect(readdirSync(path.dirname(target))).toEqual(["source.gguf"]);
});

it("a cancelled copy leaves no file", async () => {
  const { source, target } = await files();
  await expect(
    linkAll(source, target, WITHOUT_ANY, { copy: true, signal: AbortSignal.abort(new Error("gone")) }),
  ).rejects.toThrow("gone");
  expect(readdirSync(path.dirname(target))).toEqual([]);
});

it.skipIf(FILE_RIGHTS.isMissing)(
  `an error names the folder that cannot be written${FILE_RIGHTS.note}`,
  async () => {
    const { source, target } = await files();
    const cache = path.dirname(path.dirname(target));
    mkdirSync(cache);
    chmodSync(cache, 0o500);
    await expect(linkAll(source, target, WITHOUT_ANY)).rejects.toMatchObject({ code: "cache_not_writable" });
  },
);
