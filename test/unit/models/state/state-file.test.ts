import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { StateFile } from "../../../../src/models/state/state-file.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const quiet = { warn: () => {} };

async function add(state: StateFile, alias: string): Promise<void> {
  await state.update((current) => ({
    ...current,
    definitions: [...current.definitions, { alias, modelfile: "FROM x" }],
  }));
}

describe("the saved state", () => {
  it("is empty at first, and makes its folder when it is first written", async () => {
    const folder = path.join(await temporaryFolder(), "not", "yet");
    const state = await StateFile.open(folder, quiet);
    expect(state.current).toEqual({ version: 1, files: [], definitions: [] });
    await state.update((current) => ({ ...current, defaultAlias: "a" }));
    expect((await StateFile.open(folder, quiet)).current.defaultAlias).toBe("a");
  });

  it("holds every one of many changes at once, and leaves no other file", async () => {
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
    expect(await readdir(folder)).toEqual(["models.json"]);
  });

  it("is the last whole one when a write was cut off", async () => {
    const folder = await temporaryFolder();
    const state = await StateFile.open(folder, quiet);
    await state.update((current) => ({ ...current, defaultAlias: "a" }));
    await writeFile(path.join(folder, "models.json.next"), '{"version": 1, "def');

    const again = await StateFile.open(folder, quiet);

    expect(again.current.defaultAlias).toBe("a");
    await again.update((current) => ({ ...current, defaultAlias: "b" }));
    expect((await StateFile.open(folder, quiet)).current.defaultAlias).toBe("b");
  });

  it.each(["", "{", '{"version": 2}', '{"version": 1, "files": [{"alias": 3}], "definitions": []}'])(
    "puts a damaged file aside: %s",
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

  it("changes nothing when it cannot be written, says why, and goes on when it can again", async () => {
    const folder = path.join(await temporaryFolder(), "cache");
    const state = await StateFile.open(folder, quiet);
    // A file in the place of the folder.
    await writeFile(folder, "");
    await expect(state.update((current) => ({ ...current, defaultAlias: "a" }))).rejects.toMatchObject({
      code: "internal_error",
      message: expect.stringContaining(folder),
    });
    expect(state.current.defaultAlias).toBeUndefined();
    await rm(folder);
    await state.update((current) => ({ ...current, defaultAlias: "b" }));
    expect((await StateFile.open(folder, quiet)).current.defaultAlias).toBe("b");
  });

  it("says which folder cannot be used", async () => {
    const file = path.join(await temporaryFolder(), "file");
    await writeFile(file, "");
    await expect(StateFile.open(file, quiet)).rejects.toMatchObject({
      code: "internal_error",
      message: expect.stringContaining(`The cache folder ${file} cannot be used`),
    });
  });

  it("is shared by two daemons: each sees and keeps what the other has saved", async () => {
    const folder = await temporaryFolder();
    const [one, other] = [await StateFile.open(folder, quiet), await StateFile.open(folder, quiet)];
    const names = Array.from({ length: 10 }, (_, index) => [`one-${index}`, `other-${index}`]).flat();

    await Promise.all(names.map(async (name) => await add(name.startsWith("one") ? one : other, name)));

    for (const state of [one, other]) {
      expect(state.current.definitions.map(({ alias }) => alias).toSorted()).toEqual(names.toSorted());
    }
  });

  it("does not write over a file that somebody has damaged meanwhile", async () => {
    const folder = await temporaryFolder();
    const state = await StateFile.open(folder, quiet);
    await state.update((current) => ({ ...current, defaultAlias: "a" }));
    await writeFile(path.join(folder, "models.json"), "{");

    await expect(state.update((current) => current)).rejects.toThrow("damaged");

    expect(state.current.defaultAlias).toBe("a");
    expect(await readFile(path.join(folder, "models.json"), "utf8")).toBe("{");
  });
});
