import { z } from "zod";
import { tokenList } from "../../http/input/list.ts";
import { mapInTimeSlices } from "../../async/time-slices.ts";
import { longJson } from "../../http/streaming/long-json.ts";
import { defineRoute, type Route } from "../../http/route.ts";
import type { Services } from "../services.ts";
import type { Piece } from "../../inference/tokens.ts";
import { modelField } from "./native-request-fields.ts";

/** Bodies and answers as llama.cpp's server has them, under the same paths; `model` is ours. */

const tag = "Tokens";
/** Few enough that one time slice does not hold up other requests: a long text has a million pieces. */
const PIECES_PER_SLICE = 4096;
const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const tokenizeRequestSchema = z
  .object({
    model: modelField,
    content: z.string().describe("Text to turn into tokens."),
    add_special: z
      .boolean()
      .nullish()
      .describe(
        "Put the tokens around it that the model's vocabulary begins and ends a text with. Default: false.",
      ),
    parse_special: z
      .boolean()
      .nullish()
      .describe("Read special tokens where they are spelled out; else they are text. Default: true."),
    with_pieces: z.boolean().nullish().describe("Say what each token stands for. Default: false."),
  })
  .meta({ id: "TokenizeRequest" });

const pieceSchema = z.object({
  id: z.int(),
  piece: z
    .union([z.string(), z.array(z.int())])
    .describe("The token's text, or its bytes where they are not text by themselves."),
});

const tokensSchema = z
  .object({ tokens: z.union([z.array(z.int()), z.array(pieceSchema)]) })
  .meta({ id: "Tokens" });

const detokenizeRequestSchema = z
  .object({ model: modelField, tokens: tokenList().describe("Token ids.") })
  .meta({ id: "DetokenizeRequest" });

const contentSchema = z
  .object({ content: z.string().describe("Their text; special tokens are spelled out.") })
  .meta({ id: "DetokenizedContent" });

export function tokenizeRoute({ inference }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/tokenize",
    tag,
    summary: "Turn a text into tokens",
    description: "By llama.cpp's own tokenizer. It waits for no slot.",
    body: tokenizeRequestSchema,
    answers: [{ description: "The ids, with pieces on request.", schema: tokensSchema }],
    async handle(context, { body }) {
      const options = { addSpecial: body.add_special ?? false, parseSpecial: body.parse_special ?? true };
      const { signal } = context.req.raw;
      const model = body.model ?? undefined;
      const tokens = await inference.tokenize({ model, text: body.content, options }, signal);
      if (!body.with_pieces) return longJson({ tokens: [...tokens] });
      const pieces = await inference.pieces({ model, tokens }, signal);
      return longJson({ tokens: await mapInTimeSlices(pieces, PIECES_PER_SLICE, toWirePiece) });
    },
  });
}

export function detokenizeRoute({ inference }: Services): Route {
  return defineRoute({
    method: "POST",
    path: "/detokenize",
    tag,
    summary: "Turn tokens into their text",
    body: detokenizeRequestSchema,
    answers: [{ description: "The text.", schema: contentSchema }],
    async handle(context, { body }) {
      const { model, tokens } = body;
      const content = await inference.detokenize(
        { model: model ?? undefined, tokens },
        context.req.raw.signal,
      );
      return context.json({ content });
    },
  });
}

function toWirePiece({ id, bytes }: Piece): z.output<typeof pieceSchema> {
  try {
    return { id, piece: DECODER.decode(bytes) };
  } catch {
    return { id, piece: [...bytes] };
  }
}
