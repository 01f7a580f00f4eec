import type { Call, Family } from "./family.ts";
import {
  HERMES_WORDS,
  CHATML,
  LLAMA3,
  MISTRAL,
  DEEPSEEK,
  DEEPSEEK_WORDS,
  KIMI,
  KIMI_WORDS,
} from "./vocabularies.ts";

const json = (value: unknown): string =>
  JSON.stringify(value).replaceAll('":', '": ').replaceAll('","', '", "').replaceAll("},{", "}, {");

const plain = (text: string): string => text;

const hermes = (calls: readonly Call[]): string =>
  calls.map((call) => `<tool_call>\n${json(call)}\n</tool_call>`).join("\n");

const xml = (calls: readonly Call[]): string =>
  calls
    .map(({ name, arguments: given }) => {
      const parameters = Object.entries(given).map(
        ([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`,
      );
      return `<tool_call>\n<function=${name}>\n${parameters.join("")}</function>\n</tool_call>`;
    })
    .join("\n");

const kimi = (calls: readonly Call[]): string =>
  `<|tool_calls_section_begin|>${calls
    .map(
      ({ name, arguments: given }, at) =>
        `<|tool_call_begin|>functions.${name}:${at}<|tool_call_argument_begin|>${json(given)}<|tool_call_end|>`,
    )
    .join("")}<|tool_calls_section_end|>`;

export const FAMILIES: readonly Family[] = [
  {
    name: "qwen3",
    title: "Qwen 3",
    reader: "template",
    control: CHATML,
    words: HERMES_WORDS,
    end: "<|im_end|>",
    think: (reasoning) => `<think>\n${reasoning}\n</think>\n\n`,
    thinkOpen: "<think>\n",
    text: plain,
    calls: hermes,
  },
  {
    name: "qwen3-coder",
    title: "Qwen 3 Coder",
    reader: "llama.cpp",
    control: CHATML,
    words: HERMES_WORDS,
    end: "<|im_end|>",
    text: plain,
    calls: xml,
  },
  {
    name: "qwen3.5",
    title: "Qwen 3.5",
    reader: "llama.cpp",
    control: CHATML,
    words: HERMES_WORDS,
    end: "<|im_end|>",
    think: (reasoning) => `${reasoning}\n</think>\n\n`,
    thinkOpen: "",
    text: plain,
    calls: xml,
  },
  {
    name: "llama-3.1",
    title: "Llama 3.1 and 3.3",
    reader: "daybreak",
    control: LLAMA3,
    begin: "<|begin_of_text|>",
    end: "<|eot_id|>",
    text: plain,
    calls: (calls) => calls.map(({ name, arguments: given }) => json({ name, parameters: given })).join("\n"),
    single: true,
  },
  {
    name: "llama-3.2",
    title: "Llama 3.2",
    reader: "daybreak",
    control: LLAMA3,
    begin: "<|begin_of_text|>",
    end: "<|eot_id|>",
    text: plain,
    calls: (calls) => calls.map(({ name, arguments: given }) => json({ name, parameters: given })).join("\n"),
    single: true,
  },
  {
    name: "mistral-nemo",
    title: "Mistral Nemo",
    reader: "template",
    control: MISTRAL,
    begin: "<s>",
    end: "</s>",
    text: plain,
    calls: (calls) => `[TOOL_CALLS]${json(calls.map((call, at) => ({ ...call, id: `abcdefgh${at}` })))}`,
  },
  {
    name: "mistral-small-3.2",
    title: "Mistral Small 3.2",
    reader: "daybreak",
    images: true,
    control: [
      ...MISTRAL,
      "[SYSTEM_PROMPT]",
      "[/SYSTEM_PROMPT]",
      "[CALL_ID]",
      "[ARGS]",
      "[TOOL_CONTENT]",
      "[IMG]",
    ],
    begin: "<s>",
    end: "</s>",
    text: plain,
    calls: (calls) =>
      calls
        .map(
          ({ name, arguments: given }, at) => `[TOOL_CALLS]${name}[CALL_ID]abcdefgh${at}[ARGS]${json(given)}`,
        )
        .join(""),
  },
  {
    name: "ministral-3",
    title: "Ministral 3",
    reader: "llama.cpp",
    images: true,
    control: [
      ...MISTRAL,
      "[SYSTEM_PROMPT]",
      "[/SYSTEM_PROMPT]",
      "[CALL_ID]",
      "[ARGS]",
      "[TOOL_CONTENT]",
      "[IMG]",
      "[THINK]",
      "[/THINK]",
    ],
    begin: "<s>",
    end: "</s>",
    think: (reasoning) => `[THINK]${reasoning}[/THINK]`,
    thinkOpen: "[THINK]",
    text: plain,
    calls: (calls) =>
      calls.map(({ name, arguments: given }) => `[TOOL_CALLS]${name}[ARGS]${json(given)}`).join(""),
  },
  {
    name: "gemma-3",
    title: "Gemma 3",
    reader: "template",
    images: true,
    control: ["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>"],
    begin: "<bos>",
    end: "<end_of_turn>",
    text: plain,
  },
  {
    name: "gemma-4",
    title: "Gemma 4",
    reader: "llama.cpp",
    images: true,
    control: ["<bos>", "<eos>", "<|turn>", "<turn|>", "<|tool>", "<tool|>", "<|think|>"],
    words: [
      "<|channel>",
      "<channel|>",
      "<|tool_call>",
      "<tool_call|>",
      "<|tool_response>",
      "<tool_response|>",
      '<|"|>',
    ],
    begin: "<bos>",
    end: "<turn|>",
    think: (reasoning) => `<|channel>thought\n${reasoning}\n<channel|>`,
    thinkOpen: "<|channel>thought\n",
    text: plain,
    calls: (calls) =>
      calls
        .map(({ name, arguments: given }) => {
          const written = Object.entries(given).map(([key, value]) => `${key}:<|"|>${value}<|"|>`);
          return `<|tool_call>call:${name}{${written.join(",")}}<tool_call|>`;
        })
        .join(""),
  },
  {
    name: "gpt-oss",
    title: "gpt-oss",
    reader: "llama.cpp",
    // llama.cpp continues the final message of a turn, and reads nothing behind it; its chunks are empty from there on.
    gaps: {
      cases: /^text that goes on with a call/,
      note: "text that goes on is the last message of its turn: a call behind it is lost",
    },
    control: [
      "<|startoftext|>",
      "<|endoftext|>",
      "<|start|>",
      "<|end|>",
      "<|message|>",
      "<|channel|>",
      "<|constrain|>",
      "<|return|>",
      "<|call|>",
    ],
    begin: "<|startoftext|>",
    end: "<|return|>",
    think: (reasoning) => `<|channel|>analysis<|message|>${reasoning}<|end|><|start|>assistant`,
    thinkOpen: "<|channel|>analysis<|message|>",
    text: (text) => `<|channel|>final<|message|>${text}`,
    preamble: (text) => `<|channel|>commentary<|message|>${text}`,
    join: "<|end|><|start|>assistant",
    formatted: (text) => `<|channel|>final <|constrain|>json<|message|>${text}`,
    calls: (calls) =>
      calls
        .map(
          ({ name, arguments: given }) =>
            `<|channel|>commentary to=functions.${name} <|constrain|>json<|message|>${json(given)}<|call|>`,
        )
        .join(""),
    single: true,
  },
  {
    name: "deepseek-r1",
    title: "DeepSeek R1",
    reader: "template",
    control: DEEPSEEK,
    words: DEEPSEEK_WORDS,
    begin: "<｜begin▁of▁sentence｜>",
    end: "<｜end▁of▁sentence｜>",
    think: (reasoning) => `${reasoning}\n</think>\n\n`,
    thinkOpen: "",
    alwaysThinks: true,
    text: plain,
  },
  {
    name: "deepseek-r1-tools",
    title: "DeepSeek R1 with tools",
    reader: "template",
    control: DEEPSEEK,
    words: DEEPSEEK_WORDS,
    begin: "<｜begin▁of▁sentence｜>",
    end: "<｜end▁of▁sentence｜>",
    think: (reasoning) => `${reasoning}\n</think>\n\n`,
    thinkOpen: "",
    alwaysThinks: true,
    text: plain,
    calls: (calls) =>
      `<｜tool▁calls▁begin｜>${calls
        .map(
          ({ name, arguments: given }) =>
            `<｜tool▁call▁begin｜>function<｜tool▁sep｜>${name}\n\`\`\`json\n${json(given)}\n\`\`\`<｜tool▁call▁end｜>`,
        )
        .join("\n")}<｜tool▁calls▁end｜>`,
  },
  {
    name: "deepseek-v3.1",
    title: "DeepSeek V3.1",
    reader: "template",
    control: DEEPSEEK,
    words: DEEPSEEK_WORDS,
    begin: "<｜begin▁of▁sentence｜>",
    end: "<｜end▁of▁sentence｜>",
    think: (reasoning) => `${reasoning}</think>`,
    thinkOpen: "",
    text: plain,
  },
  {
    name: "deepseek-v3.1-tools",
    title: "DeepSeek V3.1 with tools",
    reader: "template",
    control: DEEPSEEK,
    words: DEEPSEEK_WORDS,
    begin: "<｜begin▁of▁sentence｜>",
    end: "<｜end▁of▁sentence｜>",
    think: (reasoning) => `${reasoning}</think>`,
    thinkOpen: "",
    text: plain,
    calls: (calls) =>
      `<｜tool▁calls▁begin｜>${calls
        .map(
          ({ name, arguments: given }) =>
            `<｜tool▁call▁begin｜>${name}<｜tool▁sep｜>${json(given)}<｜tool▁call▁end｜>`,
        )
        .join("")}<｜tool▁calls▁end｜>`,
  },
  {
    name: "granite-3.3",
    title: "Granite 3.3",
    reader: "daybreak",
    control: ["<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>"],
    end: "<|end_of_text|>",
    think: (reasoning) => `<think>${reasoning}</think>`,
    thinkOpen: "<think>",
    thoughtText: (text) => `<response>${text}</response>`,
    text: plain,
    calls: (calls) => `<|tool_call|>${json(calls)}`,
  },
  {
    name: "granite-4",
    title: "Granite 4",
    reader: "template",
    control: ["<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>"],
    words: ["<tool_call>", "</tool_call>"],
    end: "<|end_of_text|>",
    text: plain,
    calls: hermes,
  },
  {
    name: "command-r7b",
    title: "Command R7B",
    reader: "template",
    control: [
      "<BOS_TOKEN>",
      "<|START_OF_TURN_TOKEN|>",
      "<|END_OF_TURN_TOKEN|>",
      "<|USER_TOKEN|>",
      "<|CHATBOT_TOKEN|>",
      "<|SYSTEM_TOKEN|>",
      "<|START_THINKING|>",
      "<|END_THINKING|>",
      "<|START_ACTION|>",
      "<|END_ACTION|>",
      "<|START_RESPONSE|>",
      "<|END_RESPONSE|>",
      "<|START_TOOL_RESULT|>",
      "<|END_TOOL_RESULT|>",
    ],
    begin: "<BOS_TOKEN>",
    end: "<|END_OF_TURN_TOKEN|>",
    think: (reasoning) => `<|START_THINKING|>${reasoning}<|END_THINKING|>`,
    thinkOpen: "<|START_THINKING|>",
    textEnd: "<|END_RESPONSE|>",
    text: (text) => `<|START_RESPONSE|>${text}<|END_RESPONSE|>`,
    calls: (calls) =>
      `<|START_ACTION|>[\n${calls
        .map(
          ({ name, arguments: given }, at) =>
            `    {"tool_call_id": "${at}", "tool_name": "${name}", "parameters": ${json(given)}}`,
        )
        .join(",\n")}\n]<|END_ACTION|>`,
  },
  {
    name: "glm-4.6",
    title: "GLM 4.5 and 4.6",
    reader: "template",
    control: [
      "[gMASK]",
      "<sop>",
      "<|endoftext|>",
      "<|system|>",
      "<|user|>",
      "<|assistant|>",
      "<|observation|>",
    ],
    words: [
      "<think>",
      "</think>",
      "<tool_call>",
      "</tool_call>",
      "<tool_response>",
      "</tool_response>",
      "<arg_key>",
      "</arg_key>",
      "<arg_value>",
      "</arg_value>",
    ],
    end: "<|endoftext|>",
    think: (reasoning) => `\n<think>${reasoning}</think>`,
    thinkOpen: "\n<think>",
    text: (text) => `\n${text}`,
    calls: (calls) =>
      calls
        .map(({ name, arguments: given }) => {
          const written = Object.entries(given).map(
            ([key, value]) => `<arg_key>${key}</arg_key>\n<arg_value>${value}</arg_value>\n`,
          );
          return `\n<tool_call>${name}\n${written.join("")}</tool_call>`;
        })
        .join(""),
  },
  {
    name: "kimi-k2",
    title: "Kimi K2",
    reader: "llama.cpp",
    control: KIMI,
    words: KIMI_WORDS,
    end: "<|im_end|>",
    text: plain,
    calls: kimi,
  },
  {
    name: "kimi-k2-thinking",
    title: "Kimi K2 Thinking",
    reader: "llama.cpp",
    control: KIMI,
    words: [...KIMI_WORDS, "<think>", "</think>"],
    end: "<|im_end|>",
    think: (reasoning) => `<think>${reasoning}</think>`,
    thinkOpen: "<think>",
    text: plain,
    calls: kimi,
  },
];
