import type { TextTags } from "./drop-text-tags.ts";
import type { CallFormat } from "./tool-format/read-written-calls.ts";

/** What is peculiar to the chat templates of a family, beyond what llama.cpp knows of them. */
export interface TemplateTraits {
  /** The template cannot show a message with several calls. */
  readonly oneCallPerMessage?: boolean;
  /** Stands before the text of an answer; llama.cpp leaves it out where a message goes on. */
  readonly textStart?: string;
  /** Stand around the text of an answer, where llama.cpp leaves them in it. */
  readonly textTags?: TextTags;
  /** An answer is text only behind markup of the template, which llama.cpp's grammars for a format have. */
  readonly wrapsText?: boolean;
  /** The token that ends a turn, where llama.cpp shows it as text. */
  readonly endOfTurn?: string;
  /** Ends the reasoning that the prompt has begun, where llama.cpp does not see it. */
  readonly reasoningEnd?: string;
  /** What the prompt has begun it with. */
  readonly reasoningStart?: string;
  /** Tags that may end reasoning; llama.cpp shows their beginnings as text, even if the reasoning goes on. */
  readonly echoedTags?: readonly string[];
  /** How calls are written, where llama.cpp's reader misses them or fails on other text. */
  readonly calls?: CallFormat;
}

interface Family extends TemplateTraits {
  /** Texts that only the family's templates have, in this order. */
  readonly template: readonly string[];
}

const FAMILIES: readonly Family[] = [
  {
    // Llama 3.1 to 3.3. llama.cpp takes any brace for the beginning of a call, and fails when it is not.
    template: ["only supports single tool-calls at once"],
    oneCallPerMessage: true,
    calls: {
      heads: [
        ["<|python_tag|>", '{"name":"', "NAME", '","parameters":'],
        ['{"name":"', "NAME", '","parameters":'],
        ['{"type":"function","name":"', "NAME", '","parameters":'],
      ],
      tail: "};",
      isTagged: false,
    },
  },
  {
    // Mistral Small 3.2 and others of its time. With llama.cpp's grammar, the ids of their calls spoil what follows.
    template: ["[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"],
    calls: {
      heads: [
        ["[TOOL_CALLS]", "NAME", "[CALL_ID]", "ID", "[ARGS]"],
        ["[TOOL_CALLS]", "NAME", "[ARGS]"],
      ],
      tail: "",
      isTagged: true,
    },
  },
  {
    // Granite 3: the template does not show how calls are written; llama.cpp hides their tag and shows the rest as text.
    template: ["<|tool_call|>", "list of tools"],
    textTags: { start: "<response>", end: "</response>" },
    calls: {
      heads: [
        ["<|tool_call|>", '[{"name":"', "NAME", '","arguments":'],
        ['[{"name":"', "NAME", '","arguments":'],
        ['{"name":"', "NAME", '","arguments":'],
      ],
      tail: "},]",
      isTagged: false,
    },
  },
  // gpt-oss: the template shows only the first call of a message.
  { template: ["<|channel|>", "functions."], oneCallPerMessage: true, wrapsText: true },
  // Command R7B
  { template: ["<|START_RESPONSE|>"], textStart: "<|START_RESPONSE|>", wrapsText: true },
  {
    // DeepSeek V3.1 as published: an answer without reasoning is begun by the end of one.
    template: ["<｜Assistant｜></think>"],
    reasoningStart: "<think>",
    reasoningEnd: "</think>",
    endOfTurn: "<｜end▁of▁sentence｜>",
  },
  // Kimi K2 Thinking, whose calls may end its reasoning.
  {
    template: ["<|tool_calls_section_begin|>"],
    echoedTags: ["<|tool_calls_section_begin|>", "<|tool_call_begin|>"],
  },
  { template: ["<｜end▁of▁sentence｜>"], endOfTurn: "<｜end▁of▁sentence｜>" }, // DeepSeek
];

/** The traits of the family that a template belongs to; none for other families. */
export function traitsOf(template: string | undefined): TemplateTraits {
  return (template !== undefined && FAMILIES.find((family) => hasAll(template, family.template))) || {};
}

/** Whether a text has these, each behind the one before. It is looked through once: a model's file may have any template. */
function hasAll(text: string, parts: readonly string[]): boolean {
  let at = 0;
  return parts.every((part) => {
    const found = text.indexOf(part, at);
    at = found + part.length;
    return found >= 0;
  });
}
