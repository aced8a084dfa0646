// Colours of the picture. No meaning depends on colour alone: width and label say the same.
// Blue and orange differ for all kinds of colour blindness; the knot is also the widest.

import type { Values } from "./channels";

export interface Theme {
  idle: string;
  low: string;
  high: string;
  pausing: string;
  paused: string;
  knot: string;
  down: string;
  verdict: string;
  faint: string;
  text: string;
  back: string;
  switch: string;
  host: string;
  lost: string;
}

const LIGHT: Theme = {
  idle: "#aeb8c2", low: "#9ecae1", high: "#08519c", pausing: "#f2b84b", paused: "#d55e00",
  knot: "#c8102e", down: "#6e7781", verdict: "#7b3fa0", faint: "#eceff2", text: "#1d2733", back: "#fff",
  switch: "#2f5d8a", host: "#b98a2f", lost: "#9aa4ae",
};
const DARK: Theme = {
  idle: "#4d5863", low: "#2b5178", high: "#79c0ff", pausing: "#b98a2f", paused: "#ff9d4d",
  knot: "#ff5468", down: "#8b949e", verdict: "#d2a8ff", faint: "#232a31", text: "#e6edf3", back: "#14181d",
  switch: "#6ca4dc", host: "#e8b04a", lost: "#59636e",
};

const dark = matchMedia("(prefers-color-scheme: dark)");

let current = dark.matches ? DARK : LIGHT;

export const theme = (): Theme => current;

/** Calls `changed` when the user changes between light and dark. */
export function onThemeChange(changed: () => void): void {
  dark.addEventListener("change", () => {
    current = dark.matches ? DARK : LIGHT;
    changed();
  });
}

export interface Style {
  color: string;
  size: number;
  label: string;
  /** Whether it is drawn as a thick line in large pictures too. */
  bold?: boolean;
}

/** How a channel is drawn. */
export function styleOf(values: Values, inVerdict: boolean): Style {
  const colours = theme();
  if (values.knot === "cycle") return { color: colours.knot, size: 7, label: "knot", bold: true };
  if (values.knot === "member") return { color: colours.knot, size: 3.5, label: "" };
  if (inVerdict) return { color: colours.verdict, size: 5, label: "cycle", bold: true };
  if (values.down) return { color: colours.down, size: 1, label: "cut" };
  const lost = values.droppedNow > 0 ? `drops ${values.droppedNow}` : "";
  if (values.paused >= 10) {
    const share = Math.min(1, values.paused / 1000);
    const label = lost || (share >= 0.5 ? `paused ${Math.round(100 * share)} %` : "");
    return { color: mixed(colours.pausing, colours.paused, share), size: 3 + 3 * share, label };
  }
  if (values.load > 0) {
    const share = Math.min(1, values.load / 1000);
    return { color: mixed(colours.low, colours.high, share), size: 2 + 2.5 * share, label: lost };
  }
  return { color: colours.idle, size: 1.6, label: lost };
}

const STEPS = 20;
/** By the first colour; each is mixed with one other only. */
const known = new Map<string, string[]>();

/** A colour between two, in 20 steps, so that few are computed. */
function mixed(from: string, to: string, share: number): string {
  let steps = known.get(from);
  if (steps === undefined) {
    steps = Array.from({ length: STEPS + 1 }, (_, step) => {
      const part = (at: number): string => {
        const a = parseInt(from.slice(at, at + 2), 16);
        const b = parseInt(to.slice(at, at + 2), 16);
        return Math.round(a + ((b - a) * step) / STEPS).toString(16).padStart(2, "0");
      };
      return `#${part(1)}${part(3)}${part(5)}`;
    });
    known.set(from, steps);
  }
  return steps[Math.round(share * STEPS)] ?? from;
}
