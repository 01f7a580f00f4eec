import { describe, expect, test } from "vitest";
import { fakeModel } from "../../../support/fake-models.ts";
import { testApp } from "../../../support/test-app.ts";
import { PLAIN_TEXT } from "../recorded-events.ts";

const THREE = { prefix: "<PRE>", suffix: "<SUF>", middle: "<MID>" };
const FIVE = { ...THREE, repository: "<REPO>", file: "<FILE>" };

/** What the model is to read. Each byte of a text is a token of the fake engine. */
async function promptOf(body: object, infill: typeof THREE | null = THREE, contextSize = 4096) {
  const gguf = { ...fakeModel().gguf, infill: infill ?? undefined };
  const app = testApp({ events: PLAIN_TEXT, model: fakeModel({ gguf, contextSize }) });
  const answer = await app.post("/infill", { input_prefix: "ab", input_suffix: "yz", n_predict: 8, ...body });
  const json: unknown = await answer.json();
  if (answer.status !== 200) return json;
  return Object(app.lastRequest().input)["prompt"];
}

describe("a gap", () => {
  test("is between prefix and suffix, and begins with the prompt", async () => {
    expect(await promptOf({})).toBe("<PRE>ab<SUF>yz<MID>");
    expect(await promptOf({ prompt: "cd" })).toBe("<PRE>abcd<SUF>yz<MID>");
  });

  test("comes after other files, by the pattern of repositories where the model knows it", async () => {
    const input_extra = [{ filename: "a.ts", text: "one" }, { text: "two" }];
    expect(await promptOf({ input_extra }, FIVE)).toBe(
      "<REPO>myproject\n<FILE>a.ts\none<FILE>tmp\ntwo<FILE>filename\n<PRE>ab<SUF>yz<MID>",
    );
    expect(await promptOf({ input_extra })).toBe(
      "\n\n--- snippet ---\n\none\n\n--- snippet ---\n\ntwo<PRE>ab<SUF>yz<MID>",
    );
  });

  test("keeps what is nearest to it, and the last files, where the context does not hold all", async () => {
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

  test("is refused for a model without tokens for it, and without its sides", async () => {
    expect(await promptOf({}, null)).toMatchObject({
      error: { code: 400, message: expect.stringContaining("cannot fill in the middle") },
    });
    expect(await promptOf({ input_suffix: undefined })).toMatchObject({
      error: { code: 400, message: expect.stringContaining("input_suffix") },
    });
  });
});
