import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { expect, test } from "vitest";
import type { z } from "zod";
import { chatRequestSchema, toChatRequest } from "../../../../src/api/ollama/ollama-chat.ts";
import {
  createRequestSchema,
  pullRequestSchema,
  toModelfile,
} from "../../../../src/api/ollama/ollama-create.ts";
import { embeddingsRequestSchema, embedRequestSchema } from "../../../../src/api/ollama/ollama-embed.ts";
import { generateRequestSchema, toGenerateRequest } from "../../../../src/api/ollama/ollama-generate.ts";
import { optionsSchema } from "../../../../src/api/ollama/ollama-options.ts";
import { showRequestSchema } from "../../../../src/api/ollama/information-routes.ts";
import { copyRequestSchema, deleteRequestSchema } from "../../../../src/api/ollama/store-routes.ts";
import { fakeModel } from "../../../support/fake-models.ts";
import { SAMPLING_SAMPLES, THINKING_SAMPLES } from "../field-samples.ts";
import { type Conversion, describeHonestFields } from "../honest-fields.ts";

const require = createRequire(import.meta.url);

/** Returns the fields that the official client declares. */
function declaredFields(interfaceName: string): string[] {
  const text = readFileSync(path.join(path.dirname(require.resolve("ollama")), "browser.d.ts"), "utf8");
  const start = text.indexOf(`interface ${interfaceName} {`);
  return [...text.slice(start, text.indexOf("\n}", start)).matchAll(/^ {4}(\w+)\??:/gm)].map(
    ([, name]) => name!,
  );
}

test.for<[string, z.ZodObject]>([
  ["ChatRequest", chatRequestSchema],
  ["GenerateRequest", generateRequestSchema],
  ["Options", optionsSchema],
  ["EmbedRequest", embedRequestSchema],
  ["EmbeddingsRequest", embeddingsRequestSchema],
  ["ShowRequest", showRequestSchema],
  ["PullRequest", pullRequestSchema],
  ["CreateRequest", createRequestSchema],
  ["CopyRequest", copyRequestSchema],
  ["DeleteRequest", deleteRequestSchema],
])("every field of the official client's %s is known", ([name, schema]) => {
  const fields = declaredFields(name);
  expect(fields.length).toBeGreaterThan(0);
  expect(fields.filter((field) => !(field in schema.shape))).toEqual([]);
});

const PNG = Buffer.from("89504e470d0a1a0a", "hex").toString("base64");
const infill = { prefix: "<PRE>", suffix: "<SUF>", middle: "<MID>" };
const model = fakeModel({ gguf: { ...fakeModel().gguf, infill } });

const generation = {
  format: "json",
  keep_alive: "1m",
  options: { seed: 1 },
  logprobs: true,
  think: true,
  ...THINKING_SAMPLES,
};

const options: Record<string, unknown> = {
  num_ctx: 100,
  num_predict: 3,
  num_gpu: 2,
  num_batch: 64,
  num_keep: 4,
  ...SAMPLING_SAMPLES,
  stop: ["x"],
  repetition_guard: true,
};

const conversions: readonly Conversion[] = [
  {
    name: "chat",
    schema: chatRequestSchema,
    base: { model: "fake", messages: [{ role: "user", content: "hi" }] },
    convert: (body) => toChatRequest(chatRequestSchema.parse(body), model),
    samples: {
      ...generation,
      messages: [{ role: "user", content: "ho" }],
      tools: [{ type: "function", function: { name: "f" } }],
    },
    testedOtherwise: ["model", "stream", "top_logprobs"],
  },
  {
    name: "generate",
    schema: generateRequestSchema,
    base: { model: "fake", prompt: "hi" },
    convert: (body) => toGenerateRequest(generateRequestSchema.parse(body), model),
    samples: {
      ...generation,
      prompt: "ho",
      suffix: "end",
      system: "s",
      images: [PNG],
      raw: true,
      template: "Q: {{ .Prompt }}",
    },
    testedOtherwise: ["model", "stream", "top_logprobs"],
  },
  {
    name: "options",
    schema: optionsSchema,
    base: {},
    convert: (given) =>
      toGenerateRequest(generateRequestSchema.parse({ model: "fake", prompt: "hi", options: given }), model),
    samples: options,
    testedOtherwise: [],
  },
  {
    name: "create",
    schema: createRequestSchema,
    base: { model: "new", from: "base" },
    convert: (body) =>
      toModelfile(createRequestSchema.parse(body), async (digest) => `/${digest.slice(7)}.gguf`),
    samples: {
      from: "other",
      adapters: { "adapter.gguf": `sha256:${"0".repeat(64)}` },
      system: "s",
      template: "{{ .Prompt }}",
      license: "MIT",
      parameters: { seed: 1 },
      messages: [{ role: "user", content: "hi" }],
      renderer: "r",
      parser: "p",
      requires: "0.14.0",
    },
    testedOtherwise: ["model", "name", "stream", "modelfile", "files", "quantize"],
  },
];

describeHonestFields(conversions);
