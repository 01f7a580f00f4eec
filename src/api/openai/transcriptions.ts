import { z } from "zod";
import { parseInput } from "../../http/input/common-fields.ts";
import { readForm } from "../../http/input/form-data.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import { SSE_TYPE, sseData, streamResponse } from "../../http/streaming/stream-response.ts";
import { checkAudio } from "../../inference/media-data.ts";
import { AnswerFold, collectAnswer } from "../../inference/collect-answer.ts";
import type { InferenceEvent, InferenceRequest } from "../../inference/inference.ts";
import type { Usage } from "../../engine/protocol/generation.ts";
import type { Services } from "../services.ts";
import { openaiEvents } from "./openai-error.ts";
import { unsupported } from "./openai-fields.ts";
import { chatInput } from "../chat-input.ts";

/** Maximum lengths of texts. */
const MAX_LANGUAGE_LENGTH = 64;
const MAX_PROMPT_LENGTH = 16 * 1024;
/** Formats with timestamps, which models do not return. */
const TIMED_FORMATS = ["verbose_json", "srt", "vtt", "diarized_json"] as const;

const formSchema = z.object({
  file: z.instanceof(Blob, { error: "must be a file: a recording as WAV, MP3 or FLAC" }),
  model: z.string().optional(),
  language: z.string().max(MAX_LANGUAGE_LENGTH).optional(),
  prompt: z.string().max(MAX_PROMPT_LENGTH).optional(),
  response_format: z.enum(["json", "text", ...TIMED_FORMATS]).default("json"),
  temperature: z.coerce.number().min(0).max(2).default(0),
  stream: z.enum(["true", "false", "True", "False", "1", "0"]).default("false"),
});

const usageSchema = z.object({
  type: z.literal("tokens"),
  input_tokens: z.int(),
  output_tokens: z.int(),
  total_tokens: z.int(),
});

const transcriptionSchema = z.object({ text: z.string(), usage: usageSchema }).meta({ id: "Transcription" });

const transcriptionEventSchema = z
  .discriminatedUnion("type", [
    z.object({ type: z.literal("transcript.text.delta"), delta: z.string() }),
    z.object({ type: z.literal("transcript.text.done"), text: z.string(), usage: usageSchema }),
  ])
  .meta({ id: "TranscriptionEvent" });
type TranscriptionEvent = z.output<typeof transcriptionEventSchema>;

/** POST /v1/audio/transcriptions: a chat that asks an audio model for a transcript. */
export function transcriptionsRoute({ inference }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/v1/audio/transcriptions",
    tag: "Chat-completions API",
    summary: "Transcribe a recording",
    description:
      "The body is a form (multipart/form-data) with the fields file (WAV, MP3 or FLAC), model, language, prompt (words or " +
      "names that occur), response_format (json or text), temperature and stream. Requires a model with an audio projector.",
    answers: [
      { description: "The text.", schema: transcriptionSchema },
      {
        contentType: SSE_TYPE,
        description: "With stream: parts of the text.",
        schema: transcriptionEventSchema,
      },
    ],
    async handle(context) {
      const form = parseInput(formSchema, fieldsOf(await readForm(context)));
      checkFormat(form.response_format);
      const isBuffered = !/true|1/i.test(form.stream);
      const request = { ...(await toRequest(form)), isBuffered };
      const { events } = await inference.generate(request, context.req.raw.signal);
      if (!isBuffered) return streamResponse(context, frames(events), openaiEvents);
      const { text, usage } = await collectAnswer(events);
      return form.response_format === "text"
        ? context.text(`${text.trim()}\n`)
        : context.json({ text: text.trim(), usage: toUsage(usage) });
    },
  });
}

/** Returns the fields of a form. Refuses unsupported fields that would change the answer. */
function fieldsOf(form: FormData): Record<string, unknown> {
  for (const name of ["include[]", "include", "timestamp_granularities[]", "timestamp_granularities"]) {
    if (!form.has(name)) continue;
    throw unsupported(`${name} is not supported: models do not return timestamps.`, name);
  }
  return Object.fromEntries(form);
}

function checkFormat(format: z.output<typeof formSchema>["response_format"]): void {
  if (!TIMED_FORMATS.some((timed) => timed === format)) return;
  throw unsupported(
    `The response format ${format} is not supported: models do not return timestamps. Use json or text.`,
    "response_format",
  );
}

async function toRequest(form: z.output<typeof formSchema>): Promise<InferenceRequest> {
  const bytes = new Uint8Array(await form.file.arrayBuffer());
  const text = [
    "Transcribe the recording word for word, and write nothing else.",
    ...(form.language === undefined ? [] : [`Its language is ${form.language}.`]),
    ...(form.prompt === undefined ? [] : [`It may contain: ${form.prompt}`]),
  ].join(" ");
  return {
    endpoint: "chat",
    model: form.model,
    input: chatInput(
      [
        {
          role: "user",
          content: [
            { type: "audio", data: checkAudio(bytes, "file") },
            { type: "text", text },
          ],
        },
      ],
      { toolChoice: "none", parallelToolCalls: false },
    ),
    sampling: { temperature: form.temperature },
    format: { type: "text" },
    defaults: { sampling: {} },
  };
}

async function* frames(events: AsyncIterable<InferenceEvent>): AsyncGenerator<string, void, undefined> {
  const fold = new AnswerFold();
  for await (const event of events) {
    fold.add(event);
    if (event.type === "text-delta") yield frame({ type: "transcript.text.delta", delta: event.text });
  }
  const { text, usage } = fold.finish();
  yield frame({ type: "transcript.text.done", text, usage: toUsage(usage) });
}

function frame(event: TranscriptionEvent): string {
  return sseData(event);
}

function toUsage({ promptTokens, completionTokens }: Usage): z.output<typeof usageSchema> {
  return {
    type: "tokens",
    input_tokens: promptTokens,
    output_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}
