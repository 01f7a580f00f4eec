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
 * All messages between the daemon and an engine process. Each side validates the messages that it receives. The daemon
 * does not trust the engine, which processes files and text of unknown origin.
 */

/** Call number, chosen by the daemon, unique per engine. */
const call = z.int().min(1);

export const daemonMessageSchema = z.discriminatedUnion("type", [
  /** First message, sent once. */
  z.object({ type: z.literal("load"), spec: engineSpecSchema }),
  z.object({ type: z.literal("generate"), call, request: generationRequestSchema }),
  z.object({ type: z.literal("embed"), call, text: z.string() }),
  z.object({ type: z.literal("rerank"), call, query: z.string(), document: z.string() }),
  /** Does not occupy a slot, like `pieces` and `slots`. */
  z.object({ type: z.literal("tokenize"), call, text: z.string(), options: tokenizeOptionsSchema }),
  z.object({ type: z.literal("pieces"), call, tokens: tokenIdsSchema }),
  z.object({ type: z.literal("slots"), call, request: slotRequestSchema }),
  /** Answered by `cancelled`, or by the result of the call if that was already sent. */
  z.object({ type: z.literal("cancel"), call }),
  z.object({ type: z.literal("memory"), call }),
]);
export type DaemonMessage = z.infer<typeof daemonMessageSchema>;

/**
 * Checks a message before it is sent: an engine exits when it receives an invalid message, and fails all its requests.
 * @throws ServiceError internal_error
 */
export function validateMessage(message: DaemonMessage): DaemonMessage {
  const { error } = daemonMessageSchema.safeParse(message);
  if (!error) return message;
  throw new ServiceError(
    "internal_error",
    `The model's engine cannot process this request: ${firstProblem(error)}.`,
  );
}

const errorCode = z.custom<ErrorCode>(
  (value) => typeof value === "string" && Object.hasOwn(ERROR_CODES, value),
);

/** Maximum characters of an error or reason; longer texts are cut. */
const MAX_REASON_LENGTH = 4096;

const reason = z.string().transform((text) => text.slice(0, MAX_REASON_LENGTH));

export const reportedErrorSchema = z.object({
  code: errorCode,
  message: reason,
  param: z.string().optional(),
  contextExcess: z.object({ promptTokens: z.int().min(0), contextSize: z.int().min(0) }).optional(),
});
/** A ServiceError as a message. */
type ReportedError = z.infer<typeof reportedErrorSchema>;

/** Converts an error for the daemon. An unexpected error becomes inference_failed with its own message. */
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
  /** Has several events if they are produced faster than messages are sent. */
  z.object({ type: z.literal("events"), call, events: z.array(generationEventSchema).min(1) }),
  z.object({ type: z.literal("embedded"), call, result: embeddingResultSchema }),
  z.object({ type: z.literal("reranked"), call, result: rerankResultSchema }),
  z.object({ type: z.literal("tokenized"), call, result: tokenIdsSchema }),
  z.object({ type: z.literal("pieces"), call, result: tokenPiecesSchema }),
  z.object({ type: z.literal("slots"), call, result: slotResultSchema }),
  z.object({ type: z.literal("call-failed"), call, error: reportedErrorSchema }),
  z.object({ type: z.literal("cancelled"), call }),
  z.object({ type: z.literal("memory"), call, result: z.int().min(0) }),
  /** Last message of an engine that can no longer work. */
  z.object({ type: z.literal("fatal"), reason }),
]);
export type EngineMessage = z.infer<typeof engineMessageSchema>;

/** Maximum characters of a reported problem: the sender of an invalid message controls part of the text. */
const MAX_PROBLEM_LENGTH = 200;

/** Describes the first problem of an invalid message; a forged message can have any number. */
export function firstProblem(error: z.ZodError): string {
  const [issue] = error.issues;
  if (!issue) return "it does not match its schema";
  const location = issue.path.length === 0 ? "" : ` at ${issue.path.join(".")}`;
  return `${issue.message}${location}`.slice(0, MAX_PROBLEM_LENGTH);
}
