import { signal } from "@preact/signals";
import createDomPurify from "dompurify";
import highlighter from "highlight.js/lib/common";
import { Marked, type MarkedExtension, type Tokens } from "marked";
import type { JSX } from "preact";
import { memo } from "preact/compat";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type temml from "temml";
import { copyText } from "../page-state.ts";

/** Rendered Markdown. While the text grows, only its last block is rendered again. */
export function Markdown({ text }: { readonly text: string }): JSX.Element {
  // Changes when the library for formulas is loaded.
  const version = mathLibrary.value ? 1 : 0;
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
  const container = useRef<HTMLDivElement>(null);
  useEffect(() => {
    for (const block of container.current?.querySelectorAll("pre") ?? []) block.append(copyButton(block));
  }, [html]);
  // The HTML is sanitized, and the page's Content-Security-Policy forbids inline scripts.
  return <div ref={container} dangerouslySetInnerHTML={{ __html: html }} />;
});

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

/** Links in generated text open in a new tab without a referrer. */
purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
});

const TAGS =
  "a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong sub sup table tbody td th thead tr ul";

/** The MathML elements that formulas need. None of them can contain a link or HTML. */
const MATH_TAGS =
  "math menclose merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover semantics";
const MATH_ATTRIBUTES =
  "accent accentunder columnalign columnspacing depth display displaystyle fence form height linethickness lspace mathvariant maxsize minsize movablelimits notation rowspacing rspace scriptlevel separator stretchy symmetric voffset width xmlns";

const SANITIZE_OPTIONS = {
  ALLOWED_TAGS: [...TAGS.split(" "), ...MATH_TAGS.split(" ")],
  ALLOWED_ATTR: ["href", "title", "class", "start", "align", ...MATH_ATTRIBUTES.split(" ")],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  // DOMPurify checks the values of other attributes as URIs.
  ADD_URI_SAFE_ATTR: ["start", "align", ...MATH_ATTRIBUTES.split(" ")],
};

/** HTML of rendered blocks. A growing answer changes only in its last block. */
const renderedBlocks = new Map<string, string>();
/** Cache size: a long answer has some hundred blocks. */
const MAX_RENDERED_BLOCKS = 1000;

const mathLibrary = signal<typeof temml | undefined>(undefined);
let loadingMath: Promise<void> | undefined;

/** Formulas in LaTeX: $…$, $$…$$, \(…\) and \[…\]. "$5 and $6" is not a formula. */
const BLOCK_FORMULA = /^(?:\$\$([^$]+?)\$\$|\\\[([\s\S]+?)\\\])(?=\n|$)/;
const INLINE_FORMULA =
  /^(?:\$\$([^$\n]+?)\$\$|\\\((.+?)\\\)|\\\[(.+?)\\\]|\$(?![\s\d]*\s)((?:\\.|[^$\\\n])*?[^\s$\\])\$(?![\d\w]))/;

/** Extension of marked that finds formulas and renders them as MathML. */
const mathExtension: MarkedExtension = {
  extensions: [
    {
      name: "mathBlock",
      level: "block",
      start: (text) => indexOf(text, /\$\$|\\\[/),
      tokenizer: (text) => toToken("mathBlock", BLOCK_FORMULA.exec(text)),
      renderer: (token) => toMathml(token.raw, String(token["text"]), true),
    },
    {
      name: "mathInline",
      level: "inline",
      start: (text) => indexOf(text, /\$|\\[([]/),
      tokenizer: (text) => toToken("mathInline", INLINE_FORMULA.exec(text)),
      renderer: (token) => toMathml(token.raw, String(token["text"]), false),
    },
  ],
};

const marked = new Marked(mathExtension, {
  gfm: true,
  breaks: true,
  renderer: {
    // HTML in generated text is shown as source.
    html: ({ text }) => escapeHtml(text),
    // Images become links: the page's Content-Security-Policy forbids loading them from other servers.
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
 * Renders Markdown as sanitized HTML, one string per block.
 * @param version - cached blocks of another version are rendered again
 */
function renderMarkdown(text: string, version: number): string[] {
  const tokens = marked.lexer(text);
  const hasReferences = Object.keys(tokens.links).length > 0;
  return tokens
    .filter(({ type }) => type !== "space")
    .map((token) => {
      const key = `${version} ${token.raw}`;
      const cached = hasReferences ? undefined : renderedBlocks.get(key);
      if (cached !== undefined) return cached;
      const html = purify.sanitize(
        marked.parser(Object.assign([token], { links: tokens.links })),
        SANITIZE_OPTIONS,
      );
      if (renderedBlocks.size >= MAX_RENDERED_BLOCKS) renderedBlocks.clear();
      renderedBlocks.set(key, html);
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

/** Loads the library for formulas early: loading it during an answer would delay a few frames. */
export function prepareMath(): void {
  loadingMath ??= loadMath();
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
  if (!mathLibrary.peek()) {
    prepareMath();
    return `<code>${escapeHtml(raw)}</code>`;
  }
  try {
    const mathml =
      mathLibrary.peek()?.renderToString(text, { displayMode: isBlock, throwOnError: true }) ?? "";
    // The page's policy forbids inline styles, which only set colors and finer spacing.
    return mathml.replaceAll(/ style="[^"]*"/g, "");
  } catch {
    // The dollar sign does not begin a formula, or the formula is incomplete while the answer grows.
    return `<code>${escapeHtml(raw)}</code>`;
  }
}

async function loadMath(): Promise<void> {
  mathLibrary.value = (await import("temml")).default;
}
