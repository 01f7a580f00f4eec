import { createHash } from "node:crypto";
import { readdir, readFile, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { savedFileBytes } from "../../../../src/models/slots/saved-file.ts";
import type { SavedHeader } from "../../../../src/models/slots/saved-header.ts";
import { SavedFolder } from "../../../../src/models/slots/saved-folder.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const HASH = "a".repeat(64);
const TOKENS = Int32Array.of(1, 2, 70_000);
const HEADER: SavedHeader = {
  model: HASH,
  engine: HASH,
  settings: HASH,
  tokens: TOKENS.length,
  bytes: 8,
  contextSize: 512,
};
const FILE_BYTES = savedFileBytes(HEADER);

function state(byte = 7) {
  const chunks = async function* () {
    yield new Uint8Array(6).fill(byte);
    yield new Uint8Array(2).fill(byte);
  };
  return { tokens: TOKENS, scales: [], bytes: 8, chunks: chunks() };
}

async function setup(files = 3) {
  const root = await temporaryFolder();
  const folder = new SavedFolder(root, files * FILE_BYTES);
  const save = (name: string, alias = "model") => folder.write(alias, name, HEADER, state());
  const fileOf = (name: string, alias = "model"): string =>
    path.join(root, createHash("sha256").update(alias).digest("hex").slice(0, 32), `${name}.slot`);
  /** Makes a file older by a number of hours. */
  const age = async (name: string, hours: number, alias = "model"): Promise<void> => {
    const then = new Date(Date.now() - hours * 3_600_000);
    await utimes(fileOf(name, alias), then, then);
  };
  const names = async (alias = "model") => (await folder.list(alias)).map(({ name }) => name);
  return { root, folder, save, fileOf, age, names };
}

/** An automatic name. */
const automatic = (digit: string): string => `@${digit.repeat(16)}`;

describe("SavedFolder", () => {
  test("returns a saved prompt, whatever its chunks", async () => {
    const { folder, save } = await setup();
    expect(await save("story")).toBe(FILE_BYTES);
    await folder.read("model", "story", async ({ tokens, bytes, chunks }) => {
      expect([...tokens]).toEqual([...TOKENS]);
      expect(bytes).toBe(8);
      expect(Buffer.concat(await Array.fromAsync(chunks))).toEqual(Buffer.alloc(8, 7));
    });
    expect(await folder.header("model", "story")).toEqual(HEADER);
  });

  test("separates models, and removes the prompts of a deleted one", async () => {
    const { folder, save, names } = await setup();
    await save("story");
    await save("story", "owner/other:Q4_K_M");
    await folder.removeAll("model");
    expect(await names()).toEqual([]);
    expect(await names("owner/other:Q4_K_M")).toEqual(["story"]);
  });

  test("removes the oldest prompts to stay within its limit, automatically saved ones first", async () => {
    const { save, age, names } = await setup();
    await save("old");
    await save(automatic("a"));
    await save("new", "other");
    await age("old", 3);
    await age(automatic("a"), 2);
    await age("new", 1, "other");
    await save("next");
    expect(await names()).toEqual(["next", "old"]);
    await save("last");
    expect(await names()).toEqual(["last", "next"]);
    expect(await names("other")).toEqual(["new"]);
  });

  test("never removes a user's prompt for an automatically saved one", async () => {
    const { save, names } = await setup(1);
    await save("mine");
    await expect(save(automatic("b"))).rejects.toMatchObject({ code: "insufficient_disk" });
    expect(await names()).toEqual(["mine"]);
  });

  test("replaces a prompt of the same name without counting both against the limit", async () => {
    const { save, names } = await setup(1);
    await save("story");
    await save("story");
    expect(await names()).toEqual(["story"]);
  });

  test.each([
    ["is cut off", (bytes: Buffer) => bytes.subarray(0, -1)],
    ["is longer", (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(1)])],
    ["has another token", (bytes: Buffer) => bytes.fill(9, bytes.length - 52, bytes.length - 51)],
    ["has another state", (bytes: Buffer) => bytes.fill(9, bytes.length - 34, bytes.length - 33)],
    ["has another hash", (bytes: Buffer) => bytes.fill(9, bytes.length - 2)],
    ["has a header that never ends", (bytes: Buffer) => bytes.fill(0xff, 8, 12)],
    ["has a header that is no JSON", (bytes: Buffer) => bytes.fill("x", 12, 20)],
    ["is of another program", () => Buffer.from("GGUF and more of it")],
    ["is empty", () => Buffer.alloc(0)],
  ])("rejects a file that %s", async (_what, damage) => {
    const { folder, save, fileOf } = await setup();
    await save("story");
    await writeFile(fileOf("story"), damage(await readFile(fileOf("story"))));
    const read = folder.read("model", "story", async ({ chunks }) => void (await Array.fromAsync(chunks)));
    await expect(read).rejects.toMatchObject({ code: "slot_state_mismatch", status: 409 });
  });

  test("lists a damaged file as damaged, so that it can be deleted", async () => {
    const { folder, save, fileOf } = await setup();
    await save("story");
    await writeFile(fileOf("story"), "nonsense");
    expect(await folder.list("model")).toMatchObject([{ name: "story", header: undefined }]);
    await folder.remove("model", "story");
    expect(await folder.list("model")).toEqual([]);
  });

  test.each(["../story", "a/b", "", ".hidden", "@story", "a".repeat(65), "a\0b"])(
    "finds nothing under the name %j",
    async (name) => {
      const { folder } = await setup();
      const missing = { code: "slot_state_not_found", status: 404 };
      await expect(folder.header("model", name)).rejects.toMatchObject(missing);
      await expect(folder.remove("model", name)).rejects.toMatchObject(missing);
    },
  );

  test("leaves no file if writing fails halfway", async () => {
    const { root, folder, names } = await setup();
    const failing = {
      ...state(),
      chunks: (async function* () {
        yield new Uint8Array(2);
        throw new Error("the engine has ended");
      })(),
    };
    await expect(folder.write("model", "story", HEADER, failing)).rejects.toThrow("the engine has ended");
    expect(await names()).toEqual([]);
    expect((await readdir(root, { recursive: true })).filter((name) => name.includes("."))).toEqual([]);
  });
});
