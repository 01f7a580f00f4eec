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

/** Media of an image projector. */
const IMAGES = { image: true, audio: false };

describe("detectCapabilities()", () => {
  it.each([
    ["no template", undefined, { tools: false, thinking: false }],
    ["a plain template", PLAIN, { tools: false, thinking: false }],
    [
      "a template that lists tools",
      "{%- if tools %}{{ tools | tojson }}{% endif %}",
      { tools: true, thinking: false },
    ],
    [
      "a template that only repeats earlier tool calls",
      "{% if message['tool_calls'] %}{% endif %}",
      { tools: false },
    ],
    ["a switch for thinking", "{% if enable_thinking is false %}{% endif %}", { thinking: true }],
    ["thinking tags", "{{ '<think>\\n' }}", { thinking: true }],
    ["thinking tags that are removed", "{{ content.split('</think>')[-1] }}", { thinking: true }],
    ["other thinking tags", "[THINK]", { thinking: true }],
    ["a channel for thinking", "<|channel|>analysis<|message|>", { thinking: true }],
  ])("reads them from %s", (_what, template, expected) => {
    expect(detectCapabilities(generate(template), undefined, NO_SETTINGS)).toMatchObject({
      json: true,
      ...expected,
    });
  });

  it("with an audio projector has audio and no vision", () => {
    const able = detectCapabilities(generate(PLAIN), { image: false, audio: true }, NO_SETTINGS);
    expect(able).toMatchObject({ vision: false, audio: true });
  });

  it("with an image projector has vision", () => {
    expect(detectCapabilities(generate(PLAIN), IMAGES, NO_SETTINGS).vision).toBe(true);
    expect(detectCapabilities(generate(PLAIN), undefined, NO_SETTINGS).vision).toBe(false);
  });

  it.each(["embed", "rerank"] as const)("finds none for a model that can only %s", (purpose) => {
    const all = detectCapabilities({ purpose, chatTemplate: "{{ tools }}<think>" }, IMAGES, NO_SETTINGS);
    expect(all).toEqual({ vision: false, audio: false, tools: false, thinking: false, json: false });
  });

  it("uses the template of the settings instead of the one in the file", () => {
    const settings = { ...NO_SETTINGS, template: PLAIN };
    expect(detectCapabilities(generate("{{ tools }}<think>"), undefined, settings)).toMatchObject({
      tools: false,
      thinking: false,
    });
  });

  it("uses the thinking tags and tool format of the settings", () => {
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

  it("lets capabilities in the settings override everything", () => {
    const capabilities = { vision: true, audio: true, tools: true, thinking: true, json: false };
    expect(detectCapabilities(generate(PLAIN), undefined, { ...NO_SETTINGS, capabilities })).toEqual(
      capabilities,
    );
  });
});
