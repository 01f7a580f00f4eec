import { describe, expect, test } from "vitest";
import type { ChatMessage } from "../../src/engine/protocol/generation.ts";
import { readModelfile } from "../../src/models/modelfile/read-modelfile.ts";
import {
  chatRequest,
  collect,
  doneOf,
  engineSpec,
  NEVER,
  promptRequest,
  SHIPPED_MODEL,
  startEngine,
  textOf,
} from "../support/engine-fixture.ts";
import { generated } from "../support/generated.ts";

const TOKENS = 4;

const say = (role: ChatMessage["role"], text: string): ChatMessage => ({
  role,
  content: [{ type: "text", text }],
});
const CONVERSATION = [
  say("system", "Be kind."),
  say("user", "Hi"),
  say("assistant", "Yo"),
  say("user", "So?"),
];

/** Equal prompt tokens and equal greedy answers show that llama.cpp has rendered the expected text. */
describe("llama.cpp renders a template of a Modelfile in Go's language", () => {
  test.each([
    [
      "of one turn",
      "{{ if .System }}<|system|>{{ .System }}\n{{ end }}<|user|>{{ .Prompt }}\n<|assistant|>{{ .Response }}</s>\n",
      "<|system|>Be kind.\n<|user|>Hi\n<|assistant|>Yo</s>\n<|user|>So?\n<|assistant|>",
    ],
    [
      "over the messages",
      `{{- range $i, $m := .Messages }}{{- $last := eq (len (slice $.Messages $i)) 1 }}[{{ .Role }}] {{ .Content }}{{ if not $last }};{{ end }}
{{ end }}{{ "{% %}" }}{{ if $.System }}({{ $.System }}){{ end }}`,
      "[user] Hi;\n[assistant] Yo;\n[user] So?\n{% %}(Be kind.)",
    ],
  ])("renders %s", async (_, template, expected) => {
    const { settings } = readModelfile(`FROM a\nTEMPLATE """${template}"""`, undefined);
    const engine = await startEngine(engineSpec(SHIPPED_MODEL, { chatTemplate: settings.template ?? "" }));
    try {
      const limits = { maxTokens: TOKENS, cachePrompt: false };
      const chat = await collect(
        generated(engine, chatRequest("", limits, { messages: CONVERSATION }), NEVER),
      );
      const raw = await collect(generated(engine, promptRequest(expected, limits), NEVER));
      expect(doneOf(chat).usage.promptTokens).toBe(doneOf(raw).usage.promptTokens);
      expect(textOf(chat)).toBe(textOf(raw));
    } finally {
      await engine.close();
    }
  });
});
