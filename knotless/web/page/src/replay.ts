// A recording in one file: picture, slider and the explanation of a deadlock, without a server.

import { type Values, valuesOf } from "./channels";
import { Diagram } from "./diagram";
import { byId, setText } from "./dom";
import { showKnot } from "./knot";
import type { Frame, Picture } from "./types";

/** A run is played in about this time, but a frame is shown neither shorter nor longer than these. */
const PLAYED_MS = 12_000;
const SHORTEST_MS = 40;
const LONGEST_MS = 300;

const { picture, frames } = JSON.parse(byId("recording", HTMLScriptElement).textContent ?? "") as {
  picture: Picture;
  frames: Frame[];
};
const range = byId("time", HTMLInputElement);
const play = byId("play", HTMLButtonElement);
const toKnot = byId("go-to-knot", HTMLButtonElement);
const label = byId("time-text", HTMLElement);
const diagram = new Diagram(byId("picture", HTMLElement), (channel) => diagram.select(channel),
  (full) => setText(byId("full", HTMLElement), full));
const each = Math.max(SHORTEST_MS, Math.min(LONGEST_MS, PLAYED_MS / frames.length));
const values: Values[][] = frames.map((frame) => valuesOf(picture, frame));
const firstKnot = frames.findIndex(({ knot }) => knot !== null);
let timer = 0;

function show(n: number): void {
  const frame = frames[n];
  if (frame === undefined) return;
  range.value = String(n);
  const knot = frame.knot;
  diagram.setValues(values[n] ?? [], knot);
  showKnot(byId("knot", HTMLElement), picture, knot);
  document.documentElement.classList.toggle("deadlock", knot !== null);
  const text = `${(frame.at_us / 1e6).toFixed(3)} s of virtual time${knot ? ": frozen" : ""}`;
  setText(label, text);
  range.setAttribute("aria-valuetext", text);
}

function stop(): void {
  clearInterval(timer);
  timer = 0;
  setText(play, "Play");
}

function start(): void {
  if (Number(range.value) >= frames.length - 1) show(0);
  setText(play, "Pause");
  timer = setInterval(() => {
    const next = Number(range.value) + 1;
    show(next);
    if (next >= frames.length - 1) stop();
  }, each);
}

range.max = String(Math.max(0, frames.length - 1));
range.addEventListener("input", () => {
  stop();
  show(Number(range.value));
});
play.addEventListener("click", () => (timer ? stop() : start()));
toKnot.hidden = firstKnot < 0;
toKnot.addEventListener("click", () => {
  stop();
  show(firstKnot);
});
diagram.setPicture(picture);
show(0);
