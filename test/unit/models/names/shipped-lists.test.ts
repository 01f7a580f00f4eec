import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readDefaultModels } from "../../../../src/daemon/package-files.ts";
import { readAliases } from "../../../../src/models/names/alias-table.ts";
import { chooseModelFiles, groupModels } from "../../../../src/models/names/hub-spec.ts";
import { NameResolver } from "../../../../src/models/names/name-resolver.ts";
import { quantizationOf } from "../../../../src/models/names/model-file-names.ts";

const PURPOSES = new Set(["chat", "embedding", "rerank"]);
const TAGS = new Set([...PURPOSES, "coding", "multilingual", "thinking", "tiny", "tools", "vision"]);

const documentation = readFileSync(new URL("../../../../docs/models.md", import.meta.url), "utf8");
const aliases = readAliases();
const entries = [...aliases];

describe("configs/models.toml", () => {
  it("has names for common small and medium models", () => {
    expect(entries.length).toBeGreaterThanOrEqual(45);
  });

  it.each(entries)("%s is complete and consistent", (_, entry) => {
    expect(entry).toMatchObject({
      family: expect.stringMatching(/./),
      description: expect.stringMatching(/\.$/),
    });
    expect(quantizationOf(entry.file)).toBe(entry.quant);
    expect(entry.tags.filter((tag) => !TAGS.has(tag))).toEqual([]);
    expect(entry.tags.filter((tag) => PURPOSES.has(tag))).toHaveLength(1);
    expect(entry.mmproj !== undefined).toBe(entry.tags.includes("vision"));
  });

  it.each(entries)("%s names a file that is a model", (_, { file }) => {
    expect(chooseModelFiles([file], { file })).toEqual([file]);
  });

  it("names projectors that are no models", () => {
    const projectors = entries.flatMap(([, { mmproj }]) => (mmproj === undefined ? [] : [mmproj]));
    expect(groupModels(projectors)).toEqual([]);
  });

  it.each(entries)("%s has public evidence for its file", (_, { repo, file, evidence = "" }) => {
    const fileOnHub = `https://huggingface.co/${repo}/resolve/main/${file}`;
    const fileOnGitHub = /^[\w.-]+\/[\w.-]+: [\w./-]+$/;
    expect(evidence === fileOnHub || fileOnGitHub.test(evidence)).toBe(true);
  });

  it.each(entries)("%s is unchanged in docs/models.md", (alias, { repo, quant, tags }) => {
    const row = `| \`${alias}\` | [${repo}](https://huggingface.co/${repo}) | ${quant} | ${tags.join(", ")} |\n`;
    expect(documentation).toContain(row);
  });

  it("names no file twice", () => {
    const places = entries.map(([, { repo, file }]) => `${repo}/${file}`);
    expect(new Set(places).size).toBe(places.length);
  });
});

describe("configs/defaults.toml", () => {
  const defaults = readDefaultModels();
  const resolver = new NameResolver(aliases);

  it("suggests about ten models, each once", () => {
    const names = defaults.map(({ name }) => name);
    expect(names.length).toBeGreaterThanOrEqual(9);
    expect(new Set(names).size).toBe(names.length);
  });

  it("has models for vision, thinking, tools and programming", () => {
    expect(defaults.some((model) => model.has_vision)).toBe(true);
    expect(defaults.some((model) => model.has_thinking)).toBe(true);
    expect(defaults.some((model) => model.has_tools)).toBe(true);
    expect(defaults.some((model) => model.tags.includes("coding"))).toBe(true);
  });

  it("suggests small models first, most of them for ordinary laptops", () => {
    const billions = defaults.map(({ size_hint }) => Number.parseFloat(size_hint));
    expect(billions).toEqual(billions.toSorted((a, b) => a - b));
    expect(billions.filter((size) => size <= 3).length).toBeGreaterThan(billions.length / 2);
  });

  // The name in the answer of POST /api/defaults/<name>/use must stay the model's name.
  it.each(defaults)("$name is the alias of its file, with the same capabilities", (model) => {
    const resolved = resolver.resolve(model.from);
    if (resolved.kind !== "spec") throw new Error(`${model.from} is not a hub spec`);
    const { owner, repo, file = "" } = resolved.spec;
    const entry = aliases.get(model.name);
    expect(resolver.aliasOf(`${owner}/${repo}`, file)).toBe(model.name);
    expect(model.tags).toEqual(entry?.tags);
    expect(model.has_vision).toBe(entry?.tags.includes("vision"));
    expect(model.has_thinking).toBe(entry?.tags.includes("thinking"));
    expect(model.has_tools).toBe(entry?.tags.includes("tools"));
  });
});
