import createDomPurify from "dompurify";
import highlighter from "highlight.js/lib/common";
import { Marked } from "marked";

const purify = createDomPurify(window);

/** Links of a model open beside the page, and learn nothing of it. */
purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
});

const TAGS =
  "a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong sub sup table tbody td th thead tr ul";

const ALLOWED = {
  ALLOWED_TAGS: TAGS.split(" "),
  ALLOWED_ATTR: ["href", "title", "class", "start", "align"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
};

const marked = new Marked({
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

/** What a model has written as HTML that runs nothing and loads nothing. */
export function renderMarkdown(text: string): string {
  return purify.sanitize(marked.parse(text, { async: false }), ALLOWED);
}

function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
