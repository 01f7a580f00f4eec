/** What a tensor is for, as far as its quantization depends on it. */
type TensorRole =
  | "output"
  | "token-embedding"
  | "attention-value"
  | "attention-key"
  | "attention-output"
  | "ffn-down"
  | "other";

/** Parts of names in llama.cpp's order; the first that a name contains decides. */
const ROLES: readonly (readonly [part: string, role: TensorRole])[] = [
  ["attn_qkv.weight", "attention-value"],
  ["attn_kv_b.weight", "attention-value"],
  ["attn_v.weight", "attention-value"],
  ["attn_k.weight", "attention-key"],
  ["attn_q.weight", "other"],
  ["attn_output.weight", "attention-output"],
  ["ffn_up", "other"],
  ["ffn_gate", "other"],
  ["ffn_down", "ffn-down"],
];

export const OUTPUT = "output.weight";

/** The role of a tensor, as tensor_get_category() of llama-quant.cpp finds it. */
export function roleOf(name: string): TensorRole {
  if (name === OUTPUT) return "output";
  if (name === "token_embd.weight" || name === "per_layer_token_embd.weight") return "token-embedding";
  return ROLES.find(([part]) => name.includes(part))?.[1] ?? "other";
}

/** Names of matrices that stay as they are: they are small, or quality depends on them. */
const KEPT: readonly string[] = [
  "_norm.weight",
  "ffn_gate_inp.weight",
  "ffn_gate_tid2eid.weight",
  "altup",
  "laurel",
  "per_layer_model_proj",
  "ssm_conv1d",
  "shortconv.conv.weight",
  "indexer.k_proj.weight",
  "indexer.q_proj.weight",
  "time_mix_first.weight",
  "time_mix_w0.weight",
  "time_mix_w1.weight",
  "time_mix_w2.weight",
  "time_mix_v0.weight",
  "time_mix_v1.weight",
  "time_mix_v2.weight",
  "time_mix_a0.weight",
  "time_mix_a1.weight",
  "time_mix_a2.weight",
  "time_mix_g1.weight",
  "time_mix_g2.weight",
  "time_mix_decay_w1.weight",
  "time_mix_decay_w2.weight",
  "time_mix_lerp_fused.weight",
  "attn_rel_b.weight",
  ".position_embd",
  "sam.pos_embd",
  "sam.neck.",
  "sam.net_",
  ".rel_pos",
  ".patch_embd",
  ".patch_merger",
  "a.rvq.codebook",
  "mm.a.code_embd",
];
const KEPT_WHOLE: ReadonlySet<string> = new Set(["position_embd.weight", "token_types.weight"]);

/** Whether a tensor is quantized at all, as tensor_allows_quantization() of llama-quant.cpp decides. */
export function isQuantizable(name: string, shape: readonly number[]): boolean {
  return (
    dimensionsOf(shape) >= 2 &&
    name.endsWith("weight") &&
    !KEPT_WHOLE.has(name) &&
    !KEPT.some((part) => name.includes(part))
  );
}

/** Dimensions without those of length 1 at the end, at least one. */
export function dimensionsOf(shape: readonly number[]): number {
  return Math.max(1, shape.findLastIndex((length) => length > 1) + 1);
}
