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

  test("come after the system prompt of the model or the request", async () => {
    const of = model({ system: "Be kind.", messages: first });
    expect((await resolve({}, of)).request.input).toMatchObject({
      messages: [text("system", "Be kind."), ...FIRST, USER],
    });
    const input = chat({ messages: [text("system", "Be brief."), USER] });
    expect((await resolve({ input }, of)).request.input).toMatchObject({
      messages: [text("system", "Be brief."), ...FIRST, USER],
    });
  });

  test("are joined with the system prompt if they begin with a system message", async () => {
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

  test("are left out of a plain text prompt", async () => {
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

describe("the system prompt", () => {
  const SYSTEM: ChatMessage = { role: "system", content: [{ type: "text", text: "Be kind." }] };

  test("of the model comes first if the conversation has none", async () => {
    const { input } = (await resolve({}, model({ system: "Be kind." }))).request;
    expect(input).toMatchObject({ messages: [SYSTEM, USER] });
  });

  test("of the conversation replaces the model's", async () => {
    const own: ChatMessage = { role: "system", content: [{ type: "text", text: "Be brief." }] };
    const { input } = (
      await resolve({ input: chat({ messages: [own, USER] }) }, model({ system: "Be kind." }))
    ).request;
    expect(input).toMatchObject({ messages: [own, USER] });
  });

  test("is joined from several leading messages, as many templates support only one", async () => {
    const other: ChatMessage = { role: "system", content: [{ type: "text", text: "Be brief." }] };
    const { input } = (await resolve({ input: chat({ messages: [SYSTEM, other, USER, other] }) })).request;
    expect(input).toMatchObject({
      messages: [{ role: "system", content: [{ text: "Be kind." }, { text: "Be brief." }] }, USER, other],
    });
  });

  test("of an instruction is its own, the model's, or none if empty", async () => {
    expect(await instruct()).toMatchObject({ messages: [SYSTEM, USER] });
    expect(await instruct("")).toMatchObject({ messages: [USER] });
    expect(await instruct("Own.")).toMatchObject({
      messages: [{ role: "system", content: [{ text: "Own." }] }, USER],
    });
  });
});

describe("instructions", () => {
  test("are plain text for a model without a chat template", async () => {
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
