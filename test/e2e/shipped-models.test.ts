import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { sharedDaemon, unloadModel } from "../support/shared-daemon.ts";
import type { TestDaemon } from "../support/start-daemon.ts";
import { tinyPng } from "../support/tiny-png.ts";

const MINI = "daybreak-mini";
const VISION = "daybreak-mini-vision";
const PIRATE = "daybreak-mini-pirate";

let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await sharedDaemon();
});

afterAll(() => unloadModel(daemon, PIRATE));

/** Fields of responses that these tests check. */
const bodySchema = z.looseObject({
  models: z.array(z.looseObject({ alias: z.string() })).default([]),
  message: z.object({ content: z.string() }).default({ content: "" }),
  prompt_tokens: z.number().default(0),
  modelfile: z.string().default(""),
  template: z.string().default(""),
});

interface Answer {
  readonly status: number;
  readonly body: z.infer<typeof bodySchema>;
}

async function call(method: string, path: string, body?: object): Promise<Answer> {
  const answer = await fetch(`${daemon.url}${path}`, {
    method,
    ...(body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: bodySchema.parse(await answer.json()) };
}

function chat(model: string, message: object): Promise<Answer> {
  return call("POST", "/api/chat", {
    model,
    messages: [{ role: "user", ...message }],
    temperature: 0,
    seed: 1,
    max_tokens: 64,
  });
}

describe("the shipped models", () => {
  it("are listed, the projector and the adapter as models derived from the chat model", async () => {
    const { body } = await call("GET", "/api/models");
    const shipped = body.models.filter(({ source }) => source === "shipped");
    expect(shipped.map(({ alias, from, state }) => [alias, from, state])).toEqual([
      [MINI, undefined, "loaded"],
      ["daybreak-mini-embed", undefined, "available"],
      [PIRATE, MINI, "available"],
      [VISION, MINI, "available"],
    ]);
  });

  it("are listed with their capabilities", async () => {
    const { body } = await call("GET", "/api/models");
    const able = new Map(body.models.map(({ alias, capabilities }) => [alias, capabilities]));
    expect(able.get(MINI)).toEqual({ vision: false, tools: true, thinking: true, json: true });
    expect(able.get(VISION)).toEqual({ vision: true, tools: true, thinking: true, json: true });
    expect(able.get("daybreak-mini-embed")).toEqual({
      vision: false,
      tools: false,
      thinking: false,
      json: false,
    });
  });

  it("contain the chat template of their training", async () => {
    const { body } = await call("GET", `/api/models/${MINI}`);
    const template = new URL("../../scripts/models/conversations/template.jinja", import.meta.url);
    expect(body.template.trim()).toBe((await readFile(template, "utf8")).trim());
  });

  it("read images only with the projector", async () => {
    expect((await call("GET", `/api/models/${VISION}`)).body).toMatchObject({
      capabilities: { vision: true },
      projector: expect.stringContaining("daybreak-mini-vision.gguf"),
    });
    expect(await call("POST", "/api/models/load", { alias: VISION })).toMatchObject({ status: 200 });
    const content = "What do you see?";
    const images = [Buffer.from(tinyPng(64, 64)).toString("base64")];

    const seen = await chat(VISION, { content, images });
    const unseen = await chat(VISION, { content });

    expect(seen).toMatchObject({ status: 200, body: { message: { content: expect.stringMatching(/\w/) } } });
    expect(seen.body.prompt_tokens).toBeGreaterThan(unseen.body.prompt_tokens);
    expect(await chat(MINI, { content, images })).toMatchObject({
      status: 400,
      body: { error: { code: "unsupported_feature" } },
    });
  });

  it("answer in another style with the adapter", async () => {
    expect(await call("POST", "/api/models/load", { alias: PIRATE })).toMatchObject({ status: 200 });
    const [plain, pirate] = await Promise.all(
      [MINI, PIRATE].map(
        async (model) => (await chat(model, { content: "Who are you?" })).body.message.content,
      ),
    );
    expect(plain).toMatch(/\w/);
    expect(pirate).toMatch(/\w/);
    expect(pirate).not.toBe(plain);
  });

  it("are hidden when deleted and come back when pulled", async () => {
    const gone = { status: 200, body: { status: "deleted", alias: VISION, source: "shipped" } };
    expect(await call("DELETE", `/api/models/${VISION}`)).toMatchObject(gone);
    expect((await call("GET", `/api/models/${VISION}`)).status).toBe(404);
    expect(await call("POST", "/api/models/pull", { name: VISION })).toMatchObject({
      status: 200,
      body: { status: "success", model: VISION },
    });
    expect((await call("GET", `/api/models/${VISION}`)).status).toBe(200);
  });

  it("can be recreated from their Modelfiles", async () => {
    const { body } = await call("GET", `/api/models/${VISION}/modelfile`);
    expect(body.modelfile).toBe(`FROM ${VISION}\n`);
    expect(
      (await call("POST", "/api/models/create", { alias: "seer", modelfile: body.modelfile })).status,
    ).toBe(200);
    expect((await call("GET", "/api/models/seer")).body).toMatchObject({ capabilities: { vision: true } });
    expect((await call("DELETE", "/api/models/seer")).status).toBe(200);
  });
});
