import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { storeFolders } from "../../../../src/models/folders/known-stores.ts";
import { temporaryFolder } from "../temporary-folder.ts";

it("Ollama's models are in the folder of OLLAMA_MODELS, or else in the home folders of the user and the service", async () => {
  expect(await storeFolders("ollama", { OLLAMA_MODELS: "/big/models" }, "/home/ada")).toEqual([
    "/big/models",
  ]);
  expect(await storeFolders("ollama", { OLLAMA_MODELS: ' "/big/models"' }, "/home/ada")).toEqual([
    "/big/models",
  ]);
  expect(await storeFolders("ollama", { OLLAMA_MODELS: "" }, "/home/ada")).toEqual([
    path.join("/home/ada", ".ollama/models"),
    "/usr/share/ollama/.ollama/models",
    "/var/lib/ollama/models",
    "/var/lib/ollama",
  ]);
});

it("the Hugging Face cache is in the folder of its environment variables, or else in the home folder", async () => {
  expect(await storeFolders("hf", { HF_HOME: "/big/hf" }, "/home/ada")).toEqual([
    path.join("/big/hf", "hub"),
  ]);
  expect(await storeFolders("hf", {}, "/home/ada")).toEqual([
    path.join("/home/ada", ".cache/huggingface/hub"),
  ]);
});

it("LM Studio's models are in its current and its earlier home folder", async () => {
  const home = await temporaryFolder();
  expect(await storeFolders("lmstudio", {}, home)).toEqual([
    path.join(home, ".lmstudio/models"),
    path.join(home, ".cache/lm-studio/models"),
  ]);
});

it("LM Studio's home folder follows its pointer file, and its models follow its settings", async () => {
  const home = await temporaryFolder();
  const moved = path.join(home, "big", "lm");
  const chosen = path.join(home, "all models");
  mkdirSync(moved, { recursive: true });
  writeFileSync(path.join(home, ".lmstudio-home-pointer"), `${moved}\r\n`);
  writeFileSync(
    path.join(moved, "settings.json"),
    JSON.stringify({ language: "en", downloadsFolder: chosen }),
  );
  expect((await storeFolders("lmstudio", {}, home)).slice(0, 2)).toEqual([
    chosen,
    path.join(moved, "models"),
  ]);
});

it("a pointer file and settings of LM Studio without a usable path are ignored", async () => {
  const home = await temporaryFolder();
  mkdirSync(path.join(home, ".lmstudio"));
  writeFileSync(path.join(home, ".lmstudio-home-pointer"), "elsewhere");
  for (const settings of [
    "{",
    JSON.stringify({ downloadsFolder: 3 }),
    JSON.stringify({ downloadsFolder: "" }),
  ]) {
    writeFileSync(path.join(home, ".lmstudio", "settings.json"), settings);
    expect((await storeFolders("lmstudio", {}, home))[0]).toBe(path.join(home, ".lmstudio/models"));
  }
});
