import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { linkFile } from "../../../../src/models/import/imported-files.ts";
import { readModelFolder } from "../../../../src/models/folders/read-model-folder.ts";
import { addToOllama, writeManifest } from "../../../support/model-stores.ts";
import { tinyLlama, tinyLora, tinyProjector } from "../../../support/tiny-models.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const GO_TEMPLATE = "{{ if .System }}{{ .System }}\n{{ end }}{{ .Prompt }}\n{{ .Response }}";

it("an Ollama store yields models with all of their settings", async () => {
  const folder = await temporaryFolder();
  const weights = addToOllama(folder, {
    name: "mario:1b",
    template: GO_TEMPLATE,
    system: 'You are "Mario".\nAlways.',
    params: {
      temperature: 0.5,
      stop: ["<|a|>", "<|b|>"],
      num_ctx: 4096,
      num_gpu: 3,
      num_thread: 8,
      top_p: 7,
    },
    messages: [{ role: "user", content: "Hi." }],
    license: "MIT\nand so on",
    config: { parser: "mario", requires: "0.14.0" },
    projector: tinyProjector(),
    adapter: tinyLora(),
  });
  const { models, skipped } = await readModelFolder(folder);
  expect(skipped).toEqual([]);
  expect(models).toEqual([
    {
      name: "mario:1b",
      preferredName: "mario:1b",
      files: [weights],
      projector: expect.stringMatching(/blobs[\\/]sha256-[0-9a-f]{64}$/),
      adapters: [expect.stringMatching(/blobs[\\/]sha256-[0-9a-f]{64}$/)],
      settings: [
        `TEMPLATE """${GO_TEMPLATE}"""`,
        'SYSTEM """You are "Mario".\nAlways."""',
        "PARAMETER temperature 0.5",
        'PARAMETER stop "<|a|>"',
        'PARAMETER stop "<|b|>"',
        "PARAMETER num_ctx 4096",
        "GPU_LAYERS 3",
        "PARAMETER num_thread 8",
        'MESSAGE user "Hi."',
        'PARSER "mario"',
        'REQUIRES "0.14.0"',
        'LICENSE """MIT\nand so on"""',
      ],
      notes: [
        expect.stringMatching(/^PARAMETER top_p is left out: .*at most 1, got 7/),
        expect.stringMatching(/^PARAMETER num_thread has no effect here/),
        expect.stringMatching(/^PARSER mario has no effect/),
        expect.stringMatching(/^REQUIRES 0.14.0 has no effect/),
      ],
    },
  ]);
});

it("a model with a RENDERER of Ollama uses the template of its GGUF file", async () => {
  const folder = await temporaryFolder();
  addToOllama(folder, { name: "coder:30b", template: "{{ .Prompt }}", config: { renderer: "qwen3-coder" } });
  const [model] = (await readModelFolder(folder)).models;
  expect(model?.settings).toEqual(['RENDERER "qwen3-coder"']);
  expect(model?.notes[0]).toMatch(/TEMPLATE is left out/);
});

it("templates that cannot be translated and damaged texts are left out with the reason", async () => {
  const folder = await temporaryFolder();
  addToOllama(folder, {
    name: "odd:latest",
    template: "{{ printf .Mood }}",
    more: { params: "{", messages: '[{"role": "user\\nADAPTER /etc/x.gguf", "content": "x"}]' },
  });
  const [model] = (await readModelFolder(folder)).models;
  expect(model?.settings).toEqual([]);
  expect(model?.notes).toEqual([
    expect.stringMatching(/^TEMPLATE is left out: TEMPLATE: /),
    "PARAMETER is left out: it is damaged.",
    "MESSAGE is left out: it is damaged.",
  ]);
});

it("manifests of the first Ollama versions and unrelated files do not fail the import", async () => {
  const folder = await temporaryFolder();
  const weights = addToOllama(folder, { name: "old:7b", more: { prompt: GO_TEMPLATE, embed: "[]" } });
  const names = path.join(folder, "manifests/registry.ollama.ai/library/old");
  const manifest: object = JSON.parse(readFileSync(path.join(names, "7b"), "utf8"));
  writeManifest(folder, "unconfigured:7b", { ...manifest, config: { mediaType: "", digest: "", size: 0 } });
  for (const beside of [names, path.join(names, "../.."), path.join(folder, "manifests")])
    writeFileSync(path.join(beside, ".DS_Store"), "");
  writeFileSync(`${weights}-partial`, "");
  writeFileSync(`${weights}-partial-0`, "{}");
  const settings = [`TEMPLATE """${GO_TEMPLATE}"""`];
  expect(await readModelFolder(folder)).toMatchObject({
    models: [
      { name: "old:7b", files: [weights], settings, notes: [] },
      { name: "unconfigured:7b", files: [weights], settings, notes: [] },
    ],
    skipped: [],
  });
});

