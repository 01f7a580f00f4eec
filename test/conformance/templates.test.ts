import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { InferenceEvent } from "../../src/inference/inference.ts";
import { temporaryFolder } from "../support/engine-fixture.ts";
import { type ScriptedEngine, startScriptedEngine } from "../support/scripted/scripted-engine.ts";
import { FAMILIES } from "./families.ts";
import { type Answer, type Case, casesOf } from "./scenes.ts";

/** The templates that are checked; another folder may have the published ones under the same names. */
const TEMPLATES = process.env["DAYBREAK_TEMPLATES"] ?? fileURLToPath(new URL("templates", import.meta.url));

const folder = temporaryFolder();
afterAll(() => fs.rmSync(folder, { recursive: true }));

function answerOf(events: readonly InferenceEvent[]): Answer {
  const calls: { name: string; text: string }[] = [];
  const kinds: string[] = [];
  let reasoning = "";
  let text = "";
  let reason = "";
  const came = (kind: string): void => {
    if (kinds.at(-1) !== kind) kinds.push(kind);
  };
  for (const event of events) {
    if (event.type === "text-delta") {
      text += event.text;
      if (event.text !== "") came("text");
    } else if (event.type === "reasoning-delta") {
      reasoning += event.text;
      came("reasoning");
    } else if (event.type === "tool-call-start") {
      calls[event.index] = { name: event.name, text: "" };
      came("call");
    } else if (event.type === "tool-call-delta") calls[event.index]!.text += event.arguments;
    else if (event.type === "done") reason = event.reason;
  }
  return {
    reasoning,
    // Blanks between text and a call are as the model writes them.
    text: calls.length > 0 ? text.trimEnd() : text,
    calls: calls.map((call) => ({ name: call.name, arguments: argumentsOf(call.text) })),
    reason,
    order: kinds.join(", "),
  };
}

function argumentsOf(text: string): Record<string, string> {
  try {
    return JSON.parse(text);
  } catch {
    return { incomplete: text };
  }
}

describe.each(FAMILIES.map((family) => [family.title, family] as const))("%s", (_, family) => {
  const cases = casesOf(family);
  let engine: ScriptedEngine;
  beforeAll(async () => {
    const chatTemplate = fs.readFileSync(path.join(TEMPLATES, `${family.name}.jinja`), "utf8");
    engine = await startScriptedEngine(
      folder,
      family.name,
      { ...family, chatTemplate },
      cases.map(({ scene }) => scene),
    );
  });
  afterAll(() => engine[Symbol.asyncDispose]());

  const isGap = ({ name }: Case): boolean => family.gaps?.cases.test(name) ?? false;

  test.each(cases.filter((each) => !isGap(each)).map((each) => [each.name, each] as const))(
    "%s",
    async (_name, { scene, expected }) => {
      expect(answerOf(await engine.answer(scene))).toMatchObject(expected);
    },
  );

  // Once one of these passes, it is no longer a gap.
  test.fails.each(cases.filter(isGap).map((each) => [each.name, each] as const))(
    "%s (missing)",
    async (_name, { scene, expected }) => {
      expect(answerOf(await engine.answer(scene))).toMatchObject(expected);
    },
  );
});
