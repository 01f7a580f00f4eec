import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface DialogProps {
  readonly title: string;
  readonly children: ComponentChildren;
  /** Called when it is closed, by Escape as well. */
  readonly onClose: () => void;
  readonly isWide?: boolean;
}

/** A dialog over the page, open as long as it is shown. */
export function Dialog({ title, children, onClose, isWide = false }: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={element} class={isWide ? "wide" : ""} aria-labelledby="dialog-title" onClose={onClose}>
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

const ADDRESS = /(https?:\/\/[^\s,;()]+[^\s,;().:])/;

/** A text of the daemon whose addresses can be followed. */
export function LinkedText({ text }: { readonly text: string }): JSX.Element {
  return (
    <>
      {text.split(ADDRESS).map((part, index) =>
        index % 2 === 1 ? (
          <a key={part} href={part} target="_blank" rel="noreferrer">
            {part}
          </a>
        ) : (
          part
        ),
      )}
    </>
  );
}
