import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { toError } from "../../errors/to-error.ts";
import { chooseByQuantization } from "../../models/names/model-file-names.ts";
import { inBytes, inDays, inFull, inShort } from "../number-format.ts";
import { models, showProblem } from "../page-state.ts";
import { LinkedText } from "./dialog.tsx";
import { chatWith } from "./model-card.tsx";
import {
  type HubFiles,
  type HubOffer,
  type HubRepo,
  listHubFiles,
  listSuggestions,
  searchHub,
  type Suggestion,
} from "./models-api.ts";
import { goToDownloads, PullNote } from "./pull-list.tsx";
import { pulls, startPull } from "./pulls.ts";

/** As many as a person reads. */
const MAX_REPOS = 20;
/** Suggestions that are shown at first; the others are a click away. */
const FIRST_SUGGESTIONS = 6;
/** A repository's own name, as people copy it: with or without the hub's address or "hf:". */
const REPO = /^(?:https?:\/\/[^/]+\/|hf:)?([\w.-]+\/[\w.-]+?)(?:[:/].*)?$/;

/** Where a model is found and downloaded. */
export function GetModel(): JSX.Element {
  return (
    <section aria-labelledby="get-title">
      <h2 id="get-title" tabIndex={-1}>
        Get a model
      </h2>
      <Search />
      <h3>Good to begin with</h3>
      <Suggestions />
    </section>
  );
}

function Search(): JSX.Element {
  const query = useSignal("");
  const found = useSignal<readonly HubRepo[] | undefined>(undefined);
  const problem = useSignal("");
  const asking = useSignal<AbortController | undefined>(undefined);
  const search = async (): Promise<void> => {
    const words = query.value.trim();
    if (words === "") return;
    asking.value?.abort();
    const controller = new AbortController();
    asking.value = controller;
    problem.value = "";
    found.value = undefined;
    try {
      const [, repo] = REPO.exec(words) ?? [];
      found.value =
        repo === undefined
          ? await searchHub(words, MAX_REPOS, controller.signal)
          : [{ repo, gated: false, downloads: 0, likes: 0 }];
    } catch (error) {
      if (!controller.signal.aborted) problem.value = toError(error).message;
    } finally {
      if (asking.value === controller) asking.value = undefined;
    }
  };
  return (
    <>
      <form
        role="search"
        class="search"
        onSubmit={(event) => {
          event.preventDefault();
          void search();
        }}
      >
        <label>
          <span class="unseen">Search the hub</span>
          <input
            id="hub-query"
            type="search"
            placeholder="Search the hub: qwen3, or owner/repository"
            value={query}
            onInput={({ currentTarget }) => (query.value = currentTarget.value)}
          />
        </label>
        <button type="submit" class="main">
          Search
        </button>
      </form>
      <div id="hub-results" role="status">
        {asking.value && <p>Asking the hub …</p>}
        {problem.value !== "" && (
          <p class="wrong">
            <LinkedText text={problem.value} />
          </p>
        )}
        {found.value?.length === 0 && (
          <p>The hub has no GGUF models with that name. Fewer or other words may find more.</p>
        )}
      </div>
      {found.value && found.value.length > 0 && (
        <ul class="repos">
          {found.value.map((repo) => (
            <HubRepoEntry key={repo.repo} repo={repo} isOpen={found.value?.length === 1} />
          ))}
        </ul>
      )}
    </>
  );
}

/** The suggestions that the daemon has. */
function Suggestions(): JSX.Element {
  const list = useSignal<readonly Suggestion[]>([]);
  const showsAll = useSignal(false);
  useEffect(() => {
    listSuggestions().then((found) => (list.value = found), showProblem);
  }, []);
  return (
    <>
      <ul id="suggestions" class="cards">
        {list.value.slice(0, showsAll.value ? list.value.length : FIRST_SUGGESTIONS).map((each) => (
          <SuggestionCard key={each.name} suggestion={each} />
        ))}
      </ul>
      {!showsAll.value && list.value.length > FIRST_SUGGESTIONS && (
        <p class="buttons">
          <button type="button" onClick={() => (showsAll.value = true)}>
            Show all {list.value.length}
          </button>
        </p>
      )}
    </>
  );
}

function SuggestionCard({ suggestion }: { readonly suggestion: Suggestion }): JSX.Element {
  const { name, description, size_hint: size, tags, from } = suggestion;
  const isThere = models.value.some(
    (model) => model.progress === undefined && (model.alias === name || model.from === from),
  );
  const isComing = pulls.value.some((pull) => pull.name === name && pull.state !== "done");
  return (
    <li class="card" data-suggestion={name}>
      <h3>{name}</h3>
      <p>{description}</p>
      <p class="facts">{size}</p>
      <ul class="chips" aria-label={`Good for`}>
        {tags.map((tag) => (
          <li key={tag}>{tag}</li>
        ))}
      </ul>
      <PullNote name={name} />
      <p class="buttons">
        <button
          type="button"
          disabled={isThere}
          onClick={() => (isComing ? goToDownloads() : void startPull(name))}
        >
          {isThere ? "On disk" : isComing ? "See downloads" : "Download"}
        </button>
      </p>
    </li>
  );
}

