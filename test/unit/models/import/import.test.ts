import { existsSync, linkSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import {
  ImportedFiles,
  type ImportRequest,
  type ImportStep,
} from "../../../../src/models/import/imported-files.ts";
import { addToHubCache, addToLmStudio, addToOllama } from "../../../support/model-stores.ts";
import { shardsOf, tinyLlama, tinyProjector } from "../../../support/tiny-models.ts";
import { startModels, type Fixture } from "../service-fixture.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { writeGguf } from "../../../support/gguf-writer.ts";

const GO_TEMPLATE = "{{ .System }}{{ .Prompt }}{{ .Response }}";

async function refuse(): Promise<never> {
  throw Object.assign(new Error("another file system"), { code: "EXDEV" });
}

async function importFrom(
  { models }: Pick<Fixture, "models">,
  from: string,
  more: Partial<ImportRequest> = {},
): Promise<ImportStep[]> {
  const signal = new AbortController().signal;
  const steps = await Array.fromAsync(models.importFrom({ from, copy: false, ...more }, signal));
  return steps.filter(({ status }) => status !== "reading" && status !== "copying");
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
}

it("a model of Ollama is linked, keeps its settings, loads, and survives the deletion of its store", async () => {
  const fixture = await startModels();
  const store = path.join(fixture.userDir, "ollama");
  const weights = addToOllama(store, {
    name: "mario:1b",
    template: GO_TEMPLATE,
    system: "You are Mario.",
    params: { temperature: 0.1, num_ctx: 300 },
    license: "MIT",
    projector: tinyProjector(),
  });
  const [step] = await importFrom(fixture, store);
  expect(step).toMatchObject({ status: "imported", name: "mario:1b", alias: "mario:1b", notes: [] });
  expect(step).toMatchObject({ placement: expect.stringMatching(/^(?:linked|cloned)$/) });
  const { models, engines } = await fixture.restart();
  const model = await models.get("mario:1b");
  expect(model.path.startsWith(path.join(fixture.cacheDir, "imported"))).toBe(true);
  expect(statSync(model.path).size).toBe(statSync(weights).size);
  rmSync(store, { recursive: true });
  await models.load({ alias: "mario:1b" });
  expect(engines.last.spec).toMatchObject({
    contextSize: 300,
    chatTemplate: expect.stringMatching(/prompt/),
  });
  expect(model).toMatchObject({ settings: { system: "You are Mario." }, capabilities: { vision: true } });
  expect(await models.modelfile("mario:1b")).toMatch(/^LICENSE "MIT"$/m);
});

it("a second import only updates changed models", async () => {
  const fixture = await startModels();
  const store = path.join(fixture.userDir, "ollama");
  addToOllama(store, { name: "a:1b", system: "One." });
  addToOllama(store, { name: "b:1b", model: tinyLlama({ name: "b" }) });
  await importFrom(fixture, store);
  const before = filesIn(fixture.cacheDir).length;
  addToOllama(store, { name: "a:1b", model: tinyLlama({ name: "new" }), system: "Two." });
  expect(await importFrom(fixture, store)).toMatchObject([
    { status: "updated", alias: "a:1b" },
    { status: "present", alias: "b:1b" },
  ]);
  expect((await fixture.models.get("a:1b")).settings.system).toBe("Two.");
  // The old weights have been deleted.
  expect(filesIn(fixture.cacheDir)).toHaveLength(before);
  expect(await importFrom(fixture, store)).toMatchObject([{ status: "present" }, { status: "present" }]);
});

it("an imported model gets a number if its name is taken, and keeps it", async () => {
  const fixture = await startModels();
  await fixture.models.create("a:1b", "FROM daybreak-mini\nSYSTEM Mine.", {});
  const store = path.join(fixture.userDir, "ollama");
  addToOllama(store, { name: "a:1b" });
  expect(await importFrom(fixture, store)).toMatchObject([{ status: "imported", alias: "a:1b-2" }]);
  expect(await importFrom(fixture, store)).toMatchObject([{ status: "present", alias: "a:1b-2" }]);
  expect((await fixture.models.get("a:1b")).settings.system).toBe("Mine.");
});

it("deleting an imported model removes its unused links, and nothing of the other program", async () => {
  const fixture = await startModels();
  const store = path.join(fixture.userDir, "ollama");
  const weights = addToOllama(store, { name: "a:1b" });
  addToOllama(store, { name: "b:1b", system: "The same weights." });
  await importFrom(fixture, store);
  const { path: file } = await fixture.models.get("a:1b");
  await fixture.models.delete("a:1b");
  expect(existsSync(file)).toBe(true);
  await fixture.models.delete("b:1b");
  expect(existsSync(file)).toBe(false);
  expect(existsSync(weights)).toBe(true);
});

it("shards stay together, and a projector in the same folder belongs to the model", async () => {
  const fixture = await startModels();
  const folder = path.join(fixture.userDir, "lmstudio");
  for (const [index, shard] of shardsOf(tinyLlama(), 2).entries())
    addToLmStudio(folder, `ada/big-GGUF/big-0000${index + 1}-of-00002.gguf`, shard);
  addToLmStudio(folder, "ada/big-GGUF/mmproj-big.gguf", tinyProjector());
  expect(await importFrom(fixture, folder)).toMatchObject([{ status: "imported", alias: "big" }]);
  const model = await fixture.models.get("big");
  expect(model.files).toHaveLength(2);
  expect(model.capabilities.vision).toBe(true);
  await fixture.models.delete("big");
  expect(filesIn(path.join(fixture.cacheDir, "imported"))).toEqual([]);
});

it.skipIf(process.platform === "win32")(
  "models of a Hugging Face cache are linked to their content",
  async () => {
    const fixture = await startModels();
    const folder = path.join(fixture.userDir, "hf");
    addToHubCache(folder, "ada/tiny-GGUF", "tiny-Q8_0.gguf");
    expect(await importFrom(fixture, folder)).toMatchObject([{ status: "imported", alias: "tiny-Q8_0" }]);
    rmSync(folder, { recursive: true });
    await fixture.models.load({ alias: "tiny-Q8_0" });
  },
);

it("unusable models are skipped with the reason, and leave no files", async () => {
  const fixture = await startModels();
  const folder = path.join(fixture.userDir, "mine");
  writeGguf(addToLmStudio(folder, "eyes.gguf"), tinyProjector());
  expect(await importFrom(fixture, folder)).toMatchObject([
    { status: "skipped", name: "eyes.gguf", reason: expect.stringMatching(/is a projector, not a model/) },
  ]);
  expect(filesIn(path.join(fixture.cacheDir, "imported"))).toEqual([]);
});

it("an error about a damaged file names its original path", async () => {
  const fixture = await startModels();
  const folder = path.join(fixture.userDir, "mine");
  const file = addToLmStudio(folder, "broken.gguf");
  writeFileSync(file, "GGUF");
  const [step] = await importFrom(fixture, folder);
  expect(step).toMatchObject({
    status: "skipped",
    reason: expect.stringContaining(`The model file ${file} cannot`),
  });
});

it("models can be selected by the name that an earlier import has given them", async () => {
  const fixture = await startModels();
  await fixture.models.create("m", "FROM daybreak-mini", {});
  const folder = path.join(fixture.userDir, "mine");
  addToLmStudio(folder, "m.gguf");
  addToLmStudio(folder, "other.gguf");
  expect(await importFrom(fixture, folder, { names: ["m"] })).toMatchObject([{ alias: "m-2" }]);
  expect(await importFrom(fixture, folder, { names: ["m-2"] })).toMatchObject([
    { status: "present", name: "m.gguf", alias: "m-2" },
  ]);
});

it("only selected models are imported", async () => {
  const fixture = await startModels();
  const store = path.join(fixture.userDir, "ollama");
  addToOllama(store, { name: "a:latest" });
  addToOllama(store, { name: "b:1b" });
  expect(await importFrom(fixture, store, { names: ["a"] })).toMatchObject([
    { name: "a:latest", alias: "a" },
  ]);
  await expect(importFrom(fixture, store, { names: ["c"] })).rejects.toMatchObject({
    code: "model_not_found",
    message: expect.stringMatching(/has no model "c"\. It has a:latest, b:1b\./),
  });
});

it.each([
  ["models", "invalid_parameter"],
  ["/no/such/folder", "model_file_not_found"],
])("%s cannot be imported from", async (from, code) => {
  await expect(importFrom(await startModels(), from)).rejects.toMatchObject({ code });
});

it("folders outside the allowed ones, and the daemon's own, are rejected", async () => {
  const fixture = await startModels();
  const allowed = path.join(fixture.userDir, "ollama");
  addToOllama(allowed, { name: "a:1b" });
  const confined = await fixture.restart({ allowed_dirs: [allowed] });
  const other = await temporaryFolder();
  addToOllama(other, { name: "b:1b" });
  for (const from of [other, fixture.cacheDir])
    await expect(importFrom(confined, from)).rejects.toMatchObject({ code: "path_not_allowed" });
  await expect(importFrom(fixture, fixture.cacheDir)).rejects.toMatchObject({ code: "path_not_allowed" });
  expect(await importFrom(confined, allowed)).toMatchObject([{ status: "imported" }]);
  await confined.models.load({ alias: "a:1b" });
});

it("a cancelled import ends", async () => {
  const fixture = await startModels();
  const store = path.join(fixture.userDir, "ollama");
  addToOllama(store, { name: "a:1b" });
  const steps = fixture.models.importFrom({ from: store, copy: false }, AbortSignal.abort(new Error("gone")));
  await expect(Array.fromAsync(steps)).rejects.toThrow("gone");
});

it("an existing link is used again", async () => {
  const fixture = await startModels();
  const store = path.join(fixture.userDir, "ollama");
  const weights = addToOllama(store, { name: "a:1b" });
  await importFrom(fixture, store);
  const { path: file } = await fixture.models.get("a:1b");
  rmSync(file);
  linkSync(weights, file);
  expect(await importFrom(fixture, store)).toMatchObject([{ status: "present", placement: "linked" }]);
});

it("deleting a model removes only imported files, whatever its Modelfile names", async () => {
  const fixture = await startModels();
  const { models, cacheDir, userFile } = fixture;
  const imported = path.join(cacheDir, "imported");
  const unrelated = userFile("mine.gguf");
  const up = path.relative(imported, unrelated);
  mkdirSync(path.join(imported, "x"), { recursive: true });
  const state = path.join(cacheDir, "models.json");
  const modelfile = [
    `FROM ${unrelated}`,
    'SYSTEM """',
    `FROM ${imported}/${up}`,
    `FROM ${imported}/x/../../models.json`,
    '"""',
  ].join("\n");
  await models.create("sly", modelfile, {});
  await models.create("slier", `FROM ${imported}/x/../${up}`, {});
  await models.delete("sly");
  await models.delete("slier");
  expect([existsSync(unrelated), existsSync(state)]).toEqual([true, true]);
});

it("an import whose client leaves during a copy leaves no files", async () => {
  const folder = await temporaryFolder();
  const disk = { clone: refuse, link: refuse };
  const files = new ImportedFiles(path.join(folder, "imported"), () => false, disk);
  const [model, projector] = [addToLmStudio(folder, "a.gguf"), addToLmStudio(folder, "b.gguf")];
  const found = { name: "a", preferredName: "a", adapters: [], settings: [], notes: [] };
  const signal = new AbortController().signal;
  const copying = files.link({ ...found, files: [model], projector }, true, signal);
  const totalBytes = statSync(model).size + statSync(projector).size;
  expect(await copying.next()).toMatchObject({ value: { totalBytes } });
  // The first file is complete, the second one partial.
  expect(await copying.next()).toMatchObject({ value: { copiedBytes: totalBytes } });
  await copying[Symbol.asyncDispose]();
  expect(filesIn(path.join(folder, "imported"))).toEqual([]);
});
