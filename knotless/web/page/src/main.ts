// The page: follows the server, and passes what comes to picture, table and panels.

import { Actions } from "./actions";
import * as api from "./api";
import { type Values, channelOf, valuesOf } from "./channels";
import { byId, setText } from "./dom";
import { Drawing } from "./drawing";
import { Diagram } from "./diagram";
import { showAdvice, showKnot } from "./knot";
import {
  addEvents, showChanges, showProblems, showState, showSwitches, showVerdict,
} from "./panels";
import { Table } from "./table";
import { Slider } from "./timeline";
import type { Frame, Picture, State } from "./types";

const TABLE_MS = 500;
/** Larger fabrics are drawn with WebGL, without buffers. */
const MOST_WITH_BUFFERS = 400;

const drawing = new Drawing(byId("picture", HTMLElement), choose);
const diagram = new Diagram(byId("picture", HTMLElement), choose, (full) =>
  setText(byId("full", HTMLElement), full));
const table = new Table(
  byId("channels", HTMLTableElement),
  byId("search", HTMLInputElement),
  byId("active", HTMLInputElement),
  byId("count", HTMLElement),
  byId("more", HTMLButtonElement),
  choose,
);
const actions = new Actions();
const eventList = byId("events", HTMLElement);
const markVerdict = byId("mark-verdict", HTMLInputElement);

let picture: Picture | null = null;
let slider: Slider | null = null;
let state: State = {};
let values: Values[] = [];
let connected = true;
let chosen = -1;
let tableAt = 0;
let tableWaits = 0;
/** Frames shown, and the milliseconds that they took: in all, and to draw the picture. */
const painted = { frames: 0, scriptMs: 0, drawMs: 0 };

function choose(channel: number): void {
  chosen = channel === chosen ? -1 : channel;
  drawing.select(chosen);
  diagram.select(chosen);
  table.select(chosen);
  const link = picture?.channels[chosen]?.link;
  if (link !== undefined) actions.choose(link);
}

function show(frame: Frame | null): void {
  if (picture === null) return;
  const began = performance.now();
  values = valuesOf(picture, frame);
  showKnot(byId("knot", HTMLElement), picture, frame?.knot ?? null);
  document.documentElement.classList.toggle("deadlock", frame?.knot != null);
  const ready = performance.now();
  if (isSmall(picture)) diagram.setValues(values, frame?.knot ?? null);
  else drawing.setValues(values);
  const done = performance.now();
  painted.frames += 1;
  painted.scriptMs += done - began;
  painted.drawMs += done - ready;
  for (const [key, value] of Object.entries(painted)) {
    document.documentElement.dataset[key] = String(value);
  }
  refreshTable();
}

/** Whether the picture shows buffers. */
function isSmall(of: Picture): boolean {
  return of.channels.length <= MOST_WITH_BUFFERS;
}

/** Fills the table at most twice a second. */
function refreshTable(): void {
  const wait = tableAt + TABLE_MS - performance.now();
  if (tableWaits) return;
  if (wait > 0) {
    tableWaits = setTimeout(() => {
      tableWaits = 0;
      refreshTable();
    }, wait);
    return;
  }
  tableAt = performance.now();
  if (picture !== null) table.update(picture, values);
}

function showAll(): void {
  showState(byId("state", HTMLElement), state, connected);
  showProblems(byId("problems-panel", HTMLElement), state);
  showAdvice(byId("knot", HTMLElement), state);
  showSwitches(byId("switches", HTMLTableSectionElement), state);
  drawing.setState(state);
  diagram.setState(state);
  byId("problems-panel", HTMLElement).hidden = picture?.kind !== "live";
  const verdict = state.verdict ?? state.controller?.check;
  const cycle = showVerdict(byId("verdict", HTMLElement), verdict, markVerdict.checked);
  drawing.setVerdict(new Set(cycle.map(channelOf)));
  diagram.setVerdict(new Set(cycle.map(channelOf)));
  byId("switches-panel", HTMLElement).hidden = state.controller === undefined;
  byId("changes-panel", HTMLElement).hidden = state.controller === undefined;
}

async function loadPicture(): Promise<void> {
  const found = await api.picture();
  const former = picture;
  picture = found;
  setText(byId("title", HTMLElement), found.fabric ?? "no fabric");
  setText(byId("source", HTMLElement), found.title);
  document.title = `${found.fabric ?? "no fabric"} - Knotless`;
  if (former?.number !== found.number || former.title !== found.title) {
    chosen = -1;
    markVerdict.checked = found.kind === "verdict";
    drawing.setPicture(isSmall(found) ? null : found);
    diagram.setPicture(isSmall(found) ? found : null);
    document.documentElement.classList.toggle("with-buffers", isSmall(found));
    actions.setPicture(found);
    byId("time-panel", HTMLElement).hidden = found.kind === "verdict";
    byId("events-panel", HTMLElement).hidden = found.kind !== "live";
    show(null);
  }
  const replay = found.kind !== "live";
  slider ??= new Slider(
    byId("time", HTMLInputElement),
    byId("time-text", HTMLElement),
    byId("live", HTMLButtonElement),
    byId("play", HTMLButtonElement),
    byId("go-to-knot", HTMLButtonElement),
    replay,
    show,
  );
  await slider.load();
  showAll();
}

async function loadChanges(): Promise<void> {
  showChanges(byId("changes", HTMLElement), (await api.changes()).changes);
}

/** Reads the changes now and later: the record of a change comes a moment after it. */
function loadChangesSoon(): void {
  for (const wait of [200, 1500, 4000]) setTimeout(() => later(loadChanges()), wait);
}

/** What is requested again when the connection is back needs no other handling here. */
function later(task: Promise<void>): void {
  task.catch(() => undefined);
}

markVerdict.addEventListener("change", showAll);
later(loadPicture());
later(loadChanges());
later(api.events().then((found) => addEvents(eventList, found)));
api.follow({
  open: () => {
    connected = true;
    showAll();
  },
  lost: () => {
    connected = false;
    showAll();
  },
  picture: () => later(loadPicture()),
  state: (found) => {
    const reached = found.controller?.reachable && !state.controller?.reachable;
    state = found;
    showAll();
    // The server reads the changes a moment after it has reached the controller.
    if (reached) loadChangesSoon();
  },
  frame: (frame) => slider?.add(frame),
  event: (event) => {
    addEvents(eventList, [event]);
    loadChangesSoon();
  },
});
