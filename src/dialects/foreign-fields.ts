import { ignored, refused } from "../http/input/known-fields.ts";

/**
 * Fields of llama.cpp's server, vLLM and their relatives that would change an answer and cannot be kept: they are
 * refused, so that nobody takes an answer for one that has them. Values that ask for nothing are accepted.
 */
export const foreignFields = {
  min_tokens: refused("an answer ends where the model ends it; say in the prompt how long it should be", 0),
  stop_token_ids: refused("send the texts of the tokens in stop"),
  include_stop_str_in_output: refused("an answer does not contain its stop sequence", false),
  bad_words: refused("give their tokens a logit_bias of -100; POST /tokenize tells them"),
  allowed_token_ids: refused("describe the answer with a grammar or a JSON schema"),
  logits_processors: refused("use logit_bias, a grammar or a JSON schema"),
  use_beam_search: refused("answers are sampled; send n for several", false),
  length_penalty: refused("it belongs to beam search", 1),
  prompt_logprobs: refused("POST /v1/completions reports them with echo and logprobs"),
  post_sampling_probs: refused("log-probabilities are those before sampling", false),
  skip_special_tokens: refused("special tokens are never part of the text", true),
  truncate_prompt_tokens: refused("prompts are not shortened; send one that fits"),
  chat_template: refused("a template belongs to the model; create one with TEMPLATE in its Modelfile"),
  documents: refused("put them in a message, or pass them to the template in chat_template_kwargs"),
  structural_tag: refused("use tools, or describe the whole answer with a grammar"),
  ebnf: refused("send it in grammar, as GBNF"),
  guided_whitespace_pattern: refused("describe the answer with a grammar"),
  grammar_lazy: refused("a grammar holds from the first token", false),
  reasoning_format: refused("reasoning is always apart from the text of an answer", "auto", "deepseek"),
  "speculative.n_min": refused("how few tokens are worth a step is learned; limit guesses with draft_max", 0),
  "speculative.p_min": refused(
    "how sure a draft model has to be is fixed; limit guesses with draft_max",
    0,
    0.75,
  ),
  reasoning_budget_message: refused("thinking that has used its budget ends without a message"),
  reasoning_budget_start_tag: refused("tags belong to the model; create one with THINKING in its Modelfile"),
  reasoning_budget_end_tag: refused("tags belong to the model; create one with THINKING in its Modelfile"),
  reasoning_budget_end_tags: refused("tags belong to the model; create one with THINKING in its Modelfile"),
  guided_decoding_backend: ignored("there is one"),
  spaces_between_special_tokens: ignored("special tokens are never part of the text"),
  request_id: ignored("send it in the header X-Request-Id"),
};
