import type { Signal } from "@preact/signals";
import type { ComponentChildren, ComponentProps, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A button that submits no form. */
export function Button(props: ComponentProps<"button">): JSX.Element {
  return <button type="button" {...props} />;
}

interface FormProps extends Omit<ComponentProps<"form">, "onSubmit"> {
  readonly onSubmit: (form: HTMLFormElement) => unknown;
}

/** A form that the page handles itself. */
export function Form({ onSubmit, ...props }: FormProps): JSX.Element {
  return (
    <form
      {...props}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit(event.currentTarget);
      }}
    />
  );
}

/** Properties of a text field that shows and changes a signal. */
export function bound(text: Signal<string>) {
  return {
    value: text,
    onInput: ({ currentTarget }: { readonly currentTarget: { readonly value: string } }) =>
      void (text.value = currentTarget.value),
  };
}

interface ChoiceProps {
  readonly id?: string;
  readonly class?: string;
  readonly checked: boolean;
  readonly disabled?: boolean;
  readonly onChange: (isChecked: boolean) => void;
  readonly children: ComponentChildren;
}

/** A labeled check box. */
export function Choice({ children, onChange, ...props }: ChoiceProps): JSX.Element {
  return (
    <label class="choice">
      <input type="checkbox" {...props} onChange={({ currentTarget }) => onChange(currentTarget.checked)} />
      {children}
    </label>
  );
}

interface FileButtonProps {
  readonly id: string;
  readonly title?: string;
  readonly accept?: string;
  readonly multiple?: boolean;
  readonly children: string;
  readonly onFiles: (files: readonly File[]) => unknown;
}

/** A button that lets the user choose files. */
export function FileButton({ title, children, onFiles, ...props }: FileButtonProps): JSX.Element {
  return (
    <label class="file" title={title}>
      {children}
      <input
        type="file"
        {...props}
        onChange={({ currentTarget }) => {
          const files = [...(currentTarget.files ?? [])];
          currentTarget.value = "";
          onFiles(files);
        }}
      />
    </label>
  );
}

interface DialogProps {
  readonly id?: string;
  readonly title: string;
  readonly children: ComponentChildren;
  /** Called when the dialog is closed, also by Escape. */
  readonly onClose: () => void;
  readonly isWide?: boolean;
}

/** A modal dialog, open while the component is mounted. */
export function Dialog({ id, title, children, onClose, isWide = false }: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      id={id}
      class={isWide ? "wide" : ""}
      aria-labelledby="dialog-title"
      onClose={onClose}
    >
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
        <Button
          class="danger"
          onClick={() => {
            onClose();
            onDelete();
          }}
        >
          Delete
        </Button>
        <Button autofocus onClick={onClose}>
          Keep
        </Button>
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
