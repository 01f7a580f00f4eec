import { z } from "zod";
import { withoutUndefined } from "../json/json-values.ts";

/** More tokens of context than any model is trained for. */
const MAX_TOKENS = 16 * 1024 * 1024;
/** Maximum batch size. Larger batches gain nothing and delay cancellation. */
const MAX_BATCH_TOKENS = 8192;
/** Hundred times the RoPE base of models for millions of tokens. */
const MAX_ROPE_BASE = 1e10;
/** Scale that stretches positions a thousandfold. */
const MIN_ROPE_SCALE = 0.001;
/** Maximum of YaRN's beta values; llama.cpp's defaults are 1 and 32. */
const MAX_ROTATIONS = 1000;
/** Maximum of YaRN's attention factor. */
const MAX_ATTENTION_FACTOR = 10;

/** Data types of keys and values in the KV cache. */
const KV_CACHE_TYPES = ["f32", "f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"] as const;

function setting<Type extends z.ZodType>(type: Type, description: string): z.ZodOptional<Type> {
  return type.optional().describe(description);
}

/**
 * Settings for how llama.cpp loads a model. The configuration, the options of a load, the PARAMETERs of a Modelfile and
 * their documentation are derived from this schema; {@link settingName} gives the names that they use. An undefined
 * setting means the daemon's choice, or llama.cpp's default.
 */
export const loadSettingsSchema = z.object({
  flashAttention: setting(
    z.enum(["auto", "true", "false"]),
    "Flash attention. auto: on a GPU that has it, and with a quantized cache_type_v, which needs it.",
  ),
  cacheTypeK: setting(
    z.enum(KV_CACHE_TYPES),
    "Format of the keys in the KV cache; f16 unless set. q8_0 halves them.",
  ),
  cacheTypeV: setting(
    z.enum(KV_CACHE_TYPES),
    "Format of the values in the KV cache; f16 unless set. A quantized one needs flash attention.",
  ),
  batchSize: setting(
    z.int().min(1).max(MAX_BATCH_TOKENS),
    "Prompt tokens processed in one step; chosen by the model's size unless set.",
  ),
  ropeScaling: setting(
    z.enum(["none", "linear", "yarn"]),
    "How RoPE stretches positions beyond the trained context; as the GGUF file says unless set.",
  ),
  ropeFreqBase: setting(
    z.number().min(1).max(MAX_ROPE_BASE),
    "Base frequency of RoPE; the model's unless set.",
  ),
  ropeFreqScale: setting(
    z.number().min(MIN_ROPE_SCALE).max(1),
    "Frequency scale of RoPE: 0.25 stretches the context fourfold; the model's unless set.",
  ),
  yarnOrigCtx: setting(
    z.int().min(1).max(MAX_TOKENS),
    "YaRN: tokens of context that the model was trained for; as the GGUF file says unless set.",
  ),
  yarnExtFactor: setting(
    z.number().min(0).max(1),
    "YaRN: how much is extrapolated; 0: all is interpolated. 1 with rope_scaling yarn unless set.",
  ),
  yarnAttnFactor: setting(
    z.number().gt(0).max(MAX_ATTENTION_FACTOR),
    "YaRN: factor of the attention's magnitude; the model's, otherwise 1, unless set.",
  ),
  yarnBetaFast: setting(
    z.number().gt(0).max(MAX_ROTATIONS),
    "YaRN: rotations above which a dimension is extrapolated; 32 unless set.",
  ),
  yarnBetaSlow: setting(
    z.number().gt(0).max(MAX_ROTATIONS),
    "YaRN: rotations below which a dimension is interpolated; 1 unless set.",
  ),
  contextShift: setting(
    z.boolean(),
    "When the context is full, drop the older half of it behind the first num_keep tokens and go on, instead of ending the answer.",
  ),
  numKeep: setting(
    z.int().min(-1).max(MAX_TOKENS),
    "First tokens that context_shift never drops; -1: the whole prompt. 0 unless set.",
  ),
  cacheReuse: setting(
    z.int().min(0).max(MAX_TOKENS),
    "Least tokens of a part of a prompt that is taken from the KV cache although what precedes it has changed, which alters answers a little; 0, which is off, unless set.",
  ),
  pooling: setting(
    z.enum(["mean", "cls", "last"]),
    "How the vectors of a text's tokens become its embedding; as the GGUF file says unless set, mean for a model that generates.",
  ),
});
export type LoadSettings = z.infer<typeof loadSettingsSchema>;
export type LoadSetting = keyof LoadSettings;

/** Name in snake case: `cacheTypeK` is `cache_type_k`. */
type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? First extends Lowercase<First>
    ? `${First}${SnakeCase<Rest>}`
    : `_${Lowercase<First>}${SnakeCase<Rest>}`
  : Name;

type Shape = typeof loadSettingsSchema.shape;

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema has exactly these keys
const FIELDS = Object.keys(loadSettingsSchema.shape) as LoadSetting[];

/** Settings by their external names. */
export const LOAD_SETTINGS: ReadonlyMap<string, LoadSetting> = new Map(
  FIELDS.map((field) => [settingName(field), field]),
);

/** External name of a setting: in snake case. */
export function settingName(field: LoadSetting): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Schemas of all settings by external name, for the configuration. */
export const namedLoadSettings = mapByName((schema) => schema);

/** Schemas for requests, in which null means the same as absence. */
export const nullableLoadSettings = mapByName((schema) =>
  schema.nullable().describe(schema.description ?? ""),
);

function mapByName<Made extends z.ZodType>(
  make: (schema: Shape[LoadSetting]) => Made,
): { [Field in LoadSetting as SnakeCase<Field>]: Made } {
  const entries = FIELDS.map((field) => [settingName(field), make(loadSettingsSchema.shape[field])]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- made of these names
  return Object.fromEntries(entries) as { [Field in LoadSetting as SnakeCase<Field>]: Made };
}

/** Reads the settings from validated values by external name; null means the same as absence. */
export function readLoadSettings(named: Readonly<Record<string, unknown>>): LoadSettings {
  const entries = [...LOAD_SETTINGS].map(([name, field]) => [field, named[name] ?? undefined]);
  return loadSettingsSchema.parse(Object.fromEntries(entries.filter(([, value]) => value !== undefined)));
}

/** Defined settings by external name. */
export function nameLoadSettings(settings: LoadSettings): Record<string, string | number | boolean> {
  return Object.fromEntries(
    [...LOAD_SETTINGS].flatMap(([name, field]) => {
      const value = settings[field];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Merges settings; the first that defines one wins. */
export function mergeLoadSettings(...settings: readonly LoadSettings[]): LoadSettings {
  return Object.assign({}, ...settings.toReversed().map(withoutUndefined));
}
