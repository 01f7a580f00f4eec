import { signal as value } from "@preact/signals";
import type { MarkedExtension, Tokens } from "marked";
import type temml from "temml";

/** The library, which is loaded when the first formula comes. */
const library = value<typeof temml | undefined>(undefined);
let loading: Promise<void> | undefined;

/** Changes when formulas can be shown that could not before. */
export function mathVersion(): number {
  return library.value ? 1 : 0;
}

/** Loads the library while there is nothing else to do: in the middle of an answer it would hold a few frames up. */
export function prepareMath(): void {
  loading ??= load();
}

/** Formulas as LaTeX users write them: $…$, $$…$$, \(…\) and \[…\]. "$5 and $6" is none. */
const BLOCK = /^(?:\$\$([^$]+?)\$\$|\\\[([\s\S]+?)\\\])(?=\n|$)/;
const INLINE =
  /^(?:\$\$([^$\n]+?)\$\$|\\\((.+?)\\\)|\\\[(.+?)\\\]|\$(?![\s\d]*\s)((?:\\.|[^$\\\n])*?[^\s$\\])\$(?![\d\w]))/;

/** What marked needs to find formulas and to write them as MathML, which browsers draw themselves. */
export const mathExtension: MarkedExtension = {
  extensions: [
    {
      name: "mathBlock",
      level: "block",
      start: (text) => indexOf(text, /\$\$|\\\[/),
      tokenizer: (text) => toToken("mathBlock", BLOCK.exec(text)),
      renderer: (token) => toMathml(token.raw, String(token["text"]), true),
    },
    {
      name: "mathInline",
      level: "inline",
      start: (text) => indexOf(text, /\$|\\[([]/),
      tokenizer: (text) => toToken("mathInline", INLINE.exec(text)),
      renderer: (token) => toMathml(token.raw, String(token["text"]), false),
    },
  ],
};

function indexOf(text: string, pattern: RegExp): number | undefined {
  const at = text.search(pattern);
  return at < 0 ? undefined : at;
}

function toToken(type: string, match: RegExpExecArray | null): Tokens.Generic | undefined {
  const text = match?.slice(1).find((group) => group !== undefined);
  return match && text !== undefined ? { type, raw: match[0], text } : undefined;
}

function toMathml(raw: string, text: string, isBlock: boolean): string {
  if (!library.peek()) {
    prepareMath();
    return code(raw);
  }
  try {
    const mathml = library.peek()?.renderToString(text, { displayMode: isBlock, throwOnError: true }) ?? "";
    // The page's policy refuses inline styles, which are only colors and finer spacing.
    return mathml.replaceAll(/ style="[^"]*"/g, "");
  } catch {
    // Not every dollar begins a formula, and not every formula is whole while it comes.
    return code(raw);
  }
}

async function load(): Promise<void> {
  library.value = (await import("temml")).default;
}

function code(text: string): string {
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return `<code>${escaped}</code>`;
}
