import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { BlobStore } from "../../../src/models/blobs/blob-store.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const MODEL = Buffer.from("GGUF and more");
const DIGEST = digestOf(MODEL);

let folder: string;
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "daybreak-blobs-"));
});
afterEach(() => fs.rmSync(folder, { recursive: true }));

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

function store(isUsed: (name: string) => boolean = () => false): BlobStore {
  return new BlobStore(path.join(folder, "blobs"), isUsed);
}

function names(): string[] {
  return fs.readdirSync(path.join(folder, "blobs"));
}

async function* broken() {
  yield MODEL;
  throw new Error("the client is gone");
}

describe("BlobStore", () => {
  test("finds a complete upload by its digest", async () => {
    const blobs = store();
    expect(await blobs.find(DIGEST)).toBeUndefined();
    await blobs.write(DIGEST, [MODEL.subarray(0, 3), MODEL.subarray(3)]);
    expect(fs.readFileSync((await blobs.find(DIGEST)) ?? "")).toEqual(MODEL);
    expect(await blobs.find(DIGEST.toUpperCase().replace("SHA256", "sha256"))).toBe(await blobs.find(DIGEST));
  });

  test.each<[string, string, Buffer, RegExp]>([
    ["has another digest", digestOf(Buffer.from("x")), MODEL, /digest does not match/],
    ["is not GGUF", digestOf(Buffer.from("{}")), Buffer.from("{}"), /Only GGUF/],
    ["is empty", digestOf(Buffer.from("")), Buffer.from(""), /Only GGUF/],
  ])("leaves no file of an upload that %s", async (_, digest, bytes, message) => {
    await expect(store().write(digest, [bytes])).rejects.toThrow(message);
    expect(names()).toEqual([]);
  });

  test("leaves no file of an upload that ends too early", async () => {
    await expect(store().write(DIGEST, broken())).rejects.toThrow("the client is gone");
    expect(names()).toEqual([]);
  });

  test.each(["sha256:../../evil", "md5:00", `sha256:${"0".repeat(63)}`])(
    "rejects the digest %s",
    async (digest) => {
      await expect(store().find(digest)).rejects.toMatchObject({ code: "invalid_parameter" });
      await expect(store().write(digest, [MODEL])).rejects.toMatchObject({ code: "invalid_parameter" });
    },
  );

  test("removes files that no model has needed for a day at the next upload", async () => {
    const used = Buffer.from("GGUF used");
    const unused = Buffer.from("GGUF unused");
    const blobs = store((name) => name.includes(digestOf(used).slice(7)));
    for (const bytes of [used, unused]) {
      await blobs.write(digestOf(bytes), [bytes]);
      const old = new Date(Date.now() - DAY_MS - 1000);
      fs.utimesSync((await blobs.find(digestOf(bytes))) ?? "", old, old);
    }
    await blobs.write(DIGEST, [MODEL]);
    expect(await blobs.find(digestOf(used))).toBeDefined();
    expect(await blobs.find(digestOf(unused))).toBeUndefined();
  });
});
