import { type GrammarResult, type GrammarWork, makeGrammar, makeQuickly } from "../schema/grammar-work.ts";

/** Makes grammars for one request. */
export type MakeGrammar = (work: GrammarWork) => Promise<GrammarResult>;

/** Makes grammars where nobody else waits for them; rejects with the signal's reason once it aborts. */
export type MakeElsewhere = (work: GrammarWork, signal: AbortSignal) => Promise<GrammarResult>;

/** What takes little time is done at once: most schemas need less than a message to another thread does. */
export function grammarMaker(elsewhere: MakeElsewhere | undefined, signal: AbortSignal): MakeGrammar {
  return async (work) => makeQuickly(work) ?? (elsewhere ? await elsewhere(work, signal) : makeGrammar(work));
}
