/** A call as a client sees it. */
export interface Call {
  readonly name: string;
  readonly arguments: Readonly<Record<string, string>>;
}

/**
 * How the models of a family write, in the tokens of their vocabulary. What a function gives is the text behind the prompt
 * as the template ends it.
 */
export interface Family {
  /** Also the name of its template's file. */
  readonly name: string;
  readonly title: string;
  /** Special tokens that llama.cpp hides in answers. */
  readonly control: readonly string[];
  /** Special tokens that it shows. */
  readonly words?: readonly string[];
  readonly begin?: string;
  readonly end: string;
  /** Reasoning and what stands behind it; absent: the template has none. */
  readonly think?: (reasoning: string) => string;
  /** The reasoning is not complete. */
  readonly thinkOpen?: string;
  /** Text of an answer, behind reasoning or without. */
  readonly text: (text: string) => string;
  /** Text behind reasoning, if it is written differently there. */
  readonly thoughtText?: (text: string) => string;
  /** Calls; absent: the template has no tools. */
  readonly calls?: (calls: readonly Call[]) => string;
  /** Text between the prompt and a call behind it; absent: none. */
  readonly join?: string;
  /** Ends a text that went on, in front of a call. */
  readonly textEnd?: string;
  /** Text in front of a call, if it is not written like other text. */
  readonly preamble?: (text: string) => string;
  /** JSON as the answer, where that is not plain text. */
  readonly formatted?: (json: string) => string;
  /** The family has models that see images. */
  readonly images?: boolean;
  /** Whose reader of answers it has: one that llama.cpp has for it, one that it makes of the template, or ours of its calls. */
  readonly reader: "llama.cpp" | "template" | "daybreak";
  /** Names of cases that fail, and what users should know of it. */
  readonly gaps?: { readonly cases: RegExp; readonly note: string };
  /** At most one call in an answer. */
  readonly single?: boolean;
  /** The template's prompt already begins the reasoning, whatever was asked for. */
  readonly alwaysThinks?: boolean;
}
