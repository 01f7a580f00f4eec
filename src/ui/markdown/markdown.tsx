import type { JSX } from "preact";
import { memo } from "preact/compat";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { copyText } from "../copy-text.ts";
import { mathVersion } from "./math.ts";
import { renderMarkdown } from "./render-markdown.ts";

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
