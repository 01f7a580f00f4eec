/** What came through a channel cannot be a message: whoever sent it is not to be trusted. */
export class ChannelError extends Error {}

/** A message is larger than its kind may be, so the other side would refuse it. */
export class MessageTooLargeError extends Error {}
