import { FAMILIES } from "../../test/conformance/families.ts";
import type { Family } from "../../test/conformance/family.ts";

const PROSE = `# Families of chat templates

<!-- Made by scripts/docs/generate.ts; the prose is in scripts/docs/templates-page.ts, the table comes from what test/conformance/templates.test.ts checks. -->

A model's chat template says how a conversation is written for it, and so how its answers are to be read. Nothing of that writing reaches a client: no tags of reasoning or of calls, no headers of roles, no tokens that end a turn. For each family in the table, \`npm run test:conformance\` has a model say what the family's models say, token by token, and checks what arrives: text that looks like tags, reasoning on and off, calls alone, together, behind text and behind reasoning, answers that are cut off, messages that go on, results of calls with ids of every style, and images where models of the family see them.

Other templates work as well: a reader of their answers is made from the template. TOOLFORMAT and THINKING in a [Modelfile](modelfile.md) help where that fails.

- **Reader**: who reads the answers. *exact*: llama.cpp knows the family. *template*: llama.cpp makes a reader from the template. *Daybreak*: it reads the calls itself, because llama.cpp misses them or fails on other text. Arguments of such calls are not bound to the tool's schema while they are written, unless a call is required.
- **Calls**: *several* in one answer, or *one*. Names and arguments are streamed as they are written. *–*: the template does not show the model any tools.
- **Goes on**: a conversation that ends with an assistant message is continued, with tools, too.

One thing can be missing where llama.cpp reads the answers: it holds back the end of a text that may be the beginning of a tag, and when the answer is over, its stream has the rest neither as text nor as tokens or log-probabilities. An answer that ends exactly so, such as with \`<\` when tools are offered (gpt-oss: even without tools), lacks those last characters.

`;

const READERS: Readonly<Record<Family["reader"], string>> = {
  "llama.cpp": "exact",
  template: "template",
  daybreak: "Daybreak",
};

/** The text of docs/templates.md. */
export function templatesPage(): string {
  const rows = FAMILIES.map((family) => {
    const { title, reader, think, alwaysThinks, calls, single, images, gaps } = family;
    const cells = [
      title,
      READERS[reader],
      think ? (alwaysThinks ? "always" : "yes") : "–",
      calls ? (single ? "one" : "several") : "–",
      "yes",
      images ? "yes" : "–",
      gaps?.note ?? "",
    ];
    return `| ${cells.join(" | ")} |\n`;
  });
  const head =
    "| family | reader | thinking | calls | goes on | images | what is missing |\n|---|---|---|---|---|---|---|\n";
  return `${PROSE}${head}${rows.join("")}`;
}
