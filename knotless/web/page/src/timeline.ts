// The slider over the last ten minutes, or over a recording.

import { frames, timeline } from "./api";
import { clock, setText } from "./dom";
import type { Frame, Timeline } from "./types";

const AHEAD = 100;

export class Slider {
  private times: Timeline = { first: 0, times: [], knots: [] };
  private following: boolean;
  private playing = 0;
  private loaded = new Map<number, Frame>();
  private wanted = -1;
  /** The last frames that came: an answer that was written before them lacks them. */
  private heard: Frame[] = [];

  /** `show` receives the frame to be shown; in a replay there is nothing to follow. */
  constructor(
    private readonly range: HTMLInputElement,
    private readonly label: HTMLElement,
    private readonly live: HTMLButtonElement,
    private readonly play: HTMLButtonElement,
    private readonly knot: HTMLButtonElement,
    private readonly replay: boolean,
    private readonly show: (frame: Frame) => void,
  ) {
    this.following = !replay;
    live.hidden = replay;
    range.addEventListener("input", () => {
      this.stop();
      void this.go(Number(range.value));
    });
    live.addEventListener("click", () => this.follow());
    knot.addEventListener("click", () => {
      this.stop();
      void this.go(this.times.knots[0] ?? this.times.first);
    });
    play.addEventListener("click", () => (this.playing ? this.stop() : this.start()));
  }

  /** Reads which frames there are; of a replay it shows the first, or the one that was chosen. */
  async load(): Promise<void> {
    this.heard = [];
    await this.read();
    this.loaded.clear();
    const chosen = this.wanted >= this.times.first && this.wanted < this.end();
    if (this.replay && this.times.times.length > 0)
      await this.go(chosen ? this.wanted : this.times.first);
    else if (this.following && this.times.times.length > 0) await this.showLast();
    this.mark();
  }

  private async read(): Promise<void> {
    this.times = await timeline();
    for (const frame of this.heard) if (frame.n === this.end()) this.append(frame);
    this.bounds();
  }

  /** Shows the last frame, which may have come before the page was ready. */
  private async showLast(): Promise<void> {
    const last = this.end() - 1;
    const frame = await this.frame(last);
    if (frame !== undefined && this.following && last === this.end() - 1) this.show(frame);
  }

  /** A frame has come. */
  add(frame: Frame): void {
    this.heard = [...this.heard.slice(1 - AHEAD), frame];
    if (frame.n !== this.end()) {
      this.times = { first: frame.n, times: [], knots: [] };
      void this.read();
    }
    this.append(frame);
    this.bounds();
    if (!this.following) return;
    this.range.value = String(frame.n);
    this.mark(frame);
    this.show(frame);
  }

  private append(frame: Frame): void {
    this.times.times.push(frame.time);
    if (frame.knot !== null) this.times.knots.push(frame.n);
    while ((this.times.times[0] ?? 0) < frame.time - 600) {
      this.times.times.shift();
      this.times.first += 1;
    }
    while ((this.times.knots[0] ?? frame.n) < this.times.first) this.times.knots.shift();
  }

  private bounds(): void {
    this.range.min = String(this.times.first);
    this.range.max = String(Math.max(this.times.first, this.end() - 1));
    this.range.disabled = this.times.times.length === 0;
    this.knot.hidden = this.times.knots.length === 0;
  }

  private end(): number {
    return this.times.first + this.times.times.length;
  }

  /** Shows a frame of the past. */
  private async go(n: number): Promise<void> {
    this.following = false;
    this.wanted = n;
    this.range.value = String(n);
    const frame = await this.frame(n);
    if (frame === undefined || this.wanted !== n) return;
    this.mark(frame);
    this.show(frame);
  }

  private async frame(n: number): Promise<Frame | undefined> {
    const found = this.loaded.get(n);
    if (found !== undefined) return found;
    if (this.loaded.size > 10 * AHEAD) this.loaded.clear();
    for (const frame of await frames(n, this.playing ? AHEAD : 1)) this.loaded.set(frame.n, frame);
    return this.loaded.get(n);
  }

  private follow(): void {
    this.stop();
    this.following = true;
    this.mark();
  }

  private start(): void {
    if (Number(this.range.value) >= this.end() - 1) this.range.value = String(this.times.first);
    this.playing = 1;
    this.mark();
    void this.step(Number(this.range.value));
  }

  private stop(): void {
    this.playing = 0;
    this.mark();
  }

  /** Shows one frame after the other, as fast as they were taken but at most 30 a second. */
  private async step(n: number): Promise<void> {
    if (!this.playing) return;
    if (n >= this.end()) {
      this.stop();
      return;
    }
    const began = performance.now();
    await this.go(n);
    const { times, first } = this.times;
    const apart = 1000 * ((times[n + 1 - first] ?? 0) - (times[n - first] ?? 0));
    const wait = Math.max(33, Math.min(apart, 1000)) - (performance.now() - began);
    setTimeout(() => requestAnimationFrame(() => void this.step(n + 1)), Math.max(0, wait));
  }

  private mark(frame?: Frame): void {
    this.live.setAttribute("aria-pressed", String(this.following));
    setText(this.play, this.playing ? "Pause" : "Play");
    if (frame === undefined) return;
    const virtual = `${(frame.at_us / 1e6).toFixed(3)} s`;
    const text = `${this.replay ? "" : `${clock(frame.time)}, `}virtual time ${virtual}`;
    setText(this.label, text);
    this.range.setAttribute("aria-valuetext", text);
  }
}
