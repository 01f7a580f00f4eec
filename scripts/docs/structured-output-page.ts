import { KEYWORDS } from "../../src/grammar/keywords.ts";

const INTRODUCTION = `# Structured output

<!-- Made by scripts/docs/generate.ts from src/grammar/keywords.ts and scripts/docs/structured-output-page.ts. -->

An answer that has to fit a JSON Schema fits it: the schema is compiled into a grammar, so the model can write nothing else, and what a grammar cannot say is checked before the answer is sent.

## Where

| API | field | strict mode |
|---|---|---|
| OpenAI, chat completions | \`response_format\`, \`json_schema\`; \`parameters\` of tools | \`strict: true\` |
| OpenAI, responses | \`text.format\`; \`parameters\` of tools | \`strict: true\` |
| Anthropic | \`output_config.format\`; \`input_schema\` of tools | always for a format, \`strict: true\` of a tool |
| Ollama | \`format\`; \`parameters\` of tools | never |
| native | \`format\`; \`parameters\` of tools | never |

## What is promised

- **By the grammar.** Most keywords are in the grammar. Such an answer is streamed as it is written.
- **By the check.** Where the grammar would become too large (many alternatives, distinct items, a long limit beside a pattern), the answer is held back until it is complete, checked against the whole schema and, if it does not fit, generated again, three times in all, each with another seed. The error names the field and the keyword when no try fits.
- **Not at all.** A reference to another document, a \`$dynamicRef\` whose meaning depends on the way to it, a pattern with a back-reference, and what is not JSON Schema (a type that nobody knows, a limit that is not a number) are ignored, which the header \`x-daybreak-warning\` of the answer says. In strict mode, and for a call that must be made, the request is refused instead, with the field and the keyword.

- **Calls that the model may make.** A call that is required, or one beside an answer with a format, is kept as above. Where the model decides and writes its calls in its template's own format, llama.cpp makes their grammar, and knows fewer keywords: no limits of numbers that are not integers, no \`format\` but dates, times and uuid, no \`not\`, \`allOf\`, \`uniqueItems\` and the like. What it does not know is told in the header; with \`strict: true\` the answer is held back, and its calls are checked and generated again like an answer. No schema makes such a request fail.
- **After reasoning.** Where the model thinks first, llama.cpp makes the grammar, too, and the rest is checked.

An answer that is cut off by a limit of tokens is not complete JSON: the reason of its end says so.

A schema that no value fits is refused, with the field that contradicts itself. So is one that is too large to follow within a fixed amount of work.

Most schemas become a grammar within a millisecond or two. What takes longer, a large schema, a pattern, a list of texts, a grammar in Lark's language, or the rest of a long answer that has begun, is done in a thread of its own (\`src/daemon/grammars/grammar-thread.ts\`), so other requests' tokens do not wait for it; in a browser tab, which has one user, there is no such thread. What has not become a grammar after 20 seconds is refused. The check of a long answer, or by a large schema, is done there, too; one in which more than a million subschemas and values meet fails the answer.

## Beginnings

Where a conversation ends with an assistant message that the API continues, the answer goes on within the grammar if the message is the beginning of such an answer, as \`{\` is; if it is not, the whole of the answer follows it. In OpenAI's APIs an answer that has a format, or must be a call, is a new message, unless \`continue_final_message\` is true.

## How it is written

- Properties come in the order of the schema; optional ones may be left out, and others are written only where \`additionalProperties\` or \`patternProperties\` ask for them. Strings have only the escapes that JSON needs, numbers no exponent.
- JSON is compact, or pretty printed with up to 20 blanks of indentation. Nothing follows its end.
- Formats have their common texts: every \`email\` that is written is one, but no quoted local part is written.

## What is tolerated

Schemas as agents send them are read as they are meant: types in capitals or with names of other languages, \`nullable\`, \`required\` in a property, \`exclusiveMinimum: true\`, draft 7's tuples, numbers as texts, \`null\` or an empty list instead of a keyword, unknown keywords. Siblings of \`$ref\` hold in every draft.

## How well

The official test suite of JSON Schema, without its remote documents and custom dialects (\`npm run test:conformance\` prints the figures and fails when one sample is wrong):

| draft | schemas | by the grammar | by the check | nothing fits | refused in strict mode | enforced |
|---|---|---|---|---|---|---|
| 7 | 279 | 259 | 9 | 9 | 2 | 99.3 % |
| 2020-12 | 395 | 354 | 14 | 10 | 17 | 95.7 % |

200 random texts of each grammar, 127,200 in all, fit their schemas, as ajv judges them. Of the suite's 1,795 valid values 24 are not written as they stand, for another order of properties or an exponent, and 103 for an uncommon text of a format.

## Keywords

| keyword | how | note |
|---|---|---|
`;

/** The text of docs/structured-output.md. */
export function structuredOutputPage(): string {
  const rows = Object.entries(KEYWORDS).map(
    ([name, { treatment, note }]) => `| \`${name}\` | ${treatment} | ${note} |`,
  );
  return `${INTRODUCTION}${rows.join("\n")}\n`;
}
