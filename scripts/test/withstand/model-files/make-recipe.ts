import {
  type GgufFile,
  type GgufValue,
  array,
  bool,
  f32,
  ggufHeader,
  i32,
  string,
  u16,
  u32,
  u64,
} from "../../../../test/support/gguf-writer.ts";
import type { Random } from "../kit/random.ts";
import { type Field, mapFields } from "./field-map.ts";
import { hostileTemplate } from "./hostile-template.ts";
import { type Base, type Change, type Recipe, type Shards, soundFile } from "./recipe.ts";

/** Numbers at which parsers tend to fail. */
const EDGES = [
  0n,
  1n,
  2n,
  3n,
  5n,
  7n,
  8n,
  9n,
  13n,
  31n,
  32n,
  33n,
  63n,
  64n,
  127n,
  128n,
  255n,
  256n,
  257n,
  4095n,
  65_535n,
  65_536n,
  2n ** 24n,
  2n ** 31n - 1n,
  2n ** 31n,
  2n ** 32n - 1n,
  2n ** 32n,
  2n ** 40n,
  2n ** 53n,
  2n ** 60n,
  2n ** 63n - 1n,
  2n ** 63n,
  2n ** 64n - 1n,
  2n ** 64n - 31n,
] as const;

/** Keys that llama.cpp or the daemon look for, beside those of the base; `%` is the architecture. */
const FURTHER_KEYS = [
  "general.alignment",
  "general.file_type",
  "general.type",
  "split.count",
  "split.no",
  "split.tensors.count",
  "%.vocab_size",
  "%.pooling_type",
  "%.expert_count",
  "%.expert_used_count",
  "%.attention.key_length",
  "%.attention.value_length",
  "%.attention.sliding_window",
  "%.attention.causal",
  "%.rope.freq_base",
  "%.rope.scaling.type",
  "%.rope.scaling.factor",
  "%.rope.dimension_sections",
  "%.logit_scale",
  "%.leading_dense_block_count",
  "%.ssm.state_size",
  "tokenizer.ggml.pre",
  "tokenizer.ggml.merges",
  "tokenizer.ggml.add_bos_token",
  "tokenizer.ggml.add_eos_token",
  "tokenizer.ggml.eot_token_id",
  "tokenizer.ggml.padding_token_id",
  "tokenizer.ggml.precompiled_charsmap",
  "tokenizer.chat_templates",
  "adapter.type",
  "adapter.lora.alpha",
] as const;

const ARCHITECTURES = [
  "llama",
  "qwen2",
  "qwen3",
  "gemma3",
  "phi3",
  "mamba",
  "rwkv7",
  "bert",
  "t5",
  "clip",
  "deepseek2",
  "gpt2",
  "",
  "nonsense",
  "%s%n",
] as const;

/** Keys with one value for each shard of a model. */
const SPLIT_KEYS = ["split.no", "split.count", "split.tensors.count"] as const;

const fieldsOf = new Map<string, readonly Field[]>();

/** Generates a damaged file, or a split model with one damaged file. */
export function makeRecipe(random: Random): Recipe {
  const base = random.pick<Base>(["llama", "llama", "llama", "llama", "bert", "adapter", "projector"]);
  const shards = base === "llama" && random.chance(0.2) ? drawShards(random) : undefined;
  const file = soundFile({ base, ...(shards && { shards }) });
  const name = JSON.stringify([base, shards]);
  const fields = fieldsOf.get(name) ?? mapFields(ggufHeader(file));
  fieldsOf.set(name, fields);
  const count =
    shards?.is !== undefined && random.chance(0.7) ? 0 : random.chance(0.5) ? 1 : random.int(2, 5);
  const draw = (): Change =>
    shards && random.chance(0.4) ? splitChange(random) : change(random, base, file, fields);
  return { base, ...(shards && { shards }), changes: Array.from({ length: count }, draw) };
}

