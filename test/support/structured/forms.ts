import { toLlamaSchema } from "../../../src/grammar/to-llama-schema.ts";
import type {
  GenerationRequest,
  JsonSchema,
  OutputFormat,
  ToolDefinition,
} from "../../../src/engine/protocol/generation.ts";
import { callSchema } from "../../../src/inference/tool-calls/forced-calls.ts";
import { chatRequest, promptRequest } from "../engine-fixture.ts";
import { compiledForms } from "./compiled-forms.ts";
import { fitsSchema } from "./fits-schema.ts";

/** One way to bind an answer, and what it must be when it ends by itself. */
export interface Form {
  readonly name: string;
  readonly format: OutputFormat;
  readonly isRight: (text: string) => boolean;
}

const object = (properties: JsonSchema, required = Object.keys(properties)): JsonSchema => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});

const TOOLS: readonly ToolDefinition[] = [
  { name: "get_weather", parameters: object({ city: { type: "string", minLength: 1, maxLength: 9 } }) },
  {
    name: "set_alarm",
    parameters: object({ minutes: { type: "integer" }, label: { enum: ["日", "é", "😀"] } }),
  },
];

/** Schemas that end soon, however they are filled. */
const SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  "a bounded text": object({ idTag: { type: "string", maxLength: 20 } }),
  "a text of one length": object({ a: { type: "string", minLength: 3, maxLength: 3 } }),
  "texts beyond ASCII": { enum: ["日本語", "naïve", "😀😃", "plain"] },
  "a constant beyond ASCII": { const: "Grüße 😀" },
  "a pattern": { type: "string", pattern: "^[a-z]{2,5}-[0-9]{1,3}$" },
  "a pattern beyond ASCII": { type: "string", pattern: "^[ぁ-ん]{1,4}$" },
  "a pattern that excludes": { type: "string", pattern: "^[^a-y]{1,4}$" },
  "a date": { type: "string", format: "date" },
  "a pattern with classes": { type: "string", pattern: "^\\d{4}-\\d\\d?\\s\\w{1,9}?$" },
  "a pattern of what JSON escapes": { type: "string", pattern: '^(\\n{2}|["\\\\]{1,3}|\\t?/|[!-~]{2})$' },
  "a pattern without anchors": { type: "string", pattern: "b|^c" },
  "a choice of forms": {
    anyOf: [{ type: "integer", minimum: 0, maximum: 99 }, { type: "null" }, { type: "boolean" }],
  },
  "bounded lists": object({
    list: { type: "array", items: { type: "string", maxLength: 2 }, minItems: 1, maxItems: 3 },
  }),
  "a recursive form": {
    $ref: "#/$defs/node",
    $defs: {
      node: object({
        name: { type: "string", maxLength: 3 },
        next: { anyOf: [{ type: "null" }, { $ref: "#/$defs/node" }] },
      }),
    },
  },
  "a forced tool call": callSchema(TOOLS),
};

/** Grammars in GBNF, and what is left of them when they are met. */
const GRAMMARS: Readonly<Record<string, readonly [string, RegExp]>> = {
  "letters beyond ASCII": ["root ::= [à-ÿ]{1,6}", /^[à-ÿ]{1,6}$/u],
  "characters of three bytes": ["root ::= [一-龠]{1,5}", /^[一-龠]{1,5}$/u],
  "characters of four bytes": ["root ::= [😀-🙏]{1,4}", /^[\u{1f600}-\u{1f64f}]{1,4}$/u],
  "all but ASCII": ["root ::= [^\\x00-\\x7F]{3}", /^[^\0-\x7f]{3}$/u],
  "all but letters": ['root ::= "<" [^a-zA-Z]{1,6} ">"', /^<[^a-zA-Z]{1,6}>$/u],
  anything: ["root ::= .{1,8}", /^.{1,8}$/su],
  "a choice of words": ['root ::= "日本" | "日曜" | "é" "!"?', /^(日本|日曜|é!?)$/u],
  "nested groups": ['root ::= (("a" | "é")+ | "ß"){1,3}', /^[aéß]+$/u],
};

/** Forms that can be met by every model; half of them end with every token, half of them never begin. */
export const FORMS: readonly Form[] = [
  { name: "any object", format: { type: "json" }, isRight: (text) => isJson(text, () => true) },
  ...Object.entries(SCHEMAS).map(([name, schema]) => schemaForm(name, schema)),
  ...Object.entries(GRAMMARS).map(([name, [grammar, right]]): Form => ({
    name,
    format: { type: "grammar", grammar },
    isRight: (text) => right.test(text),
  })),
  ...compiledForms().map(({ name, grammar, isRight }): Form => ({
    name,
    format: { type: "grammar", grammar },
    isRight,
  })),
];

/** Grammars that no text can meet. */
export const IMPOSSIBLE_GRAMMARS: readonly string[] = [
  "root ::= [z-a]",
  'root ::= "ab" [z-a]',
  'root ::= "\\x00"',
  "root ::= [\\uD800-\\uDFFF]",
  "root ::= [\\U00110000-\\U0013FFFF]",
  "root ::= <[999999]>",
];

export function schemaForm(name: string, schema: JsonSchema): Form {
  return {
    name,
    format: { type: "json_schema", schema: toLlamaSchema(schema).schema },
    isRight: (text) => isJson(text, (value) => fitsSchema(value, schema)),
  };
}

function isJson(text: string, isRight: (value: unknown) => boolean): boolean {
  try {
    return isRight(JSON.parse(text));
  } catch {
    return false;
  }
}

/** A request in which every token of the vocabulary is likely. */
export function wildRequest(format: OutputFormat, seed: number, kind: "chat" | "prompt"): GenerationRequest {
  const overrides = {
    format,
    maxTokens: 160,
    sampling: { seed, temperature: 1.5, topK: 0, topP: 1, minP: 0 },
  };
  return kind === "chat" ? chatRequest("Give me one.", overrides) : promptRequest("Give me one.", overrides);
}
