// Everything beside picture and table: state, problems, switches, events, changes, verdict.

import { clock, make, setItems, setText } from "./dom";
import type { Change, FabricEvent, State, Verdict } from "./types";

const MOST_EVENTS = 200;

/** One line for each part that the page reads: what it is, and whether it answers. */
export function stateLines(state: State, connected: boolean): { text: string; ok: boolean }[] {
  if (!connected) return [{ text: "page: the server does not answer; trying again", ok: false }];
  const lines = [];
  const { fabric, controller, emulator, traffic } = state;
  if (fabric !== undefined) {
    const missing = fabric.missing ?? [];
    const text = !fabric.running
      ? `fabric: ${fabric.why ?? "not running"}`
      : missing.length > 0 ? `fabric: ${missing.join(", ")} died` : "fabric: running";
    lines.push({ text, ok: fabric.running && missing.length === 0 });
  }
  if (controller !== undefined) {
    const { reachable, ready, engine, flow_control } = controller;
    const text = !reachable
      ? `controller: ${controller.why ?? "does not answer"}`
      : `controller: ${ready ? "ready" : "installing rules"}, ${engine}, ${flow_control}`;
    lines.push({ text, ok: reachable && ready === true });
  }
  if (emulator != null) {
    const frozen = state.reason != null;
    const pace = emulator.stretch_now == null
      ? "" : `; a second of the fabric takes ${emulator.stretch_now.toFixed(2)} s`;
    const text = !emulator.reachable
      ? `emulator: ${emulator.why ?? "does not answer"}`
      : frozen ? "emulator: DEADLOCK"
        : `emulator: ${emulator.valid ? "valid" : "not valid"}${pace}`;
    lines.push({ text, ok: emulator.reachable && emulator.valid !== false && !frozen });
  }
  if (traffic != null) lines.push({ text: `traffic: ${trafficText(traffic)}`, ok: true });
  return lines;
}

export function trafficText({ pattern, rate_mbps, flows }: NonNullable<State["traffic"]>): string {
  const rate = rate_mbps === null ? "" : `, ${rate_mbps} Mbit/s a host`;
  return `${pattern}, ${flows} flows${rate}`;
}

export function showState(list: HTMLElement, state: State, connected: boolean): void {
  const lines = stateLines(state, connected);
  setItems(list, lines.map(({ text, ok }) => `${ok ? "\u2713" : "\u2717"} ${text}`));
  lines.forEach(({ ok }, i) => list.children[i]?.classList.toggle("bad", !ok));
}

/** What is wrong, and what else is to be known, as the server tells it. */
export function showProblems(panel: HTMLElement, state: State): void {
  const [problems, notes] = panel.querySelectorAll("ul");
  const lines = state.problems ?? [];
  panel.classList.toggle("some", lines.length > 0);
  if (problems !== undefined) setItems(problems, lines.length > 0 ? lines : ["none"]);
  if (notes !== undefined) setItems(notes, state.notes ?? []);
}

const CHANGES = [
  "nothing changed", "in one step", "in two phases, nothing dropped", "with dropped frames",
];

/** How a change of routes was made, in words, by its tier. */
export function changeText(tier: number): string {
  return CHANGES[tier] ?? `tier ${tier}`;
}

export function showSwitches(body: HTMLTableSectionElement, state: State): void {
  const switches = Object.entries(state.controller?.switches ?? {});
  const texts = switches.map(([name, of]) => [
    name,
    of.connected ? "connected" : "not connected",
    of.installed ? "all" : "changing",
    String(of.rules),
  ]);
  while (body.rows.length > texts.length) body.deleteRow(-1);
  while (body.rows.length < texts.length) {
    body.append(make("tr", {}, make("th", { scope: "row" }), ...[1, 2, 3].map(() => make("td"))));
  }
  texts.forEach((cells, i) => cells.forEach((text, j) => {
    const cell = body.rows[i]?.cells[j];
    if (cell !== undefined) setText(cell, text);
  }));
}

/** Adds events to a list, the latest first. */
export function addEvents(list: HTMLElement, events: FabricEvent[]): void {
  for (const { time, kind, ...fields } of events) {
    const text = Object.entries(fields).map(([name, value]) =>
      name === "text" ? shortly(value) : `${name} ${shortly(value)}`);
    list.prepend(make("li", {}, `${clock(time)} ${kind} ${text.join(", ")}`.trim()));
  }
  while (list.children.length > MOST_EVENTS) list.lastElementChild?.remove();
}

function shortly(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  return text.length > 160 ? `${text.slice(0, 160)}...` : text;
}

/** Shows the last changes of routes with their steps and records, the latest first. */
export function showChanges(list: HTMLElement, changes: Change[]): void {
  const key = JSON.stringify(changes.map(({ number, certificate }) => [number, certificate]));
  if (list.dataset["key"] === key) return;
  list.dataset["key"] = key;
  list.replaceChildren(...[...changes].reverse().map((change) => {
    const failed = [...(change.failed ?? []), ...(change.drained ?? [])].join(", ");
    const avoids = failed ? `, avoids ${failed}` : "";
    const took = change.seconds === undefined ? "" : ` in ${change.seconds.toFixed(2)} s`;
    const when = change.time === undefined ? "" : `${clock(change.time)}: `;
    const head = `${when}${change.engine ?? ""}${avoids}, ${changeText(change.tier)}, ` +
      `${change.rules_changed} rules${took}${dropped(change)}`;
    return make("li", {}, head, proof(change));
  }));
  if (changes.length === 0) list.replaceChildren(make("li", {}, "none"));
}

/** The pairs whose frames a change has dropped at their first switch, and for how long. */
function dropped(change: Change): string {
  if (!change.dropped_pairs) return "";
  return `, frames of ${change.dropped_pairs} pairs DROPPED for ${(change.dropped_s ?? 0).toFixed(2)} s`;
}

/** The record of a change: what was proven for each step. */
export function proof(change: Change): HTMLElement {
  const { certificate } = change;
  if (certificate === null) return make("p", {}, "change record: not yet computed");
  const steps = certificate.steps.map((of, i) => {
    const action = change.steps?.[i]?.action;
    return make("li", {},
      `${action ? `${action}: ` : ""}${of.acyclic ? "no cycle" : "CYCLE"} in ${of.dependencies} ` +
        `dependencies, ${of.lost ? `${of.lost} lost` : "nothing lost"}` +
        (of.dropped_pairs ? `, frames of ${of.dropped_pairs} pairs DROPPED` : ""));
  });
  const text = `change record: ${certificate.proven ? "proven" : "NOT PROVEN"} under ` +
    certificate.flow_control;
  return make("div", {}, make("p", {}, text), make("ol", {}, ...steps));
}

/** Shows a verdict; returns the cycle that the picture shall show. */
export function showVerdict(
  panel: HTMLElement, verdict: Verdict | null | undefined, mark: boolean,
): string[] {
  panel.hidden = verdict == null;
  if (verdict == null) return [];
  const { cycle } = verdict;
  const [text, list, label] = [
    panel.querySelector("p"), panel.querySelector("ol"), panel.querySelector("label"),
  ];
  if (text !== null) setText(text, verdict.text);
  if (label !== null) label.hidden = cycle.length === 0;
  if (list !== null) {
    setItems(list, cycle.map((channel, i) => {
      const flow = verdict.witnesses?.[i];
      const why = flow?.source ? `, for example with a frame of ${flow.source} to ` +
        `${flow.destination}` : "";
      return `${channel} can wait for ${cycle[(i + 1) % cycle.length]}${why}`;
    }));
  }
  return mark ? cycle : [];
}
