/** What a person does at the prompt. */
export type PromptEvent =
  | { readonly type: "message"; readonly text: string }
  /** Ctrl-C. */
  | { readonly type: "interrupt" }
  /** Ctrl-D, or the end of a piped input. */
  | { readonly type: "end" };

/** Where the messages of a conversation come from. */
export interface Prompter extends Disposable {
  /** Asks for the next message. */
  next(): Promise<PromptEvent>;
  /** Calls `handler` on Ctrl-C while an answer is being written, until the result is disposed. */
  catchInterrupts(handler: () => void): Disposable;
}
