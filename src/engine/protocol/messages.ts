import { z } from "zod";
import { ERROR_CODES, type ErrorCode } from "../../errors/error-codes.ts";
import { ServiceError } from "../../errors/service-error.ts";
import {
  embeddingResultSchema,
  rerankResultSchema,
  slotRequestSchema,
  slotResultSchema,
  tokenIdsSchema,
  tokenizeOptionsSchema,
  tokenPiecesSchema,
} from "./calls.ts";
import { engineInfoSchema, engineSpecSchema } from "./engine-spec.ts";
import { generationEventSchema, generationRequestSchema } from "./generation.ts";

/**
 * All messages between the daemon and an engine process. Each side validates what it receives: the engine handles files
 * and text from strangers, so the daemon does not trust it.
 */

/** Number of a call, chosen by the daemon, unique for each engine. */
const call = z.int().min(1);

export const daemonMessageSchema = z.discriminatedUnion("type", [
  /** The first message, once. */
  z.object({ type: z.literal("load"), spec: engineSpecSchema }),
  z.object({ type: z.literal("generate"), call, request: generationRequestSchema }),
  z.object({ type: z.literal("embed"), call, text: z.string() }),
  z.object({ type: z.literal("rerank"), call, query: z.string(), document: z.string() }),
  /** Like `pieces`, this does not take a slot. */
  z.object({ type: z.literal("tokenize"), call, text: z.string(), options: tokenizeOptionsSchema }),
  z.object({ type: z.literal("pieces"), call, tokens: tokenIdsSchema }),
  /** Does not take a slot either. */
  z.object({ type: z.literal("slots"), call, request: slotRequestSchema }),
  /** Answered by `cancelled`, or by the call's result when that was already on its way. */
  z.object({ type: z.literal("cancel"), call }),
  z.object({ type: z.literal("memory"), call }),
]);
export type DaemonMessage = z.infer<typeof daemonMessageSchema>;

/**
 * A message that an engine takes: at any other one it would end, with all requests that it answers.
 * @throws ServiceError internal_error
 */
export function checkedMessage(message: DaemonMessage): DaemonMessage {
  const { error } = daemonMessageSchema.safeParse(message);
  if (!error) return message;
  throw new ServiceError("internal_error", `The model cannot be asked this: ${firstProblem(error)}.`);
}

const errorCode = z.custom<ErrorCode>(
  (value) => typeof value === "string" && Object.hasOwn(ERROR_CODES, value),
);

/** Longest text of an error or reason. */
const MAX_REASON_LENGTH = 4096;

const reason = z.string().transform((text) => text.slice(0, MAX_REASON_LENGTH));

export const reportedErrorSchema = z.object({
  code: errorCode,
  message: reason,
  param: z.string().optional(),
  contextExcess: z.object({ promptTokens: z.int().min(0), contextSize: z.int().min(0) }).optional(),
});
/** A ServiceError on its way across the process boundary. */
type ReportedError = z.infer<typeof reportedErrorSchema>;

/** An unexpected error keeps its message, which the daemon may see. */
export function toReportedError(error: unknown): ReportedError {
  if (error instanceof ServiceError) {
    return {
      code: error.code,
      message: error.message,
      ...(error.param !== undefined && { param: error.param }),
      ...(error.contextExcess && { contextExcess: error.contextExcess }),
    };
  }
  return { code: "inference_failed", message: error instanceof Error ? error.message : String(error) };
}

export function toServiceError({ code, message, param, contextExcess }: ReportedError): ServiceError {
  return new ServiceError(code, message, { ...(param !== undefined && { param }), contextExcess });
}

export const engineMessageSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("load-progress"), progress: z.number().min(0).max(1) }),
  z.object({ type: z.literal("loaded"), info: engineInfoSchema }),
  z.object({ type: z.literal("load-failed"), error: reportedErrorSchema }),
  /** Several events when they are produced faster than messages are sent. */
  z.object({ type: z.literal("events"), call, events: z.array(generationEventSchema).min(1) }),
  z.object({ type: z.literal("embedded"), call, result: embeddingResultSchema }),
  z.object({ type: z.literal("reranked"), call, result: rerankResultSchema }),
  z.object({ type: z.literal("tokenized"), call, tokens: tokenIdsSchema }),
  z.object({ type: z.literal("pieces"), call, pieces: tokenPiecesSchema }),
  z.object({ type: z.literal("slots"), call, result: slotResultSchema }),
  z.object({ type: z.literal("call-failed"), call, error: reportedErrorSchema }),
  z.object({ type: z.literal("cancelled"), call }),
  z.object({ type: z.literal("memory"), call, bytes: z.int().min(0) }),
  /** The engine is unusable and exits after this message. */
  z.object({ type: z.literal("fatal"), reason }),
]);
export type EngineMessage = z.infer<typeof engineMessageSchema>;

/** Longest problem that is reported: the sender of an invalid message chooses part of the text. */
const MAX_PROBLEM_LENGTH = 200;

/** The first thing that is wrong with a message, in words; a forged one may have any number of problems. */
export function firstProblem(error: z.ZodError): string {
  const [issue] = error.issues;
  if (!issue) return "it does not match its schema";
  const place = issue.path.length === 0 ? "" : ` at ${issue.path.join(".")}`;
  return `${issue.message}${place}`.slice(0, MAX_PROBLEM_LENGTH);
}
