import { type IncomingMessage, ServerResponse } from "node:http";

/**
 * An answer whose head goes out together with its first frame, as one packet, when that is there in the same moment;
 * else by itself, so that a client learns the status of an answer whose first frame takes long.
 */
export class JoinedResponse<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  override flushHeaders(): void {
    const written = this.socket?.bytesWritten;
    setImmediate(() => {
      const isSent = this.writableEnded || this.socket?.bytesWritten !== written;
      if (!isSent) super.flushHeaders();
    });
  }
}
