import { type IncomingMessage, ServerResponse } from "node:http";

/**
 * A response whose headers are sent together with its first frame, as one packet, if that is available immediately;
 * otherwise by themselves, so that a client gets the status even if the first frame takes long.
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
