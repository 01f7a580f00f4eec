import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface DialogProps {
  readonly title: string;
  readonly children: ComponentChildren;
  /** Called when the dialog is closed, also by Escape. */
  readonly onClose: () => void;
  readonly isWide?: boolean;
}

/** A modal dialog, open while the component is mounted. */
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

interface DeletionDialogProps {
  readonly title: string;
  /** Explains what is deleted. */
  readonly children: ComponentChildren;
  readonly onDelete: () => void;
  readonly onClose: () => void;
}

/** Asks for confirmation before something is deleted. */
export function DeletionDialog({ title, children, onDelete, onClose }: DeletionDialogProps): JSX.Element {
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <p class="buttons">
        <button
          type="button"
          class="danger"
          onClick={() => {
            onClose();
            onDelete();
          }}
        >
          Delete
        </button>
        <button type="button" autofocus onClick={onClose}>
          Keep
        </button>
      </p>
    </Dialog>
  );
}

const URL_PATTERN = /(https?:\/\/[^\s,;()]+[^\s,;().:])/;

/** A text with its URLs as links. */
export function LinkedText({ text }: { readonly text: string }): JSX.Element {
  return (
    <>
      {text.split(URL_PATTERN).map((part, index) =>
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
