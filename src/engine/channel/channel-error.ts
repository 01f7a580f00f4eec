import type { z } from "zod";

/** What came through a channel cannot be a message: the process that sent it is not to be trusted. */
export class ChannelError extends Error {}

/** A message is larger than its kind may be, so the other side would refuse it. */
export class MessageTooLargeError extends Error {}

/** Longest part of a problem that is told: its place may be named by the process that sent the message. */
const MAX_LENGTH = 200;

/** The first thing that is wrong with a message, in words; a forged one may have any number of them. */
export function firstProblem(error: z.ZodError): string {
  const [issue] = error.issues;
  if (!issue) return "it fits no schema";
  const place = issue.path.length === 0 ? "" : ` at ${issue.path.join(".")}`;
  return `${issue.message}${place}`.slice(0, MAX_LENGTH);
}
