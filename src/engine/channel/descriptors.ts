/** The standard input: what a child process reads there is what its parent says. */
export const CHILD_LISTENS_ON = 0;

/**
 * Descriptor on which a child process speaks to its parent. Two pipes that go one way each work on every system, and
 * what prints to the standard output disturbs nothing.
 */
export const CHILD_SPEAKS_ON = 3;

/** First descriptor after those of the channel. */
export const FIRST_INPUT_ON = 4;