function drawShards(random: Random): Shards {
  const count = random.pick([2, 3, 3, 5]);
  const wrong = random.int(0, count - 1);
  if (random.chance(0.4)) return { count, wrong };
  return { count, wrong, is: random.pick(["missing", "of another model", "of another split"]) };
}

function splitChange(random: Random): Change {
  const few = random.int(0, 6);
  const number = random.pick([u16(few), u16(few), i32(few), i32(20), u32(few), null]);
  return { key: random.pick(SPLIT_KEYS), value: random.chance(0.8) ? number : value(random) };
}

function change(random: Random, base: Base, model: GgufFile, fields: readonly Field[]): Change {
  const keys = Object.keys(model.metadata);
  const architecture = base === "projector" ? "clip" : base === "bert" ? "bert" : "llama";
  const lists = keys.filter((key) => model.metadata[key]?.type === "array");
  const draw = random.fraction();
  if (draw < 0.3) return { field: random.pick(fields).name, value: String(random.pick(EDGES)) };
  if (draw < 0.45) return { key: random.pick(keys), value: random.chance(0.2) ? null : value(random) };
  if (draw < 0.55) {
    return { key: random.pick(FURTHER_KEYS).replace("%", architecture), value: value(random) };
  }
  if (draw < 0.58) return { key: "general.architecture", value: string(random.pick(ARCHITECTURES)) };
  if (draw < 0.66 && base === "llama") {
    return { key: "tokenizer.chat_template", value: string(hostileTemplate(random)) };
  }
  if (draw < 0.72 && lists.length > 0) return { list: random.pick(lists), length: random.int(0, 600) };
  if (draw < 0.84) return tensorChange(random, model.tensors.length);
  if (draw < 0.92) {
    const at = random.chance(0.7) ? random.int(0, 8000) : -random.int(1, 60_000);
    return { at, flip: 1 << random.int(0, 7) };
  }
  return { cut: random.chance(0.5) ? random.int(0, 10_000) : random.int(0, 200_000) };
}

function tensorChange(random: Random, tensors: number): Change {
  const tensor = random.int(0, tensors - 1);
  const draw = random.fraction();
  if (draw < 0.3) return { tensor, gone: true };
  if (draw < 0.5)
    return {
      tensor,
      name: random.pick(["", "output.weight", "token_embd.weight", "blk.0.attn_q.weight", "x".repeat(200)]),
    };
  const size = (): number => random.pick([0, 1, 2, 31, 32, 33, 64, 381, 1000]);
  return {
    tensor,
    shape: Array.from({ length: random.int(1, 4) }, size).map((each, index) =>
      index > 1 ? Math.min(each, 2) : each,
    ),
  };
}

function value(random: Random): GgufValue {
  const edge = random.pick(EDGES);
  return random.pick<() => GgufValue>([
    () => u32(Number(BigInt.asUintN(32, edge))),
    () => u32(Number(BigInt.asUintN(32, edge))),
    () => i32(Number(BigInt.asIntN(32, edge))),
    () => u64(edge),
    () => u16(Number(BigInt.asUintN(16, edge))),
    () => f32(random.pick([0, -1, 1e-45, 3.4e38, Number.NaN, Number.POSITIVE_INFINITY, 0.5])),
    () => bool(random.chance(0.5)),
    () =>
      string(
        random.pick([
          "",
          "llama",
          "gpt2",
          "no_vocab",
          "x".repeat(100_000),
          "\u{1F600}",
          "%s%n",
          "linear",
          "yarn",
        ]),
      ),
    () => array("string", random.pick([[], ["a b", "c"], ["", ""], ["x".repeat(70_000)]])),
    () =>
      array(
        "u32",
        Array.from({ length: random.pick([0, 1, 2, 3, 5000]) }, () => Number(BigInt.asUintN(32, edge))),
      ),
    () =>
      array(
        "f32",
        Array.from({ length: random.pick([0, 1, 381]) }, () => Number.NaN),
      ),
    () => array("bool", [true, false]),
  ])();
}
