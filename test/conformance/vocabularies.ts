/** Special tokens that several families of models have. */

export const HERMES_WORDS = [
  "<think>",
  "</think>",
  "<tool_call>",
  "</tool_call>",
  "<tool_response>",
  "</tool_response>",
];
export const CHATML = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
export const LLAMA3 = [
  "<|begin_of_text|>",
  "<|end_of_text|>",
  "<|start_header_id|>",
  "<|end_header_id|>",
  "<|eot_id|>",
  "<|eom_id|>",
  "<|python_tag|>",
];
export const MISTRAL = [
  "<s>",
  "</s>",
  "[INST]",
  "[/INST]",
  "[AVAILABLE_TOOLS]",
  "[/AVAILABLE_TOOLS]",
  "[TOOL_CALLS]",
  "[TOOL_RESULTS]",
  "[/TOOL_RESULTS]",
];
export const DEEPSEEK = ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"];
export const DEEPSEEK_WORDS = [
  "<｜User｜>",
  "<｜Assistant｜>",
  "<think>",
  "</think>",
  "<｜tool▁calls▁begin｜>",
  "<｜tool▁calls▁end｜>",
  "<｜tool▁call▁begin｜>",
  "<｜tool▁call▁end｜>",
  "<｜tool▁outputs▁begin｜>",
  "<｜tool▁outputs▁end｜>",
  "<｜tool▁output▁begin｜>",
  "<｜tool▁output▁end｜>",
  "<｜tool▁sep｜>",
];
export const KIMI = [
  "[BOS]",
  "[EOS]",
  "<|im_system|>",
  "<|im_user|>",
  "<|im_assistant|>",
  "<|im_middle|>",
  "<|im_end|>",
  "<|media_start|>",
  "<|media_content|>",
  "<|media_end|>",
  "<|media_pad|>",
];
export const KIMI_WORDS = [
  "<|tool_calls_section_begin|>",
  "<|tool_calls_section_end|>",
  "<|tool_call_begin|>",
  "<|tool_call_argument_begin|>",
  "<|tool_call_end|>",
];
