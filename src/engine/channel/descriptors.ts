/** Standard input: a child process reads its parent's messages from it. */
export const CHILD_LISTENS_ON = 0;

/**
 * A child process writes its messages to this descriptor. Two one-way pipes work on every system, and output on stdout
 * does not interfere.
 */
export const CHILD_SPEAKS_ON = 3;

/** First descriptor after those of the channel. */
export const FIRST_INPUT_ON = 4;
