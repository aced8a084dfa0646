// The explanation of a deadlock: who waits for whom, and which flows.

import { channelOf } from "./channels";
import { bytes, make, setItems, setText } from "./dom";
import type { Flow, Knot, Picture, State } from "./types";

const SHOWN = 4;

/** Fills the panel of a deadlock, and shows it; null hides it. */
export function showKnot(panel: HTMLElement, picture: Picture, knot: Knot | null): void {
  panel.hidden = knot === null;
  if (knot === null) return;
  const [head, list] = [panel.querySelector("p"), panel.querySelector("ol")];
  if (head === null || list === null) return;
  const held = new Set(knot.members.filter((member) => !knot.cycle.includes(member))).size;
  setText(
    head,
    `${knot.cycle.length} channels wait for each other since ${(knot.since_us / 1e6).toFixed(3)} s` +
      ` of virtual time${held > 0 ? `, and ${held} more wait for them` : ""}. ` +
      "None of them can ever send again: no frame leaves their queues. They can still grow: by frames " +
      "from channels that may send, by what programs on hosts send, and by probes of the controller. " +
      "In the picture they have these numbers:",
  );
  const ends = new Map(picture.channels.map(({ name, from, to }) => [name, `${from} \u2192 ${to}`]));
  setItems(list, knot.cycle.map((channel, i) => {
    const next = knot.cycle[(i + 1) % knot.cycle.length] ?? "";
    const of = ends.get(channelOf(channel));
    const holds = flowsText(knot.waiting[channel] ?? []);
    return `${channel}${of ? ` (${of})` : ""} waits for ${next}${holds && `; it holds ${holds}`}`;
  }));
}

/** Shows why a deadlock stays and what to do now, as the server tells it. */
export function showAdvice(panel: HTMLElement, state: State): void {
  const [reason, list] = [
    panel.querySelector<HTMLElement>(".reason"), panel.querySelector<HTMLElement>(".advice"),
  ];
  if (reason === null || list === null) return;
  setText(reason, state.reason ?? "");
  const advice = state.advice ?? [];
  const key = JSON.stringify(advice);
  list.hidden = advice.length === 0;
  if (list.dataset["key"] === key) return;
  list.dataset["key"] = key;
  list.replaceChildren(
    make("b", {}, "What to do now"),
    make("ul", {}, ...advice.map((of) => make("li", {}, `${of.do}: `, make("code", {}, of.command)))),
  );
}

function flowsText(flows: Flow[]): string {
  const shown = flows.slice(0, SHOWN).map(({ from, to, bytes: size, frames }) => {
    const amount = frames !== undefined ? `${frames} frames` : size !== undefined ? bytes(size) : "";
    return `${from} to ${to}${amount && ` (${amount})`}`;
  });
  if (flows.length > SHOWN) shown.push(`${flows.length - SHOWN} more flows`);
  return shown.join(", ");
}
