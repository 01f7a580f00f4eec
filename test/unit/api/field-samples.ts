/** Value of every sampling setting that differs from its default. */
export const SAMPLING_SAMPLES = {
  temperature: 0.1,
  top_p: 0.1,
  top_k: 3,
  min_p: 0.1,
  typical_p: 0.1,
  top_n_sigma: 1,
  repeat_penalty: 1.5,
  repetition_penalty: 1.5,
  repeat_last_n: 3,
  presence_penalty: 1,
  frequency_penalty: 1,
  dry_multiplier: 1,
  dry_base: 2,
  dry_allowed_length: 3,
  dry_penalty_last_n: 4,
  dry_sequence_breakers: ["\n"],
  xtc_probability: 0.5,
  xtc_threshold: 0.2,
  dynatemp_range: 0.5,
  dynatemp_exponent: 2,
  mirostat: 1,
  mirostat_tau: 3,
  mirostat_eta: 0.5,
  adaptive_target: 0.5,
  adaptive_decay: 0.5,
  min_keep: 2,
  samplers: ["top_k", "temperature"],
  seed: 5,
  logit_bias: { 3: 1 },
  ignore_eos: true,
  t_max_predict_ms: 100,
  n_indent: 2,
  draft_max: 8,
  "speculative.n_max": 8,
};

/** Such values of other fields of llama.cpp's server. */
export const ENGINE_SAMPLES = {
  cache_prompt: false,
  id_slot: 1,
  lora: [{ id: 0, scale: 1 }],
  n_keep: 3,
  n_discard: 5,
  n_cache_reuse: 64,
};

/** Such values of the thinking fields of a chat. */
export const THINKING_SAMPLES = {
  thinking_budget_tokens: 4,
  thinking_token_budget: 5,
  reasoning_budget_tokens: 6,
};

/** Format fields that become a schema. */
export const SCHEMA_SAMPLES = { json_schema: { type: "number" }, guided_json: '{"type":"number"}' };

/** Format fields including those that become a grammar, which cannot be combined with tools. */
export const GRAMMAR_SAMPLES = {
  grammar: "root ::= [a]",
  regex: "a+",
  guided_regex: "a+",
  guided_choice: ["a", "b"],
  guided_grammar: 'start: "a"',
  structured_outputs: { choice: ["a"] },
};
