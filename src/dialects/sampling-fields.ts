import { z } from "zod";
import type { Sampling } from "../engine/protocol/generation.ts";
import {
  MAX_DRY_BREAKER_LENGTH,
  MAX_DRY_BREAKERS,
  SAMPLER_NAMES,
  SAMPLERS,
  SAMPLING_ENTRIES,
  type SamplingFields,
  type SamplingKey,
} from "../engine/protocol/sampling-fields.ts";
import { dictionary, list } from "../http/input/bounded-lists.ts";
import { toSeed } from "../inference/default-sampling.ts";

const LETTERS = Object.values(SAMPLERS).join("");
const bias = z.union([z.number().min(-100).max(100), z.literal(false)]);

/** Settings that requests write in another way than the engine does. */
const wireTypes = {
  topK: z.int().min(-1).max(1_000_000),
  seed: z.int(),
  samplers: z.union([
    list(z.enum(SAMPLER_NAMES), { most: SAMPLER_NAMES.length }),
    z
      .string()
      .max(SAMPLER_NAMES.length)
      .regex(new RegExp(`^[${LETTERS}]*$`), `must consist of the letters ${LETTERS}`),
  ]),
  drySequenceBreakers: list(z.string().min(1).max(MAX_DRY_BREAKER_LENGTH), {
    least: 1,
    most: MAX_DRY_BREAKERS,
  }),
  logitBias: z.union([
    dictionary(bias, z.string().regex(/^\d{1,10}$/, "must be a token ID")),
    list(z.tuple([z.int().min(0), bias])),
  ]),
} as const satisfies Partial<Record<SamplingKey, z.ZodType>>;
type WireTypes = typeof wireTypes;

type WireType<Key extends SamplingKey> = Key extends keyof WireTypes
  ? WireTypes[Key]
  : SamplingFields[Key]["type"];
type NamesOf<Key extends SamplingKey> =
  | SamplingFields[Key]["name"]
  | (SamplingFields[Key] extends { aliases: readonly (infer Alias extends string)[] } ? Alias : never);
type SamplingShape = {
  [Key in SamplingKey as NamesOf<Key>]: z.ZodOptional<z.ZodNullable<WireType<Key>>>;
};

/** A setting's own name comes before its aliases. */
function namesOf([, { name, aliases = [] }]: (typeof SAMPLING_ENTRIES)[number]): readonly string[] {
  return [name, ...aliases];
}

/** All settings of sampling, as fields of a request. Null means the same as leaving one out. */
// The names and types are those of the table.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const samplingFields = Object.fromEntries(
  SAMPLING_ENTRIES.flatMap((entry) => {
    const [key, { name, type, description, default: value }] = entry;
    const byKey: Partial<Record<SamplingKey, z.ZodType>> = wireTypes;
    const field = (byKey[key] ?? type).nullish();
    const said = value === undefined ? description : `${description} Default: ${value}.`;
    return namesOf(entry).map((each) => [
      each,
      field.describe(each === name ? said : `Another name of ${name}.`),
    ]);
  }),
) as unknown as SamplingShape;

const samplingObject = z.object(samplingFields);
type SamplingBody = Partial<z.output<typeof samplingObject>>;

/** The settings of a request by the engine's keys; those that it leaves out are undefined. */
export function toSampling(body: SamplingBody): Sampling {
  const given: Readonly<Record<string, unknown>> = body;
  const plain = SAMPLING_ENTRIES.map((entry) => {
    const value = namesOf(entry)
      .map((name) => given[name])
      .find((each) => each != null);
    return [entry[0], value];
  });
  return {
    ...Object.fromEntries(plain),
    topK: body.top_k == null ? undefined : Math.max(0, body.top_k),
    seed: toSeed(body.seed),
    samplers: toSamplers(body.samplers),
    logitBias: toLogitBias(body.logit_bias),
  };
}

function toSamplers(samplers: SamplingBody["samplers"]): Sampling["samplers"] {
  if (typeof samplers !== "string") return samplers ?? undefined;
  return Array.from(samplers, (letter) => SAMPLER_NAMES.find((name) => SAMPLERS[name] === letter)).filter(
    (name) => name !== undefined,
  );
}

function toLogitBias(biases: SamplingBody["logit_bias"]): Sampling["logitBias"] {
  if (biases == null) return undefined;
  const pairs = Array.isArray(biases) ? biases : Object.entries(biases);
  return pairs.map(([token, value]) => ({ token: Number(token), bias: value === false ? BAN : value }));
}

/** Low enough that no other token is less likely. */
const BAN = -100;
