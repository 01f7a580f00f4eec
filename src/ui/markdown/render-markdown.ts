import createDomPurify from "dompurify";
import highlighter from "highlight.js/lib/common";
import { Marked } from "marked";
import { mathExtension } from "./math.ts";

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
export function renderMarkdown(text: string, version: number): string[] {
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
