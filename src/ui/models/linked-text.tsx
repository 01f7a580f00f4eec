import type { JSX } from "preact";

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
