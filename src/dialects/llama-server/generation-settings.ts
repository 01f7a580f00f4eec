import type { Sampling } from "../../engine/protocol/generation.ts";
import { SAMPLING_ENTRIES } from "../../engine/protocol/sampling-fields.ts";

/** What llama.cpp does where nobody says otherwise. */
const DEFAULTS = {
  min_p: 0.05,
  typical_p: 1,
  top_n_sigma: -1,
  repeat_penalty: 1,
  repeat_last_n: 64,
  presence_penalty: 0,
  frequency_penalty: 0,
  dry_multiplier: 0,
  dry_base: 1.75,
  dry_allowed_length: 2,
  dry_penalty_last_n: -1,
  dry_sequence_breakers: ["\n", ":", '"', "*"],
  xtc_probability: 0,
  xtc_threshold: 0.1,
  dynatemp_range: 0,
  dynatemp_exponent: 1,
  mirostat: 0,
  mirostat_tau: 5,
  mirostat_eta: 0.1,
  adaptive_target: -1,
  adaptive_decay: 0.9,
  min_keep: 0,
  samplers: ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"],
  /** A new one for each request. */
  seed: 0xffff_ffff,
  logit_bias: [],
  ignore_eos: false,
  t_max_predict_ms: 0,
  n_indent: 0,
} as const;

/** The settings of an answer, by llama.cpp's names. */
export function generationSettings(
  sampling: Sampling,
  { limit, stop, stream }: { limit: number | undefined; stop: readonly string[]; stream: boolean },
): Record<string, unknown> {
  const inEffect = SAMPLING_ENTRIES.map(([key, { name }]) => [name, sampling[key]]);
  const given = Object.fromEntries(inEffect.filter(([, value]) => value !== undefined));
  return {
    ...DEFAULTS,
    ...given,
    n_predict: limit ?? -1,
    max_tokens: limit ?? -1,
    n_keep: 0,
    n_discard: 0,
    stop,
    stream,
  };
}
