import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { messageRequestSchema } from "../../../src/api/anthropic/message-schema.ts";
import { chatCompletionRequestSchema } from "../../../src/api/openai/chat-schema.ts";
import { completionRequestSchema } from "../../../src/api/openai/completion-request.ts";
import { embeddingsRequestSchema } from "../../../src/api/openai/embeddings.ts";
import {
  inputTokensRequestSchema,
  responseRequestSchema,
} from "../../../src/api/openai/responses/response-schema.ts";

const require = createRequire(import.meta.url);

/** Returns the request fields that an official client declares. */
function declaredFields(packageName: string, file: string, interfaceName: string): string[] {
  const folder = path.dirname(require.resolve(packageName));
  const text = readFileSync(path.join(folder, file), "utf8");
  const start = text.indexOf(`export interface ${interfaceName} `);
  const body = text.slice(start, text.indexOf("\n}", start));
  return [...body.matchAll(/^ {4}(\w+)\??:/gm)].map(([, name]) => name!);
}

describe("every field of the official clients is supported, ignored or refused", () => {
  test.for([
    {
      route: "POST /v1/chat/completions",
      shape: chatCompletionRequestSchema.shape,
      fields: declaredFields(
        "openai",
        "resources/chat/completions/completions.d.ts",
        "ChatCompletionCreateParamsBase",
      ),
    },
    {
      route: "POST /v1/responses",
      shape: responseRequestSchema.shape,
      fields: declaredFields("openai", "resources/responses/responses.d.ts", "ResponseCreateParamsBase"),
    },
    {
      route: "POST /v1/responses/input_tokens",
      shape: inputTokensRequestSchema.shape,
      fields: declaredFields("openai", "resources/responses/input-tokens.d.ts", "InputTokenCountParams"),
    },
    {
      route: "POST /v1/completions",
      shape: completionRequestSchema.shape,
      fields: declaredFields("openai", "resources/completions.d.ts", "CompletionCreateParamsBase"),
    },
    {
      route: "POST /v1/embeddings",
      shape: embeddingsRequestSchema.shape,
      fields: declaredFields("openai", "resources/embeddings.d.ts", "EmbeddingCreateParams"),
    },
    {
      route: "POST /v1/messages",
      shape: messageRequestSchema.shape,
      fields: declaredFields(
        "@anthropic-ai/sdk",
        "resources/messages/messages.d.ts",
        "MessageCreateParamsBase",
      ),
    },
  ])("of $route", ({ shape, fields }) => {
    expect(fields).toContain("model");
    expect(fields.filter((field) => !(field in shape))).toEqual([]);
  });
});
