import path from "node:path";
import { describe, expect, it } from "vitest";
import { fileStem, shardFiles } from "../../../../src/models/names/model-file-names.ts";

describe("file names of a model", () => {
  it("include all shards in order, whichever of them is named", () => {
    const shards = [1, 2, 3].map((index) => path.join("models", `big-0000${index}-of-00003.gguf`));
    for (const shard of shards) expect(shardFiles(shard)).toEqual(shards);
  });

  it("keep the case of their extension on case-sensitive file systems", () => {
    expect(shardFiles("big-00002-of-00002.GGUF")).toEqual([
      "big-00001-of-00002.GGUF",
      "big-00002-of-00002.GGUF",
    ]);
  });

  it.each(["model.gguf", "big-00004-of-00003.gguf", "big-00000-of-00000.gguf", "big-1-of-3.gguf"])(
    "include only %s",
    (file) => expect(shardFiles(file)).toEqual([file]),
  );

  it.each([
    ["/models/tiny.gguf", "tiny"],
    ["big-00002-of-00003.gguf", "big"],
    ["UPPER.GGUF", "UPPER"],
    ["no-extension", "no-extension"],
  ])("give %s the name %s", (file, stem) => expect(fileStem(file)).toBe(stem));
});
