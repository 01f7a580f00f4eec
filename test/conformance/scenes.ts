import type { ChatMessage, ContentPart, ToolDefinition } from "../../src/engine/protocol/generation.ts";
import type { Scene } from "../support/scripted/scripted-engine.ts";
import { scriptLength } from "../support/scripted/scripted-model.ts";
import { tinyPng } from "../support/tiny-png.ts";
import type { Call, Family } from "./family.ts";

/** Answer as a client sees it: text and reasoning joined. */
export interface Answer {
  readonly reasoning: string;
  readonly text: string;
  readonly calls: readonly Call[];
  readonly reason: string;
  /** Kinds of what came, in order. */
  readonly order: string;
}

export interface Case {
  readonly name: string;
  readonly scene: Scene;
  readonly expected: Partial<Answer>;
}

const TOOLS: ToolDefinition[] = [
  {
    name: "get_weather",
    description: "Weather of a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, unit: { type: "string" } },
      required: ["city"],
    },
  },
  {
    name: "get_time",
    description: "Time in a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
];

const WEATHER: Call = { name: "get_weather", arguments: { city: "Paris", unit: "C" } };
const TIME: Call = { name: "get_time", arguments: { city: "Rome" } };

const say = (role: ChatMessage["role"], text: string, more: Partial<ChatMessage> = {}): ChatMessage => ({
  role,
  content: text === "" ? [] : [{ type: "text", text }],
  ...more,
});

const ASKED = [say("user", "How is it?")];
const SYSTEM = [say("system", "Be kind."), ...ASKED];

/** Looks like tags, and is not. */
const LOOKALIKES = 'If a < b, <tool, </thin, [TOOL, <| or {"a": 1} is <b>text</b>.';

function called(id: string, { name, arguments: given }: Call) {
  return { id, name, arguments: JSON.stringify(given) };
}

/** A conversation in which two calls were made and answered. */
function withResults(one: string, other: string): ChatMessage[] {
  return [
    ...SYSTEM,
    say("assistant", "", { toolCalls: [called(one, WEATHER), called(other, TIME)] }),
    say("tool", "Sun.", { toolCallId: one, name: WEATHER.name }),
    say("tool", "Noon.", { toolCallId: other, name: TIME.name }),
  ];
}

/** All that is asked of a family. */
export function casesOf(family: Family): Case[] {
  const { think, calls } = family;
  return [
    ...textCases(family),
    ...(think ? thinkingCases(family, think) : []),
    ...(calls ? callCases(family, calls) : []),
    ...(think && calls ? thoughtfulCalls(family, think, calls) : []),
    ...prefillCases(family),
    ...(family.images ? imageCases(family) : []),
  ];
}

function chat(messages: ChatMessage[], more: Partial<Scene["input"]> = {}): Scene["input"] {
  return { kind: "chat", messages, tools: [], toolChoice: "auto", parallelToolCalls: true, ...more };
}

/** A text that is cut off where a word would come; the end of the turn, which is counted too, does not come. */
function cutOff(family: Family, says: string, word: string): Pick<Scene, "says" | "maxTokens"> {
  return { says, maxTokens: scriptLength(says.slice(0, says.indexOf(word)), family) - 1 };
}

function textCases(family: Family): Case[] {
  const { text, alwaysThinks } = family;
  if (alwaysThinks) return [];
  const expected = { reasoning: "", text: "It is fine.", calls: [], reason: "stop" };
  return [
    { name: "text", scene: { input: chat(ASKED), says: text("It is fine.") }, expected },
    {
      name: "text, with a system message",
      scene: { input: chat(SYSTEM), says: text("It is fine.") },
      expected,
    },
    {
      name: "text that looks like tags",
      scene: { input: chat(ASKED), says: text(LOOKALIKES) },
      expected: { ...expected, text: LOOKALIKES },
    },
    {
      name: "text that is cut off",
      scene: { input: chat(ASKED), ...cutOff(family, text("It is fine."), "ne.") },
      expected: { text: "It is fi", calls: [], reasoning: "", reason: "length" },
    },
  ];
}

function thinkingCases(family: Family, think: (text: string) => string): Case[] {
  const { thinkOpen = "", thoughtText: text = family.text } = family;
  const input = chat(ASKED, { thinking: true });
  return [
    {
      name: "reasoning and text",
      scene: { input, says: think("Let me see.") + text("It is fine.") },
      expected: {
        reasoning: "Let me see.",
        text: "It is fine.",
        calls: [],
        reason: "stop",
        order: "reasoning, text",
      },
    },
    {
      name: "reasoning that looks like tags",
      scene: { input, says: think(LOOKALIKES) + text(LOOKALIKES) },
      expected: { reasoning: LOOKALIKES, text: LOOKALIKES, calls: [], reason: "stop" },
    },
    {
      name: "reasoning that is cut off",
      scene: { input, ...cutOff(family, `${thinkOpen}Let me see whether`, "ether") },
      expected: { reasoning: "Let me see wh", text: "", calls: [], reason: "length", order: "reasoning" },
    },
  ];
}

