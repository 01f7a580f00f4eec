const waiting: (() => void)[] = [];

/**
 * Does something at the end of this turn of the event loop, directly after what others do then: what they all send goes to
 * the NATS server in one write.
 */
export function atTurnEnd(work: () => void): void {
  if (waiting.push(work) > 1) return;
  setImmediate(() => {
    for (const each of waiting.splice(0)) each();
  });
}
