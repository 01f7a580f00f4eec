import { z } from "zod";
import { ERROR_CODES, type ErrorCode } from "../../errors/error-codes.ts";
import {
  embeddingResultSchema,
  engineInfoSchema,
  engineSpecSchema,
  rerankResultSchema,
} from "./engine-spec.ts";
import { generationEventSchema, generationRequestSchema } from "./generation.ts";
import { tokenIdsSchema, tokenizeOptionsSchema, tokenPiecesSchema } from "./tokens.ts";

/**
 * Everything that the daemon and an engine process say to each other. Each side parses what it receives: the
 * engine handles files and text from strangers, so to the daemon its messages are input like any other.
 */

/** Number of a call, chosen by the daemon, never used twice for one engine. */
const call = z.int().min(1);

export const daemonMessageSchema = z.discriminatedUnion("type", [
  /** The first message, once. */
  z.object({ type: z.literal("load"), spec: engineSpecSchema }),
  z.object({ type: z.literal("generate"), call, request: generationRequestSchema }),
  z.object({ type: z.literal("embed"), call, text: z.string() }),
  z.object({ type: z.literal("rerank"), call, query: z.string(), document: z.string() }),
  /** Takes no slot; neither does pieces. */
  z.object({ type: z.literal("tokenize"), call, text: z.string(), options: tokenizeOptionsSchema }),
  z.object({ type: z.literal("pieces"), call, tokens: tokenIdsSchema }),
  /** Answered by the call's own end: `cancelled`, or its result when that was on its way. */
  z.object({ type: z.literal("cancel"), call }),
  z.object({ type: z.literal("memory"), call }),
]);
export type DaemonMessage = z.infer<typeof daemonMessageSchema>;

const errorCode = z.custom<ErrorCode>(
  (value) => typeof value === "string" && Object.hasOwn(ERROR_CODES, value),
);

/** Longest text of one error or reason: more would be no explanation. */
const MAX_REASON_LENGTH = 4096;

const reason = z.string().transform((text) => text.slice(0, MAX_REASON_LENGTH));

const reportedErrorSchema = z.object({
  code: errorCode,
  message: reason,
  param: z.string().optional(),
});
/** A ServiceError on its way through a process boundary. */
export type ReportedError = z.infer<typeof reportedErrorSchema>;

export const engineMessageSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("load-progress"), progress: z.number().min(0).max(1) }),
  z.object({ type: z.literal("loaded"), info: engineInfoSchema }),
  z.object({ type: z.literal("load-failed"), error: reportedErrorSchema }),
  /** Several events at once when they come faster than messages go out. */
  z.object({ type: z.literal("events"), call, events: z.array(generationEventSchema).min(1) }),
  z.object({ type: z.literal("embedded"), call, result: embeddingResultSchema }),
  z.object({ type: z.literal("reranked"), call, result: rerankResultSchema }),
  z.object({ type: z.literal("tokenized"), call, tokens: tokenIdsSchema }),
  z.object({ type: z.literal("pieces"), call, pieces: tokenPiecesSchema }),
  z.object({ type: z.literal("call-failed"), call, error: reportedErrorSchema }),
  z.object({ type: z.literal("cancelled"), call }),
  z.object({ type: z.literal("memory"), call, bytes: z.int().min(0) }),
  /** The engine is unusable and exits after this message. */
  z.object({ type: z.literal("fatal"), reason }),
]);
export type EngineMessage = z.infer<typeof engineMessageSchema>;
