import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { readModelFolder } from "../../../../src/models/folders/read-model-folder.ts";
import { addToHubCache, addToLmStudio } from "../../../support/model-stores.ts";
import { tinyProjector } from "../../../support/tiny-models.ts";
import { temporaryFolder } from "../temporary-folder.ts";

it("LM Studio's folder yields models with their shards and projectors", async () => {
  const folder = await temporaryFolder();
  const tiny = addToLmStudio(folder, "ada/tiny-GGUF/tiny-Q8_0.gguf");
  const eyes = addToLmStudio(folder, "ada/tiny-GGUF/mmproj-tiny-f16.gguf", tinyProjector());
  const parts = ["1", "2"].map((part) => addToLmStudio(folder, `ada/big-GGUF/big-0000${part}-of-00002.gguf`));
  addToLmStudio(folder, "ada/torn-GGUF/torn-00001-of-00002.gguf");
  addToLmStudio(folder, "ada/nameless-GGUF/ggml-model-Q4_K_M.gguf");
  addToLmStudio(folder, ".trash/old.gguf");
  mkdirSync(path.join(folder, "ada/tiny-MLX-4bit"));
  for (const shard of [1, 2])
    writeFileSync(path.join(folder, `ada/tiny-MLX-4bit/model-0000${shard}-of-00002.safetensors`), "");
  writeFileSync(path.join(folder, "ada/tiny-GGUF/adapter.safetensors"), "");
  writeFileSync(path.join(folder, "readme.md"), "");
  const { models, skipped } = await readModelFolder(folder);
  expect(
    models.map(({ name, preferredName, files, projector }) => ({ name, preferredName, files, projector })),
  ).toEqual([
    { name: "ada/big-GGUF/big-00001-of-00002.gguf", preferredName: "big", files: parts },
    {
      name: "ada/nameless-GGUF/ggml-model-Q4_K_M.gguf",
      preferredName: "nameless-GGUF-ggml-model-Q4_K_M",
      files: [path.join(folder, "ada/nameless-GGUF/ggml-model-Q4_K_M.gguf")],
    },
    { name: "ada/tiny-GGUF/tiny-Q8_0.gguf", preferredName: "tiny-Q8_0", files: [tiny], projector: eyes },
  ]);
  expect(skipped).toEqual([
    { name: "ada/torn-GGUF/torn-00001-of-00002.gguf", reason: "some of its parts are missing" },
    { name: "ada/tiny-MLX-4bit", reason: "it is in Safetensors, not GGUF" },
  ]);
});

it.skipIf(process.platform === "win32")(
  "a Hugging Face cache yields the models of its snapshots",
  async () => {
    const folder = await temporaryFolder();
    addToHubCache(folder, "ada/tiny-GGUF", "tiny-Q8_0.gguf");
    addToHubCache(folder, "ada/tiny-GGUF", "mmproj-f16.gguf", tinyProjector());
    const { models } = await readModelFolder(folder);
    const snapshot = path.join(folder, "models--ada--tiny-GGUF/snapshots", "a".repeat(40));
    expect(models).toMatchObject([
      {
        preferredName: "tiny-Q8_0",
        files: [path.join(snapshot, "tiny-Q8_0.gguf")],
        projector: path.join(snapshot, "mmproj-f16.gguf"),
      },
    ]);
  },
);

it.skipIf(process.platform === "win32")(
  "links to files inside the folder are followed, and others are skipped",
  async () => {
    const root = await temporaryFolder();
    const folder = path.join(root, "mine");
    const inside = addToLmStudio(folder, "a/inside.gguf");
    const outside = addToLmStudio(root, "outside.gguf");
    mkdirSync(path.join(folder, "b"));
    symlinkSync(inside, path.join(folder, "b", "linked.gguf"));
    symlinkSync(outside, path.join(folder, "b", "leaves.gguf"));
    symlinkSync(root, path.join(folder, "b", "around"));
    const { models, skipped } = await readModelFolder(folder);
    expect(models.map(({ preferredName }) => preferredName)).toEqual(["inside", "linked"]);
    expect(skipped).toEqual([{ name: "b/leaves.gguf", reason: expect.stringMatching(/out of the folder/) }]);
  },
);

it.skipIf(process.platform === "win32")(
  "a name that would begin a new line of a Modelfile is skipped",
  async () => {
    const folder = await temporaryFolder();
    addToLmStudio(folder, "x\nADAPTER evil.gguf");
    expect(await readModelFolder(folder)).toMatchObject({
      models: [],
      skipped: [{ reason: "its name has invisible characters" }],
    });
  },
);

it.each(["/no/such/folder", import.meta.filename])("%s is rejected as a folder", async (folder) => {
  await expect(readModelFolder(folder)).rejects.toMatchObject({ code: "model_file_not_found" });
});
