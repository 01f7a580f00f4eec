import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { bound, Button, FileButton, Form } from "../controls.tsx";
import { chosenDaemon } from "../daemons.ts";
import { openAsExperiment } from "../browser.ts";
import { problem, showProblem } from "../page-state.ts";
import { offeredTools } from "../tools/tools.ts";
import { sendQuestion, promptProgress } from "./answering.ts";
import { chatRequest } from "./chat-request.ts";
import { chatModels, chooseModel, chosenModel, current, inTab, running, setInTab } from "./chat-state.ts";
import { branch, type TextFile } from "./conversation.ts";
import { type Panel, PANELS, visiblePanel } from "./shortcuts.tsx";
import { isImage, readImage, readText } from "./read-file.ts";

/** Form for writing and sending a message. */
export function Composer(): JSX.Element {
  const text = useSignal("");
  const images = useSignal<readonly string[]>([]);
  const files = useSignal<readonly TextFile[]>([]);
  const send = (): void => {
    const content = text.value.trim();
    if ((content === "" && files.value.length === 0) || running.value) return;
    const attached = { images: images.value, files: files.value };
    text.value = "";
    images.value = [];
    files.value = [];
    void sendQuestion(content, attached, current.value.leaf);
  };
  const attach = async (chosen: readonly File[]): Promise<void> => {
    try {
      for (const file of chosen) {
        if (!isImage(file)) files.value = [...files.value, await readText(file)];
        else if (chosenModel.value?.capabilities?.vision === true)
          images.value = [...images.value, await readImage(file)];
        else
          problem.value = `${chosenModel.value?.alias ?? "The model"} does not see images; choose a model that does.`;
      }
    } catch (error) {
      showProblem(error);
    }
  };
  return (
    <Form
      id="chat"
      onSubmit={send}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void attach([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      {(images.value.length > 0 || files.value.length > 0) && (
        <p class="attached">
          {images.value.map((url) => (
            <Button
              key={url}
              title="Leave this image out"
              onClick={() => (images.value = images.value.filter((each) => each !== url))}
            >
              <img src={url} alt="To be sent" /> ✕
            </Button>
          ))}
          {files.value.map((file) => (
            <Button
              key={file.name}
              class="attachment"
              title="Leave this file out"
              onClick={() => (files.value = files.value.filter((each) => each !== file))}
            >
              {file.name} <small>{file.text.length.toLocaleString("en")} characters</small> ✕
            </Button>
          ))}
        </p>
      )}
      {promptProgress.value !== undefined && (
        <label class="prompt-share">
          Reading the prompt <progress id="prompt-share" value={promptProgress} />
        </label>
      )}
      <textarea
        id="prompt"
        rows={2}
        placeholder="Say something"
        aria-label="Message"
        {...bound(text)}
        onPaste={(event) => {
          const pasted = [...(event.clipboardData?.files ?? [])];
          if (pasted.length === 0) return;
          event.preventDefault();
          void attach(pasted);
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
        <Button id="stop" disabled={running.value === undefined} onClick={() => running.value?.abort()}>
          Stop
        </Button>
        <ModelSelect />
        <FileButton
          id="attach"
          title="Images, text files and PDF files; or paste or drop them"
          multiple
          onFiles={attach}
        >
          Attach
        </FileButton>
        {PANELS.map(([name, label]) => (
          <PanelButton key={name} name={name} label={label} />
        ))}
        {chosenDaemon() && (
          <Button
            id="experiment"
            title="Opens the last question on the page of experiments"
            onClick={() => openLastQuestionAsExperiment(text.value)}
          >
            Experiment
          </Button>
        )}
      </p>
    </Form>
  );
}

function ModelSelect(): JSX.Element {
  return (
    <>
      <label>
        <span class="unseen">Model</span>
        <select
          id="model"
          value={chosenModel.value?.alias}
          onChange={({ currentTarget }) => chooseModel(currentTarget.value)}
        >
          {chatModels.value.map(({ alias, state }) => (
            <option key={alias} value={alias}>
              {state === "loaded" ? alias : `${alias} (${state})`}
            </option>
          ))}
        </select>
      </label>
      {chosenDaemon() && (
        <label>
          <input
            id="in-tab"
            type="checkbox"
            checked={inTab}
            disabled={!isSecureContext}
            title={
              isSecureContext
                ? "Run the model in this browser tab instead of the daemon"
                : "Browsers run the engine only on localhost and over HTTPS"
            }
            onChange={({ currentTarget }) => setInTab(currentTarget.checked)}
          />{" "}
          In this tab
        </label>
      )}
    </>
  );
}

function PanelButton({ name, label }: { readonly name: Panel; readonly label: string }): JSX.Element {
  const isShown = visiblePanel.value === name;
  return (
    <Button
      id={`show-${name}`}
      aria-expanded={isShown}
      onClick={() => (visiblePanel.value = isShown ? undefined : name)}
    >
      {label}
      {name === "tools" && offeredTools().length > 0 && ` (${offeredTools().length})`}
    </Button>
  );
}

/** Opens the experiments page with the last question of this conversation. */
function openLastQuestionAsExperiment(text: string): void {
  const { settings } = current.value;
  const visible = branch(current.value);
  const last = visible.findLastIndex(({ role }) => role === "user");
  const messages =
    last < 0
      ? [{ id: "", parent: undefined, role: "user" as const, content: text }]
      : visible.slice(0, last + 1);
  try {
    openAsExperiment(chosenModel.value?.alias ?? "", chatRequest(messages, { ...settings, logprobs: false }));
  } catch (error) {
    showProblem(error);
  }
}
