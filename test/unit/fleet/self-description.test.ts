import { expect, test } from "vitest";
import { loadSettingsSchema } from "../../../src/config/load-settings.ts";
import { settingsDigest } from "../../../src/fleet/self-description.ts";
import { NO_SETTINGS } from "../../../src/models/model.ts";

type Described = Parameters<typeof settingsDigest>[0];

function digest(further: Partial<Described>): string {
  return settingsDigest({
    settings: NO_SETTINGS,
    loadSettings: {},
    adapters: [],
    gguf: { purpose: "generate" },
    ...further,
  });
}

/** As reported by the engine of a loaded model. */
const LOADED = loadSettingsSchema.parse({
  modelFiles: ["a.gguf"],
  contextSize: 2048,
  gpuLayers: 12,
  slots: 4,
  threads: 2,
  batchSize: 256,
  flashAttention: "auto",
  contextShift: false,
});

test("the settings digest is equal for a loaded and an unloaded model", () => {
  expect(digest({ loadSettings: LOADED })).toBe(digest({}));
});

test("the settings digest of an encoder ignores context shift", () => {
  const gguf = { purpose: "embed" } as const;
  expect(digest({ gguf, loadSettings: LOADED })).toBe(digest({ gguf, loadSettings: { contextShift: true } }));
});

test("the settings digest ignores settings that have their default value", () => {
  expect(digest({ loadSettings: { cacheTypeK: "f16", cacheTypeV: "f16", numKeep: 0, cacheReuse: 0 } })).toBe(
    digest({}),
  );
});

test.each([
  { loadSettings: { cacheTypeK: "q8_0" } },
  { loadSettings: { contextShift: true } },
  { loadSettings: { ropeFreqScale: 0.5 } },
  { settings: { ...NO_SETTINGS, system: "Be brief." } },
  { adapters: [{ path: "", name: "a", scale: 1 }] },
] satisfies Partial<Described>[])("the settings digest depends on %j", (further) => {
  expect(digest(further)).not.toBe(digest({}));
});
