import { describe, expect, it } from "vitest";
import { detectCapabilities } from "../../../src/models/describe-model.ts";
import { NO_SETTINGS } from "../../../src/models/model.ts";

const PLAIN = "{% for message in messages %}{{ message.content }}{% endfor %}";
const generate = (
  chatTemplate: string | undefined,
): { purpose: "generate"; chatTemplate: string | undefined } => ({
  purpose: "generate",
  chatTemplate,
});

/** Of a projector for images. */
const IMAGES = { image: true, audio: false };

describe("the capabilities of a model", () => {
  it.each([
    ["no template", undefined, { tools: false, thinking: false }],
    ["a plain template", PLAIN, { tools: false, thinking: false }],
    [
      "a template that lists tools",
      "{%- if tools %}{{ tools | tojson }}{% endif %}",
      { tools: true, thinking: false },
    ],
    ["one that only repeats earlier calls", "{% if message['tool_calls'] %}{% endif %}", { tools: false }],
    ["a switch for thinking", "{% if enable_thinking is false %}{% endif %}", { thinking: true }],
    ["marks of thinking", "{{ '<think>\\n' }}", { thinking: true }],
    ["marks that are taken away", "{{ content.split('</think>')[-1] }}", { thinking: true }],
    ["other marks of thinking", "[THINK]", { thinking: true }],
    ["a channel for thinking", "<|channel|>analysis<|message|>", { thinking: true }],
  ])("are read from %s", (_what, template, expected) => {
    expect(detectCapabilities(generate(template), undefined, NO_SETTINGS)).toMatchObject({
      json: true,
      ...expected,
    });
  });

  it("include hearing with an audio projector, and not seeing", () => {
    const able = detectCapabilities(generate(PLAIN), { image: false, audio: true }, NO_SETTINGS);
    expect(able).toMatchObject({ vision: false, audio: true });
  });

  it("include vision with a projector", () => {
    expect(detectCapabilities(generate(PLAIN), IMAGES, NO_SETTINGS).vision).toBe(true);
    expect(detectCapabilities(generate(PLAIN), undefined, NO_SETTINGS).vision).toBe(false);
  });

  it.each(["embed", "rerank"] as const)("are none of these when the model is there to %s", (purpose) => {
    const all = detectCapabilities({ purpose, chatTemplate: "{{ tools }}<think>" }, IMAGES, NO_SETTINGS);
    expect(all).toEqual({ vision: false, audio: false, tools: false, thinking: false, json: false });
  });

  it("follow the template of the model's settings, not the one in the file", () => {
    const settings = { ...NO_SETTINGS, template: PLAIN };
    expect(detectCapabilities(generate("{{ tools }}<think>"), undefined, settings)).toMatchObject({
      tools: false,
      thinking: false,
    });
  });

  it("follow how thinking and calls look, where the settings say it", () => {
    const toolFormat = { style: "json", callStart: "<", callEnd: ">", resultStart: "[", resultEnd: "]" };
    const thinking = { start: "<t>", end: "</t>", enabled: true };
    const able = detectCapabilities(generate(PLAIN), undefined, { ...NO_SETTINGS, toolFormat, thinking });
    expect(able).toMatchObject({ tools: true, thinking: true });
    const off = detectCapabilities(generate("<think>"), undefined, {
      ...NO_SETTINGS,
      thinking: { ...thinking, enabled: false },
    });
    expect(off.thinking).toBe(false);
  });

  it("are above all what the settings say outright", () => {
    const capabilities = { vision: true, audio: true, tools: true, thinking: true, json: false };
    expect(detectCapabilities(generate(PLAIN), undefined, { ...NO_SETTINGS, capabilities })).toEqual(
      capabilities,
    );
  });
});
