// The values of all channels in one frame, over all priorities.

import type { Frame, Picture } from "./types";

export interface Priority {
  priority: number;
  load: number;
  paused: number;
  queue: number;
  buffer: number;
}

export interface Values {
  load: number;
  paused: number;
  dropped: number;
  droppedNow: number;
  down: boolean;
  /** Whether the channel is in the cycle, or only held up by it. */
  knot: "" | "cycle" | "member";
  priorities: Priority[];
}

const IDLE: Readonly<Values> = Object.freeze({
  load: 0, paused: 0, dropped: 0, droppedNow: 0, down: false, knot: "", priorities: [],
});

/**
 * Returns the values of every channel; `load` is their sum and `paused` the longest. Channels of
 * which nothing is known share their values.
 */
export function valuesOf(picture: Picture, frame: Frame | null): Readonly<Values>[] {
  const found: Readonly<Values>[] = picture.channels.map(() => IDLE);
  if (frame === null) return found;
  const own = (index: number): Values => {
    const values = found[index];
    if (values !== undefined && values !== IDLE) return values;
    const made: Values = { ...IDLE, priorities: [] };
    if (values !== undefined) found[index] = made;
    return made;
  };
  for (const [index, priority, load, paused, queue, buffer] of frame.rows) {
    const values = own(index);
    values.load += load;
    values.paused = Math.max(values.paused, paused);
    values.priorities.push({ priority, load, paused, queue, buffer });
  }
  for (const [index, dropped, now] of frame.drops) {
    Object.assign(own(index), { dropped, droppedNow: now });
  }
  for (const index of frame.down) own(index).down = true;
  if (frame.knot !== null) {
    const members = new Set(frame.knot.members.map(channelOf));
    const cycle = new Set(frame.knot.cycle.map(channelOf));
    picture.channels.forEach(({ name }, i) => {
      if (members.has(name) || cycle.has(name)) own(i).knot = cycle.has(name) ? "cycle" : "member";
    });
  }
  return found;
}

/** The bytes in the ingress buffer at the end of a channel. */
export function bufferBytes(values: Values): number {
  return values.priorities.reduce((sum, { buffer }) => sum + buffer, 0);
}

/** `s1:2/0` without its priority. */
export function channelOf(virtual: string): string {
  return virtual.replace(/\/\d+$/, "");
}

/** What stands out about a channel, in words. */
export function condition(values: Values): string {
  if (values.knot === "cycle") return "in the knot";
  if (values.knot === "member") return "waits for the knot";
  if (values.down) return "cut";
  if (values.droppedNow > 0) return "drops frames";
  if (values.paused >= 500) return "paused";
  if (values.paused > 0) return "paused at times";
  return values.load > 0 ? "sends" : "idle";
}
