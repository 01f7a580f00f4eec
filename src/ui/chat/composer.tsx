import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { answering, ask, chooseModel, chosenModel, current, inTab, running } from "./chat-state.ts";
import { chosenDaemon } from "../daemons.ts";
import { problem, showProblem } from "../page-state.ts";
import { openAsExperiment } from "../hand-over.ts";
import { branch, requestMessages } from "./conversation.ts";

const READABLE = /^image\/(png|jpeg|gif|bmp)$/;

interface ComposerProps {
  readonly showsSettings: boolean;
  readonly onShowSettings: () => void;
}

/** Where a message is written. */
export function Composer({ showsSettings, onShowSettings }: ComposerProps): JSX.Element {
  const text = useSignal("");
  const images = useSignal<readonly string[]>([]);
  const sees = chosenModel.value?.capabilities?.vision === true;
  const send = (): void => {
    const content = text.value.trim();
    if (content === "" || running.value) return;
    text.value = "";
    const sent = images.value;
    images.value = [];
    void ask(content, sent, current.value.leaf);
  };
  const attach = async (files: Iterable<File>): Promise<void> => {
    try {
      for (const file of files) images.value = [...images.value, await imageUrl(file)];
    } catch (error) {
      showProblem(error);
    }
  };
  const attachAll = (files: FileList | undefined | null): boolean => {
    const pictures = [...(files ?? [])].filter(({ type }) => type.startsWith("image/"));
    if (pictures.length === 0) return false;
    if (sees) void attach(pictures);
    else
      problem.value = `${chosenModel.value?.alias ?? "The model"} does not see images; choose a model that does.`;
    return true;
  };
  return (
    <form
      id="chat"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        attachAll(event.dataTransfer?.files);
      }}
    >
      {images.value.length > 0 && (
        <p class="attached">
          {images.value.map((url) => (
            <button
              key={url}
              type="button"
              title="Leave this image out"
              onClick={() => (images.value = images.value.filter((each) => each !== url))}
            >
              <img src={url} alt="To be sent" />
            </button>
          ))}
        </p>
      )}
      <textarea
        id="prompt"
        rows={3}
        placeholder="Say something"
        aria-label="Message"
        value={text}
        onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        onPaste={(event) => {
          if (attachAll(event.clipboardData?.files)) event.preventDefault();
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      <p class="buttons">
        <button id="send" type="submit" disabled={running.value !== undefined}>
          Send
        </button>
        <button
          id="stop"
          type="button"
          disabled={running.value === undefined}
          onClick={() => running.value?.abort()}
        >
          Stop
        </button>
        <label>
          <span class="unseen">Model</span>
          <select
            id="model"
            value={chosenModel.value?.alias}
            onChange={({ currentTarget }) => chooseModel(currentTarget.value)}
          >
            {answering.value.map(({ alias, state }) => (
              <option key={alias} value={alias}>
                {state === "loaded" ? alias : `${alias} (${state})`}
              </option>
            ))}
          </select>
        </label>
        <label class="file" aria-disabled={!sees}>
          Image
          <input
            id="image"
            type="file"
            accept="image/*"
            multiple
            disabled={!sees}
            onChange={({ currentTarget }) => {
              attachAll(currentTarget.files);
              currentTarget.value = "";
            }}
          />
        </label>
        {chosenDaemon() && (
          <label>
            <input
              id="in-tab"
              type="checkbox"
              checked={inTab}
              disabled={!isSecureContext}
              title={isSecureContext ? undefined : "Browsers run the engine only on localhost and over HTTPS"}
              onChange={({ currentTarget }) => (inTab.value = currentTarget.checked)}
            />{" "}
            In this tab
          </label>
        )}
        <button id="show-settings" type="button" aria-expanded={showsSettings} onClick={onShowSettings}>
          Settings
        </button>
        {chosenDaemon() && (
          <button
            id="experiment"
            type="button"
            title="Opens the last question on the page of experiments"
            onClick={() => recordExperiment(text.value)}
          >
            Experiment
          </button>
        )}
      </p>
    </form>
  );
}

/** An image in a format that models take; others are drawn anew as PNG. */
async function imageUrl(file: File): Promise<string> {
  let blob: Blob = file;
  if (!READABLE.test(file.type)) {
    const bitmap = await createImageBitmap(file).catch((error: unknown) => {
      throw new Error(`${file.name} is not an image that this browser can read.`, { cause: error });
    });
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    canvas.getContext("2d")?.drawImage(bitmap, 0, 0);
    blob = await canvas.convertToBlob({ type: "image/png" });
  }
  const reader = new FileReader();
  return await new Promise((resolve, reject) => {
    reader.addEventListener("load", () => resolve(typeof reader.result === "string" ? reader.result : ""));
    reader.addEventListener("error", () => reject(new Error(`${file.name} cannot be read.`)));
    reader.readAsDataURL(blob);
  });
}

/** Opens the page of experiments with the last question of this conversation. */
function recordExperiment(text: string): void {
  const shown = branch(current.value);
  const last = shown.findLastIndex(({ role }) => role === "user");
  const { system: _system, ...sampling } = current.value.settings;
  const messages =
    last < 0
      ? [{ role: "user", content: text }]
      : requestMessages(shown.slice(0, last + 1), current.value.settings);
  openAsExperiment(chosenModel.value?.alias ?? "", { messages, ...sampling });
}
