import { readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { addToLmStudio, addToOllama } from "../../support/model-stores.ts";
import { tinyLlama, tinyProjector } from "../../support/tiny-models.ts";
import { ALIAS, type Fixture, startModels } from "./service-fixture.ts";

/** Longer than the minimum time between scans. */
const LATER_MS = 6000;

/** Starts a models service with the folders `lmstudio` and `ollama` in models.dirs. */
async function start(): Promise<Fixture & { lmstudio: string; ollama: string }> {
  const fixture = await startModels();
  const lmstudio = path.join(fixture.userDir, "lmstudio");
  const ollama = path.join(fixture.userDir, "ollama");
  addToLmStudio(lmstudio, "ada/tiny-GGUF/tiny-Q8_0.gguf");
  addToLmStudio(lmstudio, "ada/tiny-GGUF/mmproj-tiny.gguf", tinyProjector());
  addToOllama(ollama, {
    name: "mario:1b",
    system: "You are Mario.",
    license: "MIT",
    params: { num_ctx: 300 },
  });
  return { ...(await fixture.restart({ dirs: [lmstudio, ollama] })), lmstudio, ollama };
}

async function aliases({ models }: Fixture): Promise<string[]> {
  return (await models.list()).map(({ alias }) => alias);
}

it("models in folders of models.dirs are listed and loaded from there", async () => {
  const fixture = await start();
  const { models, engines, cacheDir, lmstudio } = fixture;
  expect(await aliases(fixture)).toEqual(["daybreak-mini", "mario:1b", "tiny-Q8_0"]);
  expect(await models.get("mario:1b")).toMatchObject({
    source: { kind: "file" },
    contextSize: 300,
    settings: { system: "You are Mario." },
  });
  await models.load({ alias: "mario:1b" });
  expect(engines.last.spec).toMatchObject({ contextSize: 300 });
  await models.load({ alias: "tiny-Q8_0" });
  expect(engines.last.spec).toMatchObject({
    modelFiles: [path.join(lmstudio, "ada/tiny-GGUF/tiny-Q8_0.gguf")],
    projectorFile: path.join(lmstudio, "ada/tiny-GGUF/mmproj-tiny.gguf"),
  });
  expect(readdirSync(cacheDir)).not.toContain("imported");
});

it("models in folders of models.dirs keep the settings of their Modelfiles, and so do their copies", async () => {
  const { models } = await start();
  expect(await models.modelfile("mario:1b")).toMatch(/SYSTEM "You are Mario\."\nLICENSE "MIT"\n$/);
  expect((await models.copy("mario:1b", "luigi")).settings.system).toBe("You are Mario.");
});

it("the list follows files that are added to and deleted from folders", async () => {
  const fixture = await start();
  await aliases(fixture);
  addToLmStudio(fixture.lmstudio, "new.gguf");
  rmSync(fixture.ollama, { recursive: true });
  await fixture.clock.advance(LATER_MS);
  expect(await aliases(fixture)).toEqual(["daybreak-mini", "new", "tiny-Q8_0"]);
  await fixture.clock.advance(LATER_MS);
  await aliases(fixture);
  // One warning about the deleted folder, however often it is scanned.
  expect(fixture.warnings).toEqual([expect.stringMatching(/^models\.dirs: There is no folder/)]);
});

it("models in folders get a number if their name is taken, and registered models precede them", async () => {
  const fixture = await start();
  const { models, lmstudio, hub } = fixture;
  addToLmStudio(lmstudio, "other/tiny-Q8_0.gguf", tinyLlama({ name: "other" }));
  addToOllama(fixture.ollama, { name: ALIAS, system: "Ollama's." });
  await hub.add("ada", "tiny-GGUF", "tiny.gguf");
  await fixture.clock.advance(LATER_MS);
  expect(await aliases(fixture)).toEqual([
    "daybreak-mini",
    "hf:ada/tiny-GGUF:tiny.gguf",
    "mario:1b",
    "tiny-Q8_0",
    "tiny-Q8_0-2",
    ALIAS,
  ]);
  expect((await models.get(ALIAS)).settings.system).toBe("Ollama's.");
  await expect(models.create("mario:1b", "FROM daybreak-mini", {})).rejects.toMatchObject({
    code: "model_exists",
  });
});

it("models in folders cannot be deleted, and an attempt does not unload them", async () => {
  const { models } = await start();
  await models.load({ alias: "mario:1b" });
  await expect(models.delete("mario:1b")).rejects.toMatchObject({
    code: "unsupported_feature",
    message: expect.stringMatching(/in a folder of models\.dirs; delete its file/),
  });
  expect((await models.get("mario:1b")).state).toBe("loaded");
});