it("a draft model is left out with a note", async () => {
  const folder = await temporaryFolder();
  addToOllama(folder, {
    name: "quick:4b",
    draft: tinyLlama({ blocks: 1 }),
    params: { draft_num_predict: 4 },
  });
  const [model] = (await readModelFolder(folder)).models;
  expect(model?.notes).toContainEqual(expect.stringMatching(/^DRAFT is left out: /));
  expect(model?.notes).toContainEqual(expect.stringMatching(/^PARAMETER draft_num_predict /));
});

it.each([
  ["llama3.2:1b", "llama3.2:1b", "llama3.2:1b"],
  ["registry.ollama.ai/ada/tiny/latest", "ada/tiny:latest", "ada-tiny:latest"],
  ["hf.co/ada/Tiny-GGUF/Q4_K_M", "hf.co/ada/Tiny-GGUF:Q4_K_M", "Tiny-GGUF:Q4_K_M"],
])("the model of the manifest %s is named %s", async (manifest, name, preferredName) => {
  const folder = await temporaryFolder();
  addToOllama(folder, { name: manifest });
  expect((await readModelFolder(folder)).models).toMatchObject([{ name, preferredName }]);
});

it("models without own GGUF weights are skipped with the reason", async () => {
  const folder = await temporaryFolder();
  const digest = `sha256:${"0".repeat(64)}`;
  const layer = (kind: string, of = digest): object => ({
    mediaType: `application/vnd.ollama.image.${kind}`,
    digest: of,
  });
  mkdirSync(path.join(folder, "blobs"));
  writeManifest(folder, "cloud:1t", { layers: [layer("license")] });
  writeManifest(folder, "remote:1t", { schemaVersion: 2, config: layer("config"), layers: null });
  writeManifest(folder, "mlx:1b", { layers: [layer("tensor")] });
  writeManifest(folder, "gone:1b", { layers: [layer("model")] });
  writeManifest(folder, "evil:1b", { layers: [layer("model", "sha256:../../etc/passwd")] });
  writeManifest(folder, "split:1b", { layers: [layer("model"), layer("model")] });
  writeManifest(folder, "torn:1b", "{");
  const { models, skipped } = await readModelFolder(folder);
  expect(models).toEqual([]);
  expect(Object.fromEntries(skipped.map(({ name, reason }) => [name, reason]))).toEqual({
    "cloud:1t": "it has no weights on this machine",
    "remote:1t": "it has no weights on this machine",
    "mlx:1b": "it is in Safetensors, not GGUF",
    "gone:1b": expect.stringMatching(/missing/),
    "evil:1b": expect.stringMatching(/missing/),
    "split:1b": expect.stringMatching(/several files/),
    "torn:1b": "its manifest is damaged",
  });
});

it.skipIf(process.platform === "win32")("a named pipe instead of a file does not block", async () => {
  const folder = await temporaryFolder();
  const weights = addToOllama(folder, { name: "tiny:1b" });
  const manifest = path.join(folder, "manifests/registry.ollama.ai/library/tiny/pipe");
  for (const file of [manifest, weights]) {
    rmSync(file, { force: true });
    execFileSync("mkfifo", [file]);
  }
  const { models, skipped } = await readModelFolder(folder);
  expect(skipped).toMatchObject([{ name: "tiny:pipe" }]);
  const placing = linkFile(
    models[0]?.files[0] ?? "",
    path.join(folder, "x.gguf"),
    true,
    AbortSignal.timeout(60_000),
  );
  await expect(placing.next()).rejects.toMatchObject({ code: "path_not_allowed" });
});

it.skipIf(process.platform === "win32")("links that lead out of the store are not followed", async () => {
  const root = await temporaryFolder();
  const folder = path.join(root, "store");
  const weights = addToOllama(folder, { name: "tiny:1b", system: "secret" });
  const outside = path.join(root, "outside");
  writeFileSync(outside, "GGUF");
  rmSync(weights);
  symlinkSync(outside, weights);
  expect(await readModelFolder(folder)).toMatchObject({
    models: [],
    skipped: [{ name: "tiny:1b", reason: expect.stringMatching(/link out of the folder/) }],
  });
});

it("a store is also found in the folder that contains it", async () => {
  const home = await temporaryFolder();
  addToOllama(path.join(home, "models"), { name: "tiny:1b" });
  expect(await readModelFolder(home)).toMatchObject({
    folder: path.join(home, "models"),
    models: [{ name: "tiny:1b" }],
  });
});
