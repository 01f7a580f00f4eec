import { describe, expect, test } from "vitest";
import { fakeModel } from "../../../support/fake-models.ts";
import { testApp } from "../../../support/test-app.ts";
import { PLAIN_TEXT } from "../recorded-events.ts";

const THREE = { prefix: "<PRE>", suffix: "<SUF>", middle: "<MID>" };
const FIVE = { ...THREE, repository: "<REPO>", file: "<FILE>" };

/** Returns the prompt. Each byte of a text is a token of the fake engine. */
async function promptOf(body: object, infill: typeof THREE | null = THREE, contextSize = 4096) {
  const gguf = { ...fakeModel().gguf, infill: infill ?? undefined };
  const app = testApp({ events: PLAIN_TEXT, model: fakeModel({ gguf, contextSize }) });
  const answer = await app.post("/infill", { input_prefix: "ab", input_suffix: "yz", n_predict: 8, ...body });
  const json: unknown = await answer.json();
  if (answer.status !== 200) return json;
  return Object(app.lastRequest().input)["prompt"];
}

describe("an infill request", () => {
  test("has a prefix, a suffix, and a prompt that starts the middle", async () => {
    expect(await promptOf({})).toBe("<PRE>ab<SUF>yz<MID>");
    expect(await promptOf({ prompt: "cd" })).toBe("<PRE>abcd<SUF>yz<MID>");
  });

  test("puts other files first, in the model's repository format if it has one", async () => {
    const input_extra = [{ filename: "a.ts", text: "one" }, { text: "two" }];
    expect(await promptOf({ input_extra }, FIVE)).toBe(
      "<REPO>myproject\n<FILE>a.ts\none<FILE>tmp\ntwo<FILE>filename\n<PRE>ab<SUF>yz<MID>",
    );
    expect(await promptOf({ input_extra })).toBe(
      "\n\n--- snippet ---\n\none\n\n--- snippet ---\n\ntwo<PRE>ab<SUF>yz<MID>",
    );
  });

  test("keeps the text next to the gap and the last files if not all fit in the context", async () => {
    const long = { input_prefix: `${"a".repeat(200)}b`, input_suffix: `y${"z".repeat(200)}` };
    const prompt = String(await promptOf(long, THREE, 128));
    expect(prompt).toMatch(/^<PRE>a+b<SUF>yz+<MID>$/);
    expect(prompt.length).toBeLessThan(128);
    const endless = "e".repeat(1_000_000);
    const hostile = { input_prefix: endless, input_suffix: endless, input_extra: [{ text: endless }] };
    expect(String(await promptOf(hostile, THREE, 128)).length).toBeLessThan(128);
    const input_extra = [
      { filename: "far", text: "x".repeat(200) },
      { filename: "near", text: "n".repeat(20) },
    ];
    expect(await promptOf({ input_extra }, FIVE, 128)).toBe(
      `<REPO>myproject\n<FILE>near\n${"n".repeat(20)}<FILE>filename\n<PRE>ab<SUF>yz<MID>`,
    );
  });

  test("is rejected for a model without infill tokens, and without prefix and suffix", async () => {
    expect(await promptOf({}, null)).toMatchObject({
      error: { code: 400, message: expect.stringContaining("cannot fill in the middle") },
    });
    expect(await promptOf({ input_suffix: undefined })).toMatchObject({
      error: { code: 400, message: expect.stringContaining("input_suffix") },
    });
  });
});
