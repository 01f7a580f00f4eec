import type { Logger } from "pino";
import { REQUEST_LINE, type RequestEnd, type RequestHead } from "../http/middleware/request-log.ts";

/** Logs a chat over a WebSocket as requests are logged: the HTTP side only sees the connection. */
export function logSocketChat(
  logger: Logger,
  { id, method, path }: RequestHead,
  { status, ms }: RequestEnd,
  figures: Readonly<Record<string, unknown>>,
): void {
  logger.info({ request_id: id, method, path, status, ms, ...figures }, REQUEST_LINE);
}
