import { signal as value } from "@preact/signals";
import createDomPurify from "dompurify";
import highlighter from "highlight.js/lib/common";
import { Marked, type MarkedExtension, type Tokens } from "marked";
import type { JSX } from "preact";
import { memo } from "preact/compat";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type temml from "temml";
import { copyText } from "../browser-actions.ts";

/** A text of a model. While it grows, only its last block is drawn anew. */
export function Markdown({ text }: { readonly text: string }): JSX.Element {
  const version = mathVersion();
  const blocks = useMemo(() => renderMarkdown(text, version), [text, version]);
  return (
    <div class="markdown">
      {blocks.map((html, index) => (
        <Block key={index} html={html} />
      ))}
    </div>
  );
}

const Block = memo(({ html }: { readonly html: string }): JSX.Element => {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    for (const block of place.current?.querySelectorAll("pre") ?? []) block.append(copyButton(block));
  }, [html]);
  // Sanitized, and no script of it could run by the page's policy.
  return <div ref={place} dangerouslySetInnerHTML={{ __html: html }} />;
});

/** Copies a block of code as it is written. */
function copyButton(block: HTMLElement): HTMLButtonElement {
  const code = block.textContent ?? "";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy code";
  button.addEventListener("click", () => copyText(code));
  return button;
}

const purify = createDomPurify(window);

/** Links of a model open beside the page, and learn nothing of it. */
purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
});

const TAGS =
  "a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong sub sup table tbody td th thead tr ul";

/** Of MathML, what formulas need; nothing of it can hold a link or HTML. */
const MATH_TAGS =
  "math menclose merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover semantics";
const MATH_ATTRIBUTES =
  "accent accentunder columnalign columnspacing depth display displaystyle fence form height linethickness lspace mathvariant maxsize minsize movablelimits notation rowspacing rspace scriptlevel separator stretchy symmetric voffset width xmlns";

const ALLOWED = {
  ALLOWED_TAGS: [...TAGS.split(" "), ...MATH_TAGS.split(" ")],
  ALLOWED_ATTR: ["href", "title", "class", "start", "align", ...MATH_ATTRIBUTES.split(" ")],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  // Their values are no addresses, which all others have to be.
  ADD_URI_SAFE_ATTR: ["start", "align", ...MATH_ATTRIBUTES.split(" ")],
};

/** Blocks that have been rendered: an answer that grows changes in its last one alone. */
const rendered = new Map<string, string>();
/** A long answer has some hundred blocks. */
const MAX_RENDERED = 1000;

/** The library, which is loaded when the first formula comes. */
const library = value<typeof temml | undefined>(undefined);
let loading: Promise<void> | undefined;

/** Formulas as LaTeX users write them: $…$, $$…$$, \(…\) and \[…\]. "$5 and $6" is none. */
const BLOCK = /^(?:\$\$([^$]+?)\$\$|\\\[([\s\S]+?)\\\])(?=\n|$)/;
const INLINE =
  /^(?:\$\$([^$\n]+?)\$\$|\\\((.+?)\\\)|\\\[(.+?)\\\]|\$(?![\s\d]*\s)((?:\\.|[^$\\\n])*?[^\s$\\])\$(?![\d\w]))/;

/** What marked needs to find formulas and to write them as MathML, which browsers draw themselves. */
const mathExtension: MarkedExtension = {
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

const marked = new Marked(mathExtension, {
  gfm: true,
  breaks: true,
  renderer: {
    // What a model writes as HTML is shown as it is written.
    html: ({ text }) => escapeHtml(text),
    // Nothing is loaded from elsewhere: the page's policy would refuse it.
    image: ({ text, href }) => `<a href="${escapeHtml(href)}">${escapeHtml(text || href)}</a>`,
    code: ({ text, lang = "" }) => {
      const [name = ""] = lang.split(/\s/);
      const language = highlighter.getLanguage(name) ? name : undefined;
      const code = language ? highlighter.highlight(text, { language }).value : escapeHtml(text);
      return `<pre><code class="hljs">${code}</code></pre>`;
    },
  },
});

/**
 * What a model has written as HTML that runs nothing and loads nothing: a piece for each block.
 * @param version - of what blocks are rendered with; another one renders them anew
 */
function renderMarkdown(text: string, version: number): string[] {
  const tokens = marked.lexer(text);
  const hasReferences = Object.keys(tokens.links).length > 0;
  return tokens
    .filter(({ type }) => type !== "space")
    .map((token) => {
      const key = `${version} ${token.raw}`;
      const known = hasReferences ? undefined : rendered.get(key);
      if (known !== undefined) return known;
      const html = purify.sanitize(marked.parser(Object.assign([token], { links: tokens.links })), ALLOWED);
      if (rendered.size >= MAX_RENDERED) rendered.clear();
      rendered.set(key, html);
      return html;
    });
}

function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** Changes when formulas can be shown that could not before. */
function mathVersion(): number {
  return library.value ? 1 : 0;
}

/** Loads the library while there is nothing else to do: in the middle of an answer it would hold a few frames up. */
export function prepareMath(): void {
  loading ??= load();
}

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
    return mathCode(raw);
  }
  try {
    const mathml = library.peek()?.renderToString(text, { displayMode: isBlock, throwOnError: true }) ?? "";
    // The page's policy refuses inline styles, which are only colors and finer spacing.
    return mathml.replaceAll(/ style="[^"]*"/g, "");
  } catch {
    // Not every dollar begins a formula, and not every formula is whole while it comes.
    return mathCode(raw);
  }
}

async function load(): Promise<void> {
  library.value = (await import("temml")).default;
}

function mathCode(text: string): string {
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return `<code>${escaped}</code>`;
}
