import type { JSX } from "preact";
import { BrowserModels } from "./browser-models.tsx";
import { FromHub } from "./from-hub.tsx";
import { storePicked } from "./store-files.ts";

/** The models of a page without a daemon. */
export function BrowserModelsRoom(): JSX.Element {
  return (
    <main id="models">
      <BrowserModels onFiles={(files) => void storePicked(files)}>
        <FromHub />
      </BrowserModels>
    </main>
  );
}
