/**
 * A child process reads its parent's messages from standard input and writes its own to this descriptor. Two one-way pipes
 * work on every system, and what native code prints on stdout does not interfere.
 */
export const CHILD_SPEAKS_ON = 3;

/** First descriptor after those of the channel. */
export const FIRST_INPUT_ON = 4;
