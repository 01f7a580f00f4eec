import { readFileSync, writeFileSync } from "node:fs";
import { type GgufFile, type GgufValue, writeGguf } from "../../../../test/support/gguf-writer.ts";
import {
  CHATML_TEMPLATE,
  CHATML_WORDS,
  shardsOf,
  tinyBert,
  tinyLlama,
  tinyLora,
  tinyProjector,
} from "../../../../test/support/tiny-models.ts";
import { shardFiles } from "../../../../src/models/names/model-file-names.ts";
import { mapFields, writeField } from "./field-map.ts";

const SHAPE = {
  embedding: 32,
  feedForward: 64,
  blocks: 2,
  heads: 4,
  kvHeads: 2,
  context: 256,
} as const;

/** The sound files that recipes begin with. */
export const BASES = {
  llama: () => tinyLlama({ ...SHAPE, words: CHATML_WORDS, chatTemplate: CHATML_TEMPLATE }),
  bert: () => tinyBert(),
  adapter: () => tinyLora({ embedding: SHAPE.embedding, blocks: SHAPE.blocks }),
  projector: () => tinyProjector({ textEmbedding: SHAPE.embedding }),
} as const;

export type Base = keyof typeof BASES;

/** One defect of a file, as plain data, so that a finding can be printed and saved. */
export type Change =
  /** A key has another value; null: it is missing. */
  | { readonly key: string; readonly value: GgufValue | null }
  /** A list of the vocabulary is cut to so many elements, or repeated until it has them. */
  | { readonly list: string; readonly length: number }
  /** A tensor is missing, has another name or another shape. */
  | {
      readonly tensor: number;
      readonly name?: string;
      readonly shape?: readonly number[];
      readonly gone?: true;
    }
  /** A number of the header, by its name in the field map; decimal digits. */
  | { readonly field: string; readonly value: string }
  /** Bits are flipped at this place, counted from the end when it is negative. */
  | { readonly at: number; readonly flip: number }
  /** Only so many bytes are left. */
  | { readonly cut: number };

/** Which shard of a split model is wrong. */
export interface Shards {
  readonly count: number;
  /** From 0; the changes are made to this one. */
  readonly wrong: number;
  /** State of the second shard: missing, of another model, or of the same model split into more parts. */
  readonly is?: "missing" | "of another model" | "of another split";
}

export interface Recipe {
  readonly base: Base;
  /** Absent: the model is one file. */
  readonly shards?: Shards;
  readonly changes: readonly Change[];
}

/** The sound file that the changes of a recipe are made to. */
export function soundFile({ base, shards }: Pick<Recipe, "base" | "shards">): GgufFile {
  const model = BASES[base]();
  if (!shards) return model;
  const { count, wrong, is } = shards;
  const whole = is === "of another model" ? tinyLlama({ embedding: SHAPE.embedding * 2 }) : model;
  return shardsOf(whole, is === "of another split" ? count + 1 : count)[wrong] ?? whole;
}

/**
 * Writes the file of a recipe, or all files of its split model.
 * @returns what has been written, first the file by which a model is loaded
 */
export function writeRecipe(path: string, recipe: Recipe): readonly string[] {
  const { base, shards, changes } = recipe;
  const wrong = soundFile(recipe);
  if (!shards) {
    writeChanged(path, wrong, changes);
    return [path];
  }
  const files = shardFiles(
    path.replace(/\.gguf$/, `-00001-of-${String(shards.count).padStart(5, "0")}.gguf`),
  );
  for (const [index, sound] of shardsOf(BASES[base](), shards.count).entries()) {
    const file = files[index] ?? path;
    if (index !== shards.wrong) writeGguf(file, sound);
    else if (shards.is !== "missing") writeChanged(file, wrong, changes);
  }
  return files;
}

function writeChanged(path: string, sound: GgufFile, changes: readonly Change[]): void {
  const model = changes.reduce(changeModel, sound);
  writeGguf(path, model);
  if (!changes.some((change) => "field" in change || "at" in change || "cut" in change)) return;
  let bytes: Buffer = readFileSync(path);
  const fields = new Map(mapFields(bytes).map((field) => [field.name, field]));
  for (const change of changes) {
    if ("field" in change) {
      const field = fields.get(change.field);
      // Another change may have taken its key or tensor away.
      if (field) writeField(bytes, field, BigInt(change.value));
    } else if ("at" in change) {
      const at = change.at < 0 ? bytes.length + change.at : change.at;
      bytes[at % bytes.length]! ^= change.flip;
    } else if ("cut" in change) bytes = bytes.subarray(0, change.cut);
  }
  writeFileSync(path, bytes);
}

function changeModel(model: GgufFile, change: Change): GgufFile {
  if ("key" in change) {
    const { [change.key]: _, ...others } = model.metadata;
    return { ...model, metadata: change.value === null ? others : { ...others, [change.key]: change.value } };
  }
  if ("list" in change) {
    const list = model.metadata[change.list];
    if (list?.type !== "array" || list.value.length === 0) return model;
    const value = Array.from({ length: change.length }, (_, index) => list.value[index % list.value.length]!);
    return { ...model, metadata: { ...model.metadata, [change.list]: { ...list, value } } };
  }
  if ("tensor" in change) {
    const { tensor: number, name, shape, gone } = change;
    const tensors = model.tensors.flatMap((tensor, index) => {
      if (index !== number % model.tensors.length) return [tensor];
      return gone ? [] : [{ ...tensor, name: name ?? tensor.name, shape: shape ?? tensor.shape }];
    });
    return { ...model, tensors };
  }
  return model;
}
