import type { z } from "zod";
import { embeddingsAnswerSchema, tokensSchema } from "../api/native/token-routes.ts";
import { nativeErrorSchema } from "../http/errors.ts";
import { isErrorCode } from "../errors/error-codes.ts";
import { lineChunks } from "../json/json-values.ts";
import { ServiceError } from "../errors/service-error.ts";
import {
  chatAnswerSchema,
  chatLineSchema,
  generateAnswerSchema,
  generateLineSchema,
  type generationFields,
  type messageSchema,
} from "../api/wire/native.ts";

/** Sampling, tools, format and other fields of the native API, and options for streaming. */
export interface GenerateOptions extends z.input<z.ZodObject<typeof generationFields>> {
  /** Called with each text delta of the answer. */
  readonly onText?: (chunk: string) => void;
  /** Aborts the generation. */
  readonly signal?: AbortSignal;
}

export type EngineMessage = z.input<typeof messageSchema>;
export type ChatAnswer = z.output<typeof chatAnswerSchema>;
export type CompletionAnswer = z.output<typeof generateAnswerSchema>;

/** The native API as methods. All reject with a ServiceError, or with the signal's reason. */
export class EngineCalls {
  readonly #fetch: typeof fetch;

  constructor(answer: typeof fetch) {
    this.#fetch = answer;
  }

  /** Generates the next message of a conversation. */
  readonly chat = async (
    messages: readonly EngineMessage[],
    { onText, signal, ...fields }: GenerateOptions = {},
  ): Promise<ChatAnswer> => {
    const body = { ...fields, messages };
    if (!onText) return chatAnswerSchema.parse(await this.#json("/api/chat", body, signal));
    let text = "";
    for await (const line of this.#lines("/api/chat", body, signal)) {
      const { message, ...buffered } = chatLineSchema.parse(line);
      text += message.content;
      onText(message.content);
      if (buffered.done) return { ...buffered, message: { ...message, content: text } };
    }
    throw incompleteAnswer();
  };

  /** Generates the answer to a prompt. */
  readonly complete = async (
    prompt: string,
    { onText, signal, ...fields }: GenerateOptions = {},
  ): Promise<CompletionAnswer> => {
    const body = { ...fields, prompt };
    if (!onText) return generateAnswerSchema.parse(await this.#json("/api/generate", body, signal));
    let text = "";
    for await (const line of this.#lines("/api/generate", body, signal)) {
      const chunk = generateLineSchema.parse(line);
      text += chunk.response;
      onText(chunk.response);
      if (chunk.done) return { ...chunk, response: text };
    }
    throw incompleteAnswer();
  };

  /** Returns an L2-normalized embedding vector per text. */
  readonly embed = async (
    texts: readonly string[],
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<number[][]> => {
    const answer = await this.#json("/api/embeddings", { input: texts }, signal);
    return embeddingsAnswerSchema.parse(answer).embeddings;
  };

  /** Returns the token IDs of a text. */
  readonly tokenize = async (text: string, { signal }: { signal?: AbortSignal } = {}): Promise<number[]> => {
    const { tokens } = tokensSchema.parse(await this.#json("/tokenize", { content: text }, signal));
    return tokens.map((token) => (typeof token === "number" ? token : token.id));
  };

  async #json(path: string, body: object, signal: AbortSignal | undefined): Promise<unknown> {
    return await (await this.#post(path, body, signal)).json();
  }

  async *#lines(path: string, body: object, signal: AbortSignal | undefined): AsyncGenerator {
    const answer = await this.#post(path, { ...body, stream: true }, signal);
    for await (const lines of lineChunks(answer.body)) {
      for (const line of lines) {
        const value: unknown = JSON.parse(line);
        throwIfError(value);
        yield value;
      }
    }
  }

  async #post(path: string, body: object, signal: AbortSignal | undefined): Promise<Response> {
    const answer = await this.#fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      ...(signal && { signal }),
    });
    if (answer.ok) return answer;
    throwIfError(await answer.json());
    throw new ServiceError("internal_error", `The engine answered with status ${answer.status}.`);
  }
}

function throwIfError(value: unknown): void {
  const { data } = nativeErrorSchema.safeParse(value);
  if (!data) return;
  const { code, message } = data.error;
  throw new ServiceError(isErrorCode(code) ? code : "internal_error", message);
}

function incompleteAnswer(): ServiceError {
  return new ServiceError("inference_failed", "The answer ended before it was complete.");
}