/** What the hub calls the purposes of models that do not chat, or that see. */
const TASKS: Readonly<Record<string, string>> = {
  "feature-extraction": "embeddings; does not chat",
  "sentence-similarity": "embeddings; does not chat",
  "text-ranking": "orders documents; does not chat",
  "image-text-to-text": "sees images",
  "text-generation": "chat",
};

interface HubRepoProps {
  readonly repo: HubRepo;
  /** Shows its models at once. */
  readonly isOpen: boolean;
}

/** A repository of the hub; its models are asked for when it is opened. */
function HubRepoEntry({ repo: found, isOpen }: HubRepoProps): JSX.Element {
  const { repo, downloads, likes, updated_at: updated, gated, task } = found;
  const isShown = useSignal(isOpen);
  const files = useSignal<HubFiles | undefined>(undefined);
  const problem = useSignal("");
  useEffect(() => {
    if (!isShown.value || files.value) return;
    problem.value = "";
    listHubFiles(repo).then(
      (listed) => (files.value = listed),
      (error: unknown) => (problem.value = toError(error).message),
    );
  }, [isShown.value, repo]);
  const facts = [
    downloads > 0 && `${inShort(downloads)} downloads`,
    likes > 0 && `${inShort(likes)} likes`,
    updated !== undefined && `changed ${inDays(updated)}`,
    task !== undefined && (TASKS[task] ?? task.replaceAll("-", " ")),
    (gated || files.value?.gated) && "gated",
  ].filter((fact) => fact !== false && fact !== undefined);
  return (
    <li>
      <details open={isOpen} onToggle={({ currentTarget }) => (isShown.value = currentTarget.open)}>
        <summary>
          <strong>{repo}</strong> <span>{facts.join(" · ")}</span>
        </summary>
        {problem.value !== "" && (
          <p class="wrong" role="alert">
            <LinkedText text={problem.value} />
          </p>
        )}
        {problem.value === "" && !files.value && <p>Asking the hub …</p>}
        {files.value && <Offers files={files.value} />}
      </details>
    </li>
  );
}

function Offers({ files }: { readonly files: HubFiles }): JSX.Element {
  const { repo, page, gated, parameters, trained_context_size: trained, estimate } = files;
  const fitting = files.models.filter(({ fits }) => fits);
  const best = chooseByQuantization(fitting, ({ file }) => file, undefined);
  return (
    <>
      <p>
        {parameters !== undefined && `${inShort(parameters)} weights · `}
        {trained !== undefined && `trained for ${inFull(trained)} tokens of context · `}
        <a href={page} target="_blank" rel="noreferrer">
          its page on the hub
        </a>
      </p>
      {gated && (
        <p class="note">
          Its owner gives it only to those who ask: accept the terms on its page, and start the daemon with
          HUB_TOKEN set to a token of your account.
        </p>
      )}
      <ul class="offers" aria-label={`Models of ${repo}`}>
        {files.models.map((offer) => (
          <Offer key={offer.spec} offer={offer} isBest={offer === best} />
        ))}
      </ul>
      <p class="facts">{estimate}</p>
    </>
  );
}

function Offer({ offer, isBest }: { readonly offer: HubOffer; readonly isBest: boolean }): JSX.Element {
  const { spec, quantization, file, size_bytes: size, shards } = offer;
  const pull = pulls.value.find(({ name }) => name === spec);
  // Asked for before a download that has ended since.
  const alias = pull?.state === "done" ? pull.model : offer.on_disk;
  const isThere = alias !== undefined && models.value.some((model) => model.alias === alias);
  const isComing = pull?.state === "running" || pull?.state === "elsewhere";
  const label = isComing ? "Downloading …" : offer.partial_bytes > 0 || pull ? "Resume" : "Download";
  return (
    <li data-spec={spec}>
      <div>
        <strong>{quantization ?? file}</strong>{" "}
        {isBest && (
          <span class="badge on" title="The best of those that fit, as a rule">
            recommended
          </span>
        )}
        <p class="facts">
          {inBytes(size)}
          {shards > 1 && ` in ${shards} files`}
          {offer.partial_bytes > 0 && !isThere && ` · ${inBytes(offer.partial_bytes)} have arrived already`}
        </p>
      </div>
      <p class={offer.fits ? "fits" : "fits not"}>{fitInWords(offer)}</p>
      <PullNote name={spec} />
      <p class="buttons">
        {isThere ? (
          <button type="button" onClick={() => chatWith(alias)}>
            Chat
          </button>
        ) : (
          <button
            type="button"
            class={offer.fits ? "main" : ""}
            aria-label={`${label} ${quantization ?? file}`}
            disabled={isComing}
            onClick={() => void startPull(spec)}
          >
            {label}
          </button>
        )}
      </p>
    </li>
  );
}

function fitInWords({
  fits,
  needed_bytes: needed,
  context_size: context,
  reason = "",
  gpu,
}: HubOffer): string {
  if (!fits) return `Does not fit. ${reason}`;
  const memory = `Fits: about ${inBytes(needed)} of memory with ${inFull(context)} tokens of context`;
  if (!gpu) return `${memory}.`;
  const layers = gpu.layers >= gpu.all_layers ? "all" : `${gpu.layers} of ${gpu.all_layers}`;
  return `${memory}, and ${inBytes(gpu.bytes)} on the GPU for ${layers} layers.`;
}
