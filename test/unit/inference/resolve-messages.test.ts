import { describe, expect, test } from "vitest";
import type { ChatMessage } from "../../../src/engine/protocol/generation.ts";
import { resolveGeneration } from "../../../src/inference/resolve-generation.ts";
import { USER, PNG, MAKE, request, chat, model, resolve } from "./resolve-setup.ts";

async function instruct(system?: string) {
  const input = { kind: "instruct" as const, prompt: "hi", system, images: [] };
  return (await resolve({ input }, model({ system: "Be kind." }))).request.input;
}

const text = (role: "system" | "user" | "assistant", content: string): ChatMessage => ({
  role,
  content: [{ type: "text", text: content }],
});

describe("the model's first messages", () => {
  const first = [
    { role: "user", content: "Is Oslo in Norway?" },
    { role: "assistant", content: "Yes." },
  ] as const;
  const FIRST = first.map(({ role, content }) => text(role, content));

  test("stand behind the system prompt, the model's or the request's", async () => {
    const of = model({ system: "Be kind.", messages: first });
    expect((await resolve({}, of)).request.input).toMatchObject({
      messages: [text("system", "Be kind."), ...FIRST, USER],
    });
    const input = chat({ messages: [text("system", "Be brief."), USER] });
    expect((await resolve({ input }, of)).request.input).toMatchObject({
      messages: [text("system", "Be brief."), ...FIRST, USER],
    });
  });

  test("make one system message with the system prompt where they begin with one", async () => {
    const of = model({ system: "Be kind.", messages: [{ role: "system", content: "Be brief." }, ...first] });
    const joined = {
      role: "system",
      content: [
        { type: "text", text: "Be kind." },
        { type: "text", text: "Be brief." },
      ],
    };
    expect((await resolve({}, of)).request.input).toMatchObject({ messages: [joined, ...FIRST, USER] });
    const input = { kind: "instruct" as const, prompt: "hi", images: [] };
    expect((await resolve({ input }, of)).request.input).toMatchObject({
      messages: [joined, ...FIRST, USER],
    });
  });

  test("are left out of a prompt that is text alone", async () => {
    const input = { kind: "instruct" as const, prompt: "hi", images: [] };
    const { request: plain } = await resolveGeneration(
      request({ input }),
      model({ messages: first }),
      {
        hasChatTemplate: false,
      },
      MAKE,
    );
    expect(plain.input).toEqual({ kind: "prompt", prompt: "hi" });
  });
});

describe("system prompt", () => {
  const SYSTEM: ChatMessage = { role: "system", content: [{ type: "text", text: "Be kind." }] };

  test("the model's is put first when the conversation has none", async () => {
    const { input } = (await resolve({}, model({ system: "Be kind." }))).request;
    expect(input).toMatchObject({ messages: [SYSTEM, USER] });
  });

  test("the conversation's own stays alone", async () => {
    const own: ChatMessage = { role: "system", content: [{ type: "text", text: "Be brief." }] };
    const { input } = (
      await resolve({ input: chat({ messages: [own, USER] }) }, model({ system: "Be kind." }))
    ).request;
    expect(input).toMatchObject({ messages: [own, USER] });
  });

  test("of several at the beginning one is made, since many templates know only one", async () => {
    const other: ChatMessage = { role: "system", content: [{ type: "text", text: "Be brief." }] };
    const { input } = (await resolve({ input: chat({ messages: [SYSTEM, other, USER, other] }) })).request;
    expect(input).toMatchObject({
      messages: [{ role: "system", content: [{ text: "Be kind." }, { text: "Be brief." }] }, USER, other],
    });
  });

  test("an instruction uses its own, the model's, or none when it is empty", async () => {
    expect(await instruct()).toMatchObject({ messages: [SYSTEM, USER] });
    expect(await instruct("")).toMatchObject({ messages: [USER] });
    expect(await instruct("Own.")).toMatchObject({
      messages: [{ role: "system", content: [{ text: "Own." }] }, USER],
    });
  });
});

describe("instructions", () => {
  test("go as plain text to a model without a chat template", async () => {
    const { input } = (
      await resolveGeneration(
        request({ input: { kind: "instruct", prompt: "Once", system: "Tell.", images: [] } }),
        model(),
        { hasChatTemplate: false },
        MAKE,
      )
    ).request;
    expect(input).toEqual({ kind: "prompt", prompt: "Tell.\n\nOnce" });
  });

  test("put images before the text, so that an image never ends the prompt", async () => {
    const { input } = (
      await resolve(
        { input: { kind: "instruct", prompt: "What?", images: [PNG] } },
        model({}, { vision: true }),
      )
    ).request;
    expect(input).toMatchObject({
      messages: [{ role: "user", content: [{ type: "image" }, { type: "text", text: "What?" }] }],
    });
  });
});
