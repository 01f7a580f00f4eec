import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { ServiceError } from "../../../../src/errors/service-error.ts";
import { StateFile } from "../../../../src/models/registry/state-file.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const quiet = { warn: () => {} };

async function add(state: StateFile, alias: string): Promise<void> {
  await state.update((current) => ({
    ...current,
    definitions: [...current.definitions, { alias, modelfile: "FROM x" }],
  }));
}

describe("the state file", () => {
  it("is empty at first, and its folder is created by the first write", async () => {
    const folder = path.join(await temporaryFolder(), "not", "yet");
    const state = await StateFile.open(folder, quiet);
    expect(state.current).toEqual({ version: 1, files: [], definitions: [] });
    await state.update((current) => ({ ...current, defaultAlias: "a" }));
    expect((await StateFile.open(folder, quiet)).current.defaultAlias).toBe("a");
  });

  it("has every one of many concurrent changes, and leaves only its lock as another file", async () => {
    const folder = await temporaryFolder();
    const state = await StateFile.open(folder, quiet);
    const aliases = Array.from({ length: 20 }, (_, index) => `model-${index}`);
    await Promise.all(
      aliases.map(
        async (alias) =>
          await state.update((current) => ({
            ...current,
            files: [...current.files, { alias, path: "/x.gguf" }],
          })),
      ),
    );
    const { current } = await StateFile.open(folder, quiet);
    expect(current.files.map(({ alias }) => alias)).toEqual(aliases);
    expect((await readdir(folder)).toSorted()).toEqual(["daybreak.lock", "models.json"]);
  });

  it("has the last complete state after a write was cut off", async () => {
    const folder = await temporaryFolder();
    const state = await StateFile.open(folder, quiet);
    await state.update((current) => ({ ...current, defaultAlias: "a" }));
    await writeFile(path.join(folder, "models.json.next"), '{"version": 1, "def');

    const again = await StateFile.open(folder, quiet);

    expect((await readdir(folder)).toSorted()).toEqual(["daybreak.lock", "models.json"]);
    expect(again.current.defaultAlias).toBe("a");
    await again.update((current) => ({ ...current, defaultAlias: "b" }));
    expect((await StateFile.open(folder, quiet)).current.defaultAlias).toBe("b");
  });

  it.each(["", "{", '{"version": 2}', '{"version": 1, "files": [{"alias": 3}], "definitions": []}'])(
    "renames a damaged file: %s",
    async (text) => {
      const folder = await temporaryFolder();
      await writeFile(path.join(folder, "models.json"), text);
      const warnings: unknown[] = [];

      const state = await StateFile.open(folder, { warn: (...all: unknown[]) => void warnings.push(all) });

      expect(state.current.files).toEqual([]);
      expect(warnings).toHaveLength(1);
      expect(await readFile(path.join(folder, "models.json.damaged"), "utf8")).toBe(text);
    },
  );

  it("is unchanged if it cannot be written, reports why, and recovers later", async () => {
    const folder = path.join(await temporaryFolder(), "cache");
    const state = await StateFile.open(folder, quiet);
    // A file in place of the folder.
    await writeFile(folder, "");
    await expect(state.update((current) => ({ ...current, defaultAlias: "a" }))).rejects.toMatchObject({
      code: "cache_not_writable",
      message: expect.stringContaining(`${folder}: a part of its path is not a folder`),
    });
    expect(state.current.defaultAlias).toBeUndefined();
    await rm(folder);
    await state.update((current) => ({ ...current, defaultAlias: "b" }));
    expect((await StateFile.open(folder, quiet)).current.defaultAlias).toBe("b");
  });

  // Windows reports it only at the first write, which the test above covers.
  it.skipIf(process.platform === "win32")("names the folder that cannot be used", async () => {
    const file = path.join(await temporaryFolder(), "file");
    await writeFile(file, "");
    await expect(StateFile.open(file, quiet)).rejects.toMatchObject({
      code: "internal_error",
      message: expect.stringContaining(`The cache folder ${file} cannot be used`),
    });
  });

  it("is shared by two daemons: each sees and keeps the changes of the other", async () => {
    const folder = await temporaryFolder();
    const [one, other] = [await StateFile.open(folder, quiet), await StateFile.open(folder, quiet)];
    const names = Array.from({ length: 10 }, (_, index) => [`one-${index}`, `other-${index}`]).flat();

    await Promise.all(names.map(async (name) => await add(name.startsWith("one") ? one : other, name)));

    for (const state of [one, other]) {
      expect(state.current.definitions.map(({ alias }) => alias).toSorted()).toEqual(names.toSorted());
    }
  });

  it("renames a file that was damaged at run time, and continues from the last known state", async () => {
    const folder = await temporaryFolder();
    const warnings: unknown[] = [];
    const state = await StateFile.open(folder, { warn: (...all: unknown[]) => void warnings.push(all) });
    await add(state, "a");
    for (const [text, name] of [
      ["{", "models.json.damaged"],
      ["[]", "models.json.damaged-2"],
    ] as const) {
      await writeFile(path.join(folder, "models.json"), text);
      expect(state.current.definitions.map(({ alias }) => alias)).toContain("a");

      await add(state, name);

      expect(await readFile(path.join(folder, name), "utf8")).toBe(text);
    }
    const { current } = await StateFile.open(folder, quiet);
    expect(current.definitions.map(({ alias }) => alias)).toEqual([
      "a",
      "models.json.damaged",
      "models.json.damaged-2",
    ]);
    expect(warnings).toHaveLength(2);
  });

  it("adopts valid edits by hand", async () => {
    const folder = await temporaryFolder();
    const state = await StateFile.open(folder, quiet);
    await add(state, "a");
    const edited = { version: 1, files: [], definitions: [{ alias: "b", modelfile: "FROM y" }] };
    await writeFile(path.join(folder, "models.json"), JSON.stringify(edited));

    expect(state.current.definitions.map(({ alias }) => alias)).toEqual(["b"]);
    await add(state, "c");
    expect(state.current.definitions.map(({ alias }) => alias)).toEqual(["b", "c"]);
  });

  it("is read again after each change of another daemon, even in quick succession", async () => {
    const folder = await temporaryFolder();
    const [one, other] = [await StateFile.open(folder, quiet), await StateFile.open(folder, quiet)];
    // Files of one size, whose inode numbers the file system reuses immediately.
    for (const alias of ["a", "b", "c", "d", "e", "f", "g", "h"]) {
      await one.update((current) => ({ ...current, defaultAlias: alias }));
      expect(other.current.defaultAlias).toBe(alias);
    }
  });

  it("is not written by a change that fails or changes nothing", async () => {
    const folder = await temporaryFolder();
    const state = await StateFile.open(folder, quiet);
    const refusal = new ServiceError("model_exists", "There is one.");
    await expect(
      state.update(() => {
        throw refusal;
      }),
    ).rejects.toBe(refusal);
    await state.update((current) => current);
    expect(await readdir(folder)).toEqual(["daybreak.lock"]);
  });
});
