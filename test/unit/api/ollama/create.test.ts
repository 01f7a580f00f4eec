import path from "node:path";
import { describe, expect, test } from "vitest";
import { createRequestSchema, toModelfile } from "../../../../src/api/ollama/ollama-create.ts";
import { parseInstructions } from "../../../../src/models/modelfile/parse-instructions.ts";
import { readModelfile } from "../../../../src/models/modelfile/read-modelfile.ts";

const HEX = "0123456789abcdef".repeat(4);
const DIGEST = `sha256:${HEX}`;

async function modelfileOf(body: object): Promise<string> {
  const request = createRequestSchema.parse({ model: "new", ...body });
  return await toModelfile(request, async (digest) => (digest === DIGEST ? `/blobs/${HEX}.gguf` : undefined));
}

describe("the Modelfile of a create request", () => {
  test("contains the request's fields", async () => {
    const text = await modelfileOf({
      from: "library/base:1b",
      system: 'You are "Mario".\nAlways.',
      template: "{{ .System }} {{ .Prompt }}",
      license: ["MIT", "Apache-2.0"],
      parameters: { temperature: 0.5, num_ctx: 512, stop: ["a\nb", '"'], top_k: "7" },
    });
    const definition = readModelfile(text, undefined);
    expect(definition).toMatchObject({
      from: "base:1b",
      license: "MIT\n\nApache-2.0",
      settings: {
        system: 'You are "Mario".\nAlways.',
        sampling: { temperature: 0.5, topK: 7 },
        contextSize: 512,
        stop: ["a\nb", '"'],
      },
    });
  });

  test("omits defaults and options without an effect", async () => {
    const text = await modelfileOf({
      from: "base",
      system: "",
      parameters: { num_predict: -1, seed: -1, num_gpu: -1, num_thread: 4, use_mmap: true, top_p: null },
    });
    expect(readModelfile(text, undefined)).toEqual(readModelfile("FROM base", undefined));
  });

  test("writes num_gpu as a separate directive", async () => {
    expect(await modelfileOf({ from: "base", parameters: { num_gpu: 3 } })).toBe("FROM base\nGPU_LAYERS 3\n");
  });

  test("contains messages, and the directives that only Ollama uses", async () => {
    const text = await modelfileOf({
      from: "base",
      messages: [{ role: "user", content: 'Is "Oslo"\nin Norway?' }],
      renderer: "qwen3-coder",
      parser: "qwen3-coder",
      requires: "0.14.0",
    });
    expect(readModelfile(text, undefined)).toMatchObject({
      settings: { messages: [{ role: "user", content: 'Is "Oslo"\nin Norway?' }] },
      unused: [
        { directive: "RENDERER", text: "qwen3-coder" },
        { directive: "PARSER", text: "qwen3-coder" },
        { directive: "REQUIRES", text: "0.14.0" },
      ],
    });
  });

  test("escapes values, which cannot add further lines", async () => {
    const text = await modelfileOf({
      from: "base",
      parameters: { stop: 'x"""\nADAPTER /etc/evil.gguf', temperature: "1\nADAPTER /etc/evil.gguf" },
    });
    expect(parseInstructions(text).map(({ directive }) => directive)).toEqual([
      "FROM",
      "PARAMETER",
      "PARAMETER",
    ]);
    await expect(modelfileOf({ from: "base\nADAPTER /etc/evil.gguf" })).rejects.toThrow(/control characters/);
    await expect(modelfileOf({ from: "base", parameters: { "x\nADAPTER /e.gguf": 1 } })).rejects.toThrow(
      /not a valid parameter name/,
    );
  });

  test("is used as sent by older clients", async () => {
    expect(await modelfileOf({ modelfile: "FROM base\nSYSTEM hi" })).toBe("FROM base\nSYSTEM hi");
  });

  test("requires a base model", async () => {
    await expect(modelfileOf({ system: "hi" })).rejects.toThrow(/from: is required/);
  });

  test("uses an uploaded model file, projector and adapters", async () => {
    const text = await modelfileOf({
      files: { "model.gguf": DIGEST, "mmproj-model.gguf": DIGEST },
      adapters: { "adapter.gguf": DIGEST },
    });
    // On Windows, the path begins with a drive.
    const file = path.resolve(`/blobs/${HEX}.gguf`);
    expect(readModelfile(text, undefined)).toMatchObject({
      from: file,
      projector: file,
      adapters: [{ path: file, scale: 1 }],
    });
  });

  test.each<[string, object, RegExp]>([
    ["files that were not uploaded", { files: { "a.gguf": DIGEST.replaceAll("0", "1") } }, /upload it first/],
    ["files in another format", { files: { "model.safetensors": DIGEST } }, /convert the model to GGUF/],
    [
      "adapters in another format",
      { from: "base", adapters: { "a.safetensors": DIGEST } },
      /convert the model to GGUF/,
    ],
    ["a model in parts", { files: { "1.gguf": DIGEST, "2.gguf": DIGEST } }, /llama-gguf-split --merge/],
    ["files beside a base", { from: "base", files: { "a.gguf": DIGEST } }, /send one/],
  ])("is rejected for %s", async (_, body, message) => {
    await expect(modelfileOf(body)).rejects.toThrow(message);
  });
});