function callCases(family: Family, calls: (calls: readonly Call[]) => string): Case[] {
  const {
    text,
    think,
    alwaysThinks,
    single,
    join = "",
    preamble = text,
    formatted = (json: string) => json,
  } = family;
  const before = alwaysThinks && think ? think("Hm.") : "";
  const thinking = alwaysThinks ? { thinking: true } : {};
  const input = chat(ASKED, { tools: TOOLS, ...thinking });
  const expected = { text: "", calls: [WEATHER], reason: "tool_calls" };
  const cases: Case[] = [
    { name: "a call", scene: { input, says: before + calls([WEATHER]) }, expected },
    {
      name: "a call that is cut off",
      scene: { input, ...cutOff(family, before + calls([WEATHER]), "ris") },
      expected: { text: "", reason: "length" },
    },
    {
      name: "text and a call",
      scene: { input, says: before + preamble("I will look.") + join + calls([WEATHER]) },
      expected: {
        ...expected,
        text: "I will look.",
        order: before === "" ? "text, call" : "reasoning, text, call",
      },
    },
    {
      name: "a call that is required",
      scene: {
        input: { ...input, toolChoice: "required" },
        says: before + formatted(JSON.stringify(WEATHER)),
      },
      expected,
    },
    {
      name: "text, with tools",
      scene: { input, says: before + text("It is fine.") },
      expected: { text: "It is fine.", calls: [], reason: "stop" },
    },
    {
      name: "text that looks like tags, with tools",
      scene: { input, says: before + text(LOOKALIKES) },
      expected: { text: LOOKALIKES, calls: [], reason: "stop" },
    },
    {
      name: "a call, with a system message",
      scene: { input: chat(SYSTEM, { tools: TOOLS, ...thinking }), says: before + calls([WEATHER]) },
      expected,
    },
    ...["call_Ab12Cd34Ef56", "abcdefghi", "functions.get_weather:0"].map((id) => ({
      name: `text after results, with ids like ${id}`,
      scene: {
        input: chat(withResults(id, `${id.slice(0, -1)}1`), { tools: TOOLS, ...thinking }),
        says: before + text("It is fine."),
      },
      expected: { text: "It is fine.", calls: [], reason: "stop" },
    })),
    {
      name: "a call after results",
      scene: {
        input: chat(withResults("call_1", "call_2"), { tools: TOOLS, ...thinking }),
        says: before + calls([WEATHER]),
      },
      expected,
    },
    {
      name: "the first of several calls, if one is allowed",
      scene: {
        input: { ...input, parallelToolCalls: false },
        says: before + calls(single ? [WEATHER] : [WEATHER, TIME]),
      },
      expected,
    },
  ];
  if (!single) {
    cases.push({
      name: "two calls",
      scene: { input, says: before + calls([WEATHER, TIME]) },
      expected: { ...expected, calls: [WEATHER, TIME] },
    });
  }
  return cases;
}

function thoughtfulCalls(
  { text: plain, thoughtText: text = plain }: Family,
  think: (text: string) => string,
  calls: (calls: readonly Call[]) => string,
): Case[] {
  const input = chat(ASKED, { tools: TOOLS, thinking: true });
  return [
    {
      name: "reasoning and a call",
      scene: { input, says: think("Let me see.") + calls([WEATHER]) },
      expected: {
        reasoning: "Let me see.",
        text: "",
        calls: [WEATHER],
        reason: "tool_calls",
        order: "reasoning, call",
      },
    },
    {
      name: "reasoning and text, with tools",
      scene: { input, says: think("Let me see.") + text("It is fine.") },
      expected: { reasoning: "Let me see.", text: "It is fine.", calls: [], reason: "stop" },
    },
  ];
}

function prefillCases(family: Family): Case[] {
  const { calls, think, join = "", textEnd = "", text, alwaysThinks } = family;
  const before = alwaysThinks && think ? think("Hm.") : "";
  const messages = [...ASKED, say("assistant", "It is")];
  const thinkings = think ? [undefined, true, false] : [undefined];
  const empty: Case = {
    name: "an empty message that goes on",
    scene: { input: chat([...ASKED, say("assistant", "")]), says: before + text("It is fine.") },
    expected: { text: "It is fine.", calls: [], reason: "stop" },
  };
  const begun = [[], ...(calls ? [TOOLS] : [])].flatMap((tools) =>
    thinkings.flatMap((thinking) => {
      const input = chat(messages, { tools, ...(thinking !== undefined && { thinking }) });
      const name = `${tools.length > 0 ? "with tools" : "without tools"}${thinking === undefined ? "" : `, thinking ${thinking}`}`;
      const each: Case[] = [
        {
          name: `text that goes on, ${name}`,
          scene: { input, says: " quite fine." },
          expected: { reasoning: "", text: " quite fine.", calls: [], reason: "stop" },
        },
      ];
      if (calls && tools.length > 0) {
        each.push({
          name: `text that goes on with a call, ${name}`,
          scene: { input, says: ` near.${textEnd}${join}${calls([WEATHER])}` },
          expected: { reasoning: "", text: " near.", calls: [WEATHER], reason: "tool_calls" },
        });
      }
      return each;
    }),
  );
  return [empty, ...begun];
}

function imageCases({ text }: Family): Case[] {
  const image: ContentPart = { type: "image", data: tinyPng(32, 32) };
  const words: ContentPart = { type: "text", text: "What is it?" };
  const contents: readonly (readonly [string, ContentPart[]])[] = [
    ["an image before the words", [image, words]],
    ["an image behind the words", [words, image]],
    ["two images", [image, words, image]],
  ];
  return contents.map(([name, content]) => ({
    name: `text about ${name}`,
    scene: { input: chat([say("system", "Be kind."), { role: "user", content }]), says: text("It is fine.") },
    expected: { reasoning: "", text: "It is fine.", calls: [], reason: "stop" },
  }));
}
